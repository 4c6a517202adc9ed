package org.pitest.mutationtest.execute;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.pitest.classinfo.CachingByteArraySource;
import org.pitest.classinfo.ClassByteArraySource;
import org.pitest.classpath.ClassloaderByteArraySource;
import org.pitest.coverage.TestInfo;
import org.pitest.mutationtest.config.MinionSettings;
import org.pitest.mutationtest.engine.Mutant;
import org.pitest.mutationtest.engine.Mutater;
import org.pitest.mutationtest.engine.MutationDetails;
import org.pitest.testapi.Description;
import org.pitest.testapi.ResultCollector;
import org.pitest.testapi.TestUnit;
import org.pitest.testapi.execute.FindTestUnits;

/**
 * Does what {@link MutationTestMinion} does, in a given class loader, and does not end the JVM.
 *
 * <p>The mutant is in the class from the beginning: no test has run before, as the minion's finder of JUnit 5 tests has it.
 *
 * <p>It is in PIT's package for {@link MutationTestWorker} and {@link HotSwap}, which are the same in 1.17 and 1.25.
 */
public final class LoaderMinion {
    private static final int CACHED_CLASSES = 12;

    private final MinionSettings plugins;
    private final MinionArguments arguments;
    private final ClassLoader loader;
    private final MutatedFile swap;
    private final ClassByteArraySource source;

    public LoaderMinion(MinionSettings plugins, MinionArguments arguments, ClassLoader loader, MutatedFile swap) {
        this.plugins = plugins;
        this.arguments = arguments;
        this.loader = loader;
        this.swap = swap;
        source = new CachingByteArraySource(new ClassloaderByteArraySource(loader), CACHED_CLASSES);
        CatchNewClassLoadersTransformer.setMutant("", new byte[0]); // the one before is kept
        CatchNewClassLoadersTransformer.CLASS_LOADERS.clear();
    }

    /** Those of the tests that can be run: TestNG's are classes, and their methods that fail are named beside them. */
    public static List<String> known(List<String> tests, MinionArguments arguments) {
        Set<String> names = testsOf(arguments).stream().map(TestInfo::getName).collect(Collectors.toSet());
        return tests.stream().filter(names::contains).collect(Collectors.toList());
    }

    /** The test that runs first. */
    public static String first(MinionArguments arguments) {
        return testsOf(arguments).get(0).getName();
    }

    /** The test of the mutant that takes least time. */
    public static String quickest(MinionArguments arguments) {
        return testsOf(arguments).stream().min(Comparator.comparingInt(TestInfo::getTime)).orElseThrow().getName();
    }

    /** That of the tests and the project. */
    public ClassLoader loader() {
        return loader;
    }

    /** Puts the mutant into its class, for {@link #suite}; false if the JVM refuses it. */
    public boolean insert() throws IOException {
        MutationDetails mutation = arguments.mutations.iterator().next();
        Mutant mutant = plugins.createEngine(arguments.engine).createEngine(arguments.engineArgs).createMutator(source)
            .getMutation(mutation.getId());
        plugins.createReset().resetFor(mutant);
        return swap.insertClass(mutation.getClassName(), loader, mutant.getBytes());
    }

    /** Runs all tests of these classes, up to the first that fails and whose name is not {@code expected}. */
    public SuiteRun suite(List<String> testClasses, Predicate<String> expected) {
        return new SuiteRun(plugins.getTestFrameworkPlugin(arguments.pitConfig, source), loader, testClasses, expected).run();
    }

    /** The time in milliseconds in which tests have to end that take {@code ms} without the mutant. */
    public static long limit(MinionArguments arguments, long ms) {
        return arguments.timeoutStrategy.getAllowedTime(ms);
    }

    /** Tests the mutant. */
    public void run(Reporter reporter) throws IOException, ReflectiveOperationException {
        Mutater mutater = plugins.createEngine(arguments.engine).createEngine(arguments.engineArgs).createMutator(source);
        new MutationTestWorker(swap, mutater, loader, plugins.createReset(), arguments.fullMutationMatrix).run(
            arguments.mutations, reporter, new TimeOutDecoratedTestSource(arguments.timeoutStrategy, units(tests()), reporter));
    }

    /** Whether the test runs and passes without the mutant. */
    public boolean passes(String test) throws ReflectiveOperationException {
        Passing passing = new Passing();
        units(tests().stream().filter(each -> each.getName().equals(test)).collect(Collectors.toList())).stream()
            .filter(unit -> unit.getDescription().getQualifiedName().equals(test)).forEach(unit -> unit.execute(passing));
        return passing.ran && !passing.failed;
    }

    private List<TestInfo> tests() {
        return testsOf(arguments);
    }

    private static List<TestInfo> testsOf(MinionArguments arguments) {
        return arguments.mutations.iterator().next().getTestsInOrder();
    }

    /** PIT's finder runs all tests of JUnit 5 to find them. Their names are enough. */
    private List<TestUnit> units(List<TestInfo> tests) throws ReflectiveOperationException {
        List<TestUnit> units = new ArrayList<>();
        Set<Class<?>> others = new LinkedHashSet<>();
        for (TestInfo test : tests) {
            String className = TestInfo.toDefiningClassName().apply(test).asJavaName();
            Class<?> testClass = Class.forName(className, false, loader);
            String id = test.getName().substring(className.length() + 1);
            if (id.startsWith("[engine:")) {
                units.add(ofJUnit5(testClass, id));
            } else {
                others.add(testClass);
            }
        }
        units.addAll(new FindTestUnits(plugins.getTestFrameworkPlugin(arguments.pitConfig, source))
            .findTestUnitsForAllSuppliedClasses(others));
        return units;
    }

    private static TestUnit ofJUnit5(Class<?> testClass, String id) throws ReflectiveOperationException {
        Class<?> uniqueId = Class.forName("org.junit.platform.engine.UniqueId");
        Object descriptor = Class.forName("org.junit.platform.engine.support.descriptor.EngineDescriptor")
            .getConstructor(uniqueId, String.class).newInstance(uniqueId.getMethod("parse", String.class).invoke(null, id), id);
        Class<?> identifier = Class.forName("org.junit.platform.launcher.TestIdentifier");
        Class<?> parameter = Class.forName("org.junit.platform.engine.TestDescriptor");
        return (TestUnit) Class.forName("org.pitest.junit5.JUnit5TestUnit").getConstructor(Class.class, identifier)
            .newInstance(testClass, identifier.getMethod("from", parameter).invoke(null, descriptor));
    }

    private static final class Passing implements ResultCollector {
        private volatile boolean ran;
        private volatile boolean failed;

        @Override
        public void notifyEnd(Description description, Throwable error) {
            failed = true;
        }

        @Override
        public void notifyEnd(Description description) {
            ran = true;
        }

        @Override
        public void notifyStart(Description description) {}

        @Override
        public void notifySkipped(Description description) {
            failed = true;
        }

        @Override
        public boolean shouldExit() {
            return false;
        }
    }
}
