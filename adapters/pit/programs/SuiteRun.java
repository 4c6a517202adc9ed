package org.pitest.mutationtest.execute;

import java.io.IOException;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.pitest.classinfo.ClassName;
import org.pitest.testapi.Configuration;
import org.pitest.testapi.Description;
import org.pitest.testapi.ExecutedInDiscovery;
import org.pitest.testapi.ResultCollector;
import org.pitest.testapi.TestUnit;
import org.pitest.testapi.TestUnitExecutionListener;
import org.pitest.testapi.execute.FindTestUnits;

/**
 * A run of all tests of a module in one class loader, in the order in which PIT's coverage minion runs them.
 *
 * <p>That is: classes in the order of their names. The finder of JUnit 5 runs the tests of a class to find them; all others are
 * only found then, and run after these, in the order of their names.
 */
public final class SuiteRun implements TestUnitExecutionListener, ResultCollector {
    private final Configuration framework;
    private final ClassLoader loader;
    private final List<ClassName> classes;
    private final Set<String> ended = new HashSet<>();
    private final Set<String> failed = new LinkedHashSet<>();
    private final Set<String> uncovered = new LinkedHashSet<>();
    private final Predicate<String> expected; // names of what fails without a mutant: tests, or classes that can't be set up

    SuiteRun(Configuration framework, ClassLoader loader, Collection<String> classes, Predicate<String> expected) {
        this.framework = framework;
        this.loader = loader;
        this.expected = expected;
        this.classes = classes.stream().map(ClassName::fromString).sorted().collect(Collectors.toList());
    }

    /** Runs them, up to the first that fails and is not expected to. */
    SuiteRun run() {
        Iterable<Class<?>> loaded = () -> classes.stream().takeWhile(any -> failed().isEmpty()).flatMap(this::loaded).iterator();
        List<TestUnit> found = new FindTestUnits(framework, this).findTestUnitsForAllSuppliedClasses(loaded);
        found.stream().filter(unit -> !(unit instanceof ExecutedInDiscovery))
            .sorted(Comparator.comparing(unit -> unit.getDescription().getQualifiedName()))
            .takeWhile(any -> failed().isEmpty()).forEach(this::execute);
        return this;
    }

    private void execute(TestUnit unit) {
        try {
            unit.execute(this);
        } catch (Throwable error) { // also those of the JVM: PIT takes it for a failure
            notifyEnd(unit.getDescription(), error);
        }
    }

    private Stream<Class<?>> loaded(ClassName name) {
        try {
            Class<?> test = Class.forName(name.asJavaName(), false, loader);
            if (LateCode.isIn(test)) {
                uncovered.add(name.asJavaName());
            }
            return Stream.of(test);
        } catch (ClassNotFoundException | LinkageError error) { // PIT leaves it out, too
            return Stream.of();
        }
    }

    /** The names of those that have failed, and are not expected to. */
    public synchronized List<String> failed() {
        return List.copyOf(failed);
    }

    /** The names of the classes that run what no coverage has: in JVMs that they start, or that live meanwhile, or {@link LateCode}. */
    public synchronized List<String> uncovered() {
        return List.copyOf(uncovered);
    }

    /** How many tests have ended. */
    public synchronized int count() {
        return ended.size();
    }

    @Override
    public synchronized void executionFinished(Description test, boolean passed, Throwable error) {
        ended.add(test.getQualifiedName());
        try {
            if (StartedProcesses.seen()) {
                uncovered.add(classOf(test));
            }
        } catch (IOException unknown) {
            uncovered.add(classOf(test));
        }
        if (!passed && !expected.test(test.getQualifiedName())) {
            failed.add(test.getQualifiedName());
        }
    }

    private String classOf(Description test) {
        String name = String.valueOf(test.getFirstTestClass()); // it may have none
        while (name.contains("$") && !classes.contains(ClassName.fromString(name))) { // it is in one of them
            name = name.substring(0, name.lastIndexOf('$'));
        }
        return name;
    }

    @Override
    public void executionStarted(Description test, boolean suppressed) {}

    @Override
    public void notifyEnd(Description test, Throwable error) {
        executionFinished(test, false, error);
    }

    @Override
    public void notifyEnd(Description test) {
        executionFinished(test, true, null);
    }

    @Override
    public void notifyStart(Description test) {}

    @Override
    public void notifySkipped(Description test) {}

    @Override
    public boolean shouldExit() {
        return false;
    }
}
