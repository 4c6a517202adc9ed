import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.pitest.classinfo.ClassName;
import org.pitest.classpath.ClassPathByteArraySource;
import org.pitest.classpath.CodeSource;
import org.pitest.classpath.ProjectClassPaths;
import org.pitest.coverage.TestInfo;
import org.pitest.mutationtest.ClassMutationResults;
import org.pitest.mutationtest.DetectionStatus;
import org.pitest.mutationtest.EngineArguments;
import org.pitest.mutationtest.ListenerArguments;
import org.pitest.mutationtest.MutationConfig;
import org.pitest.mutationtest.MutationResult;
import org.pitest.mutationtest.MutationResultListener;
import org.pitest.mutationtest.MutationResultListenerFactory;
import org.pitest.mutationtest.MutationStatusMap;
import org.pitest.mutationtest.TimeoutLengthStrategy;
import org.pitest.mutationtest.build.DefaultTestPrioritiser;
import org.pitest.mutationtest.build.MutationGrouper;
import org.pitest.mutationtest.build.MutationGrouperFactory;
import org.pitest.mutationtest.build.PercentAndConstantTimeoutStrategy;
import org.pitest.mutationtest.build.TestPrioritiser;
import org.pitest.mutationtest.build.TestPrioritiserFactory;
import org.pitest.mutationtest.build.WorkerFactory;
import org.pitest.mutationtest.config.PluginServices;
import org.pitest.mutationtest.config.ReportOptions;
import org.pitest.mutationtest.config.SettingsFactory;
import org.pitest.mutationtest.engine.MutationDetails;
import org.pitest.mutationtest.engine.MutationIdentifier;
import org.pitest.mutationtest.execute.MinionArguments;
import org.pitest.mutationtest.execute.MutationTestProcess;
import org.pitest.mutationtest.tooling.AnalysisResult;
import org.pitest.mutationtest.tooling.EntryPoint;
import org.pitest.mutationtest.tooling.JarCreatingJarFinder;
import org.pitest.process.LaunchOptions;
import org.pitest.reloc.asm.ClassReader;
import org.pitest.reloc.asm.ClassVisitor;
import org.pitest.reloc.asm.Opcodes;
import org.pitest.util.ExitCode;
import org.pitest.util.SafeDataOutputStream;

/**
 * The mutants of one module, as PIT finds them, and what its own minions say about one of them.
 *
 * <p>PIT's entry point does everything up to the analysis: it finds the mutants, runs its filters, and measures which
 * tests cover which mutant. Then it asks a "grouper" in which groups the mutants are to be tested. Ours keeps them, and
 * ends the run there. PIT asks twice: first before the tests are measured, without filters, so that it can stop where
 * there is nothing to do; then with everything. To list mutants, the entry point is called with no test class at all.
 *
 * <p>Used are only those parts of PIT that are the same in 1.17 and 1.25.
 */
final class Analysis {
    static final String ENGINE = "gregor";
    private static final int MOST_GUESSED = 3; // files
    private static final String NO_TEST = "msp.bridge.no.such.Test";

    private final Options options;
    private final PluginServices plugins = PluginServices.makeForContextLoader();
    private final Map<String, MutationDetails> listed = new LinkedHashMap<>();
    private volatile Map<String, MutationDetails> mutants = Map.of(); // with tests: of `kept` or likely ones, later all
    private boolean measured;
    private List<Object> suite; // the names of all test classes
    private Map<?, ?> kept; // of an answer's "keep"
    private EngineArguments engine;
    private JarCreatingJarFinder agent;
    private WorkerFactory workers;

    Analysis(Map<?, ?> settings) {
        options = new Options(settings);
    }

    /** The "mutants", without their tests, and the "debug" texts of their classes. */
    synchronized Map<String, Object> list() {
        ReportOptions untested = options.of("jvmArgs");
        untested.setTargetTests(List.of(NO_TEST::equals));
        listed.putAll(mutants(untested, null).byKey());
        ClassPathByteArraySource classes = new ClassPathByteArraySource(untested.getClassPath());
        Map<String, Object> debug = new HashMap<>();
        listed.values().stream().map(MutationDetails::getClassName).distinct()
            .forEach(name -> classes.getBytes(name.asJavaName()).ifPresent(bytes -> new ClassReader(bytes).accept(
                new ClassVisitor(Opcodes.ASM9) {
                    @Override
                    public void visitSource(String file, String text) {
                        if (text != null) {
                            debug.put(name.asJavaName(), text);
                        }
                    }
                }, ClassReader.SKIP_CODE)));
        return new HashMap<>(Map.of("mutants", listed.values().stream().map(Analysis::described).collect(Collectors.toList()),
            "debug", debug));
    }

    /**
     * Has {@link #arguments} take the tests that have covered a mutant of {@link #list} before, as "kept" says; gives "agent".
     *
     * <p>Without "kept" it takes tests that are likely to kill the mutants of "keys", as far as they cover them. They are measured
     * before all tests are, not meanwhile: a test that runs twice at once may be in its own way.
     */
    synchronized Map<String, Object> foresee(Map<?, ?> question) {
        kept = (Map<?, ?>) question.get("kept");
        if (kept == null) {
            mutants = guessed((List<?>) question.get("keys"));
        } else {
            Coverage coverage = Coverage.read(kept, Analysis::testee);
            TestPrioritiser prioritiser = new DefaultTestPrioritiser(coverage.over(null));
            listed.values().forEach(mutant -> mutant.addTestsInOrder(prioritiser.assignTests(mutant)));
            mutants = listed;
        }
        return new HashMap<>(Map.of("agent", agent()));
    }

    /** The mutants in the same files as these, with those likely tests that cover them; none for many files. */
    private Map<String, MutationDetails> guessed(List<?> keys) {
        Set<String> classes = keys.stream().map(listed::get).filter(Objects::nonNull)
            .map(mutant -> LikelyTests.top(mutant.getClassName().asJavaName())).collect(Collectors.toSet());
        try {
            Set<String> likely = classes.size() > MOST_GUESSED ? Set.of()
                : LikelyTests.of(classes, Path.of(options.texts("classPath").get(0)));
            if (likely.isEmpty()) {
                return Map.of();
            }
            ReportOptions some = options.of("quickJvmArgs");
            Collection<Predicate<String>> all = some.getTargetTests();
            some.setTargetClasses(classes.stream().flatMap(name -> Stream.of(name, name + "$*")).collect(Collectors.toList()));
            some.setTargetTests(List.of(test -> likely.contains(test) && all.stream().anyMatch(each -> each.test(test))));
            return mutants(some, null).byKey();
        } catch (IOException | RuntimeException error) {
            return Map.of(); // all tests will say what is wrong, if they do not pass either
        }
    }

    private static Optional<ClassName> testee(String test) {
        return Optional.of(ClassName.fromString(test.replaceAll("Tests?$", "")));
    }

    /**
     * Runs the tests without a mutant: the "names" of tests, for each mutant's key numbers of its "tests", and the "suite".
     *
     * <p>With "tree", a digest of all files, those test classes alone that have changed since "kept": an answer's "keep", if
     * {@link #foresee} had none.
     */
    synchronized Map<String, Object> measure(Map<?, ?> question) throws IOException {
        Map<String, Object> answer = new HashMap<>();
        String jar = agent();
        if (!measured) {
            Measurement measurement = question.get("tree") == null ? null : new Measurement(
                new Reach(ProjectLoader.files(options.texts("classPath"))), (String) question.get("tree"),
                kept == null ? (Map<?, ?>) question.get("kept") : kept);
            Captured found = covered(options.of("quickJvmArgs"), measurement);
            mutants = found.byKey();
            suite = found.suite;
            measured = true;
            answer.put("keep", measurement == null ? null : measurement.keepable());
        }
        Map<String, Long> numbers = new LinkedHashMap<>();
        Map<String, Object> tests = new LinkedHashMap<>();
        mutants.forEach((key, mutant) -> tests.put(key, mutant.getTestsInOrder().stream()
            .map(test -> numbers.computeIfAbsent(test.getName(), name -> (long) numbers.size()))
            .collect(Collectors.toList())));
        answer.put("names", new ArrayList<Object>(numbers.keySet()));
        answer.put("tests", tests);
        answer.put("agent", jar);
        answer.put("suite", suite);
        return answer;
    }

    private String agent() {
        if (workers == null) {
            workers = workers(options.of("jvmArgs"));
        }
        return agent.getJarLocation().orElseThrow();
    }

    /** The arguments of PIT's minion for the mutant, for a {@link Tester}; null where no test covers it that needs to. */
    String arguments(String key, boolean needsCoverage) {
        MutationDetails mutant = mutants.get(key);
        if (mutant == null || (needsCoverage && mutant.getTestsInOrder().isEmpty())) {
            return null;
        }
        ReportOptions options = this.options.of("jvmArgs");
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        new SafeDataOutputStream(bytes).write(new MinionArguments(List.of(mutant), testClasses(mutant), ENGINE, engine, timeLimit(options),
            options.getVerbosity(), options.isFullMutationMatrix(), options.createMinionSettings()));
        return Base64.getEncoder().encodeToString(bytes.toByteArray());
    }

    /** Tests the mutant in a JVM of its own, which `started` gets. Needs {@link #measure()}. */
    Map<String, Object> test(String key, Consumer<ProcessHandle> started) throws IOException, InterruptedException {
        MutationDetails mutant = mutants.get(key);
        MutationStatusMap statuses = new MutationStatusMap();
        statuses.setStatusForMutations(List.of(mutant), DetectionStatus.NOT_STARTED);
        MutationTestProcess minion = workers.createWorker(List.of(mutant), testClasses(mutant));
        synchronized (this) { // all that starts other children has the lock, too
            List<ProcessHandle> before = ProcessHandle.current().children().collect(Collectors.toList());
            minion.start();
            ProcessHandle.current().children().filter(child -> !before.contains(child)).forEach(started);
        }
        ExitCode code = minion.waitToDie();
        minion.results(statuses);
        MutationResult result = statuses.createMutationResults().get(0);
        DetectionStatus status = result.getStatus();
        if (status == DetectionStatus.NOT_STARTED || status == DetectionStatus.STARTED) {
            status = code.isOk() ? DetectionStatus.RUN_ERROR : DetectionStatus.getForErrorExitCode(code);
        }
        Map<String, Object> answer = new HashMap<>();
        answer.put("status", status.name());
        answer.put("killing", new ArrayList<>(result.getKillingTests()));
        answer.put("run", (long) result.getNumberOfTestsRun());
        answer.put("exit", code.name());
        return answer;
    }

    private Captured covered(ReportOptions options, Measurement measurement) {
        while (true) {
            try {
                return mutants(options, measurement);
            } catch (RuntimeException error) { // it is incomplete; or a test fails that needs what another one leaves
                if (measurement == null || !measurement.widen(error)) {
                    throw error;
                }
            }
        }
    }

    private Captured mutants(ReportOptions options, Measurement measurement) {
        Captured captured = new Captured();
        SettingsFactory factory = new SettingsFactory(options, plugins) {
            @Override
            public MutationGrouperFactory getMutationGrouper() {
                return captured;
            }

            @Override
            public MutationResultListenerFactory createListener() {
                return new NoListener();
            }

            @Override
            public CodeSource createCodeSource(ProjectClassPaths paths) {
                CodeSource code = super.createCodeSource(paths);
                captured.suite = code.testTrees().map(tree -> tree.name().asJavaName()).collect(Collectors.toList());
                return measurement == null ? code : measurement.limited(code);
            }

            @Override
            public TestPrioritiserFactory getTestPrioritiser() {
                return measurement == null ? super.getTestPrioritiser() : measurement.completing(super.getTestPrioritiser());
            }
        };
        try {
            AnalysisResult result = new EntryPoint().execute(this.options.base(), options, factory, this.options.environment());
            result.getError().ifPresent(error -> {
                throw new IllegalStateException(error);
            });
        } catch (Complete complete) {
            // the grouper has ended the run
        }
        captured.found.sort(Comparator.comparing(MutationDetails::getId));
        return captured;
    }

    private WorkerFactory workers(ReportOptions options) {
        SettingsFactory factory = new SettingsFactory(options, plugins);
        factory.createUpdater().updateConfig(null, options);
        agent = new JarCreatingJarFinder(new ClassPathByteArraySource(options.getClassPath()));
        engine = EngineArguments.arguments()
            .withExcludedMethods(options.getExcludedMethods()).withMutators(options.getMutators());
        LaunchOptions launch = new LaunchOptions(
            agent, factory.getJavaExecutable(), options.getJvmArgs(), this.options.environment());
        return new WorkerFactory(this.options.base(), options.createMinionSettings(),
            new MutationConfig(factory.createEngine().createEngine(engine), launch), engine, timeLimit(options),
            options.getVerbosity(), options.isFullMutationMatrix(), options.getClassPath().getLocalClassPath());
    }

    private static TimeoutLengthStrategy timeLimit(ReportOptions options) {
        return new PercentAndConstantTimeoutStrategy(options.getTimeoutFactor(), options.getTimeoutConstant());
    }

    private static Collection<ClassName> testClasses(MutationDetails mutant) {
        return mutant.getTestsInOrder().stream().map(TestInfo.toDefiningClassName()).collect(Collectors.toSet());
    }

    static String key(MutationDetails mutant) {
        MutationIdentifier id = mutant.getId();
        return id.getClassName().asJavaName() + "." + id.getLocation().getMethodName() + id.getLocation().getMethodDesc()
            + id.getIndexes() + id.getMutator();
    }

    private static Map<String, Object> described(MutationDetails mutant) {
        Map<String, Object> fields = new HashMap<>();
        fields.put("key", key(mutant));
        fields.put("class", mutant.getClassName().asJavaName());
        fields.put("package", mutant.getClassName().getPackage().asJavaName());
        fields.put("file", mutant.getFilename());
        fields.put("line", (long) mutant.getLineNumber());
        fields.put("mutator", mutant.getMutator());
        fields.put("description", mutant.getDescription());
        return fields;
    }

    /** Ends PIT's run when the mutants are known. */
    private static final class Complete extends RuntimeException {
        private static final long serialVersionUID = 1L;
    }

    private static final class Captured implements MutationGrouperFactory, MutationGrouper {
        private final List<MutationDetails> found = new ArrayList<>();
        private List<Object> suite;
        private boolean scanned;

        Map<String, MutationDetails> byKey() {
            Map<String, MutationDetails> mutants = new LinkedHashMap<>();
            found.forEach(mutant -> mutants.put(key(mutant), mutant));
            return mutants;
        }

        @Override
        public MutationGrouper makeFactory(Properties properties, CodeSource code, int threads, int size) {
            return this;
        }

        @Override
        public List<List<MutationDetails>> groupMutations(
            Collection<ClassName> classes, Collection<MutationDetails> mutants) {
            if (scanned) {
                found.addAll(mutants);
                throw new Complete();
            }
            scanned = true;
            return List.of(new ArrayList<>(mutants));
        }

        @Override
        public String description() {
            return "keeps the mutants";
        }
    }

    private static final class NoListener implements MutationResultListenerFactory, MutationResultListener {
        @Override
        public MutationResultListener getListener(Properties properties, ListenerArguments arguments) {
            return this;
        }

        @Override
        public void runStart() {}

        @Override
        public void handleMutationResult(ClassMutationResults results) {}

        @Override
        public void runEnd() {}

        @Override
        public String name() {
            return "none";
        }

        @Override
        public String description() {
            return "reports nothing";
        }
    }
}
