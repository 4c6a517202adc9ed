import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.pitest.boot.HotSwapAgent;
import org.pitest.mutationtest.DetectionStatus;
import org.pitest.mutationtest.MutationStatusTestPair;
import org.pitest.mutationtest.config.ClientPluginServices;
import org.pitest.mutationtest.config.MinionSettings;
import org.pitest.mutationtest.engine.MutationIdentifier;
import org.pitest.mutationtest.environment.TransformationPlugin;
import org.pitest.mutationtest.execute.CatchNewClassLoadersTransformer;
import org.pitest.mutationtest.execute.LoaderMinion;
import org.pitest.mutationtest.execute.MinionArguments;
import org.pitest.mutationtest.execute.MutatedFile;
import org.pitest.mutationtest.execute.Reporter;
import org.pitest.mutationtest.execute.StartedProcesses;
import org.pitest.mutationtest.execute.SuiteRun;
import org.pitest.util.ExitCode;
import org.pitest.util.Log;
import org.pitest.util.SafeDataInputStream;

/**
 * Tests one mutant after another with PIT's own minion, each with classes that no mutant before has touched.
 *
 * <p>Theory of operation. A JVM that begins cold is most of the price of a mutant, and a JVM that has tested a mutant may
 * have been changed by it. So each mutant gets a {@link ProjectLoader} of its own, which loads the project, its tests and
 * the libraries anew: whatever their static fields hold is gone with the loader. Only the JDK, PIT and the test framework
 * are shared, which makes them fast.
 *
 * <p>What a mutant can change beyond its loader is compared with what it was ({@link ProcessState}). An answer whose
 * "changed" is not empty is the last one of this JVM. A kill counts when the test that killed passes without the mutant,
 * in another loader of the same JVM: so it was not the JVM, nor the loader, that made it fail. One such control for each
 * test holds for the JVM's life. If others ran before that test, it must fail alone with the mutant, too: they run in an
 * order that is not the suite's. Where there is doubt the answer has no "status", and PIT's own minion in a new JVM decides;
 * so it does on time-outs, since in PIT's minion classes are loaded before the clock runs. Of the first mutant a test runs
 * without it before: what the test framework loads once in a JVM may take longer than PIT's time limit.
 *
 * <p>In a real run one test may compute what others use, or need what they leave. So where the tests that cover a mutant let
 * it survive, or a kill is not confirmed ("open" in the answer), all may decide ({@link SuiteRun}). With a survivor the answer
 * says what is "left" in static fields: by that the caller knows. Asked with a "suite" of classes alone, it tells how they run
 * without a mutant: which tests are "failing", the time in "ms", what is "left". Asked with these, too, it tests the mutant by
 * all others. They kill it if they do so twice, in loaders of their own, and pass without it.
 *
 * <p>Questions come on descriptor 0, answers go to descriptor 3; the tests have 1 and 2, which are both stderr.
 */
public final class Tester {
    private static final Set<DetectionStatus> CERTAIN = Set.of(
        DetectionStatus.KILLED, DetectionStatus.SURVIVED, DetectionStatus.NON_VIABLE);

    private static final long CONTROL_LIMIT_MS = 60_000;
    private static final long SUITE_LIMIT_MS = 1_800_000; // without a mutant; PIT has no limit there
    private static final int MARGIN = 3; // of all tests, beside PIT's limit: in a loader of their own

    private final List<File> projectPath;
    private final MinionSettings plugins = new MinionSettings(ClientPluginServices.makeForContextLoader());
    private final Set<String> passing = new HashSet<>(); // without a mutant, in this JVM
    private boolean warm;
    private final Set<List<String>> suitesPassing = new HashSet<>(); // without a mutant, in this JVM
    private final Path mutated; // a directory for mutated class files; null: they take their own places
    private final ProcessState state;
    private final StaticState fields;

    private Tester(List<File> projectPath, Path mutated) throws IOException, ReflectiveOperationException {
        this.projectPath = projectPath;
        this.mutated = mutated;
        for (TransformationPlugin plugin : ClientPluginServices.makeForContextLoader().findTransformations()) {
            HotSwapAgent.addTransformer(plugin.makeMutationTransformer());
        }
        HotSwapAgent.addTransformer(new CatchNewClassLoadersTransformer());
        Class.forName("org.pitest.mutationtest.execute.MutationTimeoutDecorator"); // its thread belongs to no mutant
        Log.getLogger(); // sets itself up, with a handler
        FileChannel.open(Path.of("/dev/null")).close(); // the JDK opens sockets for the first channel, and keeps them
        StartedProcesses.watch();
        fields = new StaticState();
        state = new ProcessState();
    }

    /** The arguments are the class path of the project, the whole class path, each as one text; a directory for mutated classes. */
    public static void main(String[] arguments) throws IOException, ReflectiveOperationException {
        PrintStream answers = new PrintStream(new FileOutputStream("/dev/fd/3"), true, "UTF-8");
        InputStream questions = System.in;
        System.setIn(new ByteArrayInputStream(new byte[0]));
        Path mutated = arguments.length == 2 ? null : Path.of(arguments[2]);
        System.setProperty("java.class.path", mutated == null ? arguments[1] : mutated + File.pathSeparator + arguments[1]);
        answers.println("msp-bridge: json lines");
        Tester tester = new Tester(ProjectLoader.files(List.of(arguments[0].split(File.pathSeparator))), mutated);
        answers.println("{\"id\": 0}");
        BufferedReader lines = new BufferedReader(new InputStreamReader(questions, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Map<?, ?> question = (Map<?, ?>) Json.read(line);
            Map<String, Object> answer = tester.answer(question);
            answer.put("id", ((Number) question.get("id")).longValue());
            answers.println(Json.write(answer));
        }
        Runtime.getRuntime().halt(0);
    }

    private Map<String, Object> answer(Map<?, ?> question) {
        Map<String, Object> answer = new HashMap<>();
        try {
            byte[] encoded = Base64.getDecoder().decode((String) question.get("arguments"));
            MinionArguments arguments = new SafeDataInputStream(new ByteArrayInputStream(encoded)).read(MinionArguments.class);
            if (question.get("suite") == null) {
                byCovering(arguments, answer);
            } else if (question.get("failing") == null) {
                withoutMutant(arguments, texts(question.get("suite")), answer);
            } else {
                byAll(arguments, question, answer);
            }
        } catch (Throwable error) { // also those of PIT's plug-ins and of the JVM
            answer.put("changed", List.of(error.toString()));
            answer.put("error", described(error));
        }
        return answer;
    }

    private void byCovering(MinionArguments arguments, Map<String, Object> answer) throws Exception {
        if (!warm) {
            pass(List.of(LoaderMinion.quickest(arguments)), arguments);
            passing.clear(); // that was before any mutant: it says nothing of what one leaves
            warm = true;
        }
        Outcome outcome = new Outcome();
        inLoader(arguments, minion -> {
            minion.run(outcome); // each test has its time limit
            outcome.left = outcome.killing().isEmpty() ? fields.of(minion.loader()) : null;
            outcome.done(ExitCode.OK);
        }, outcome, Long.MAX_VALUE);
        long settings = state.settings();
        boolean passes = !outcome.isCertain() || pass(outcome.killing(), arguments) && failAlone(outcome.killing(), arguments);
        List<Object> changed = changes(outcome);
        answer.put("changed", changed);
        if (!changed.contains(ProcessState.MEMORY) && outcome.isCertain()) { // PIT has a status for it
            answer.put("open", !passes);
            if (passes) {
                outcome.describe(answer);
            }
        }
        putLeft(outcome, settings, answer);
        answer.put("error", outcome.error);
    }

    private void withoutMutant(MinionArguments arguments, List<String> suite, Map<String, Object> answer) throws Exception {
        Set<Object> failing = new LinkedHashSet<>();
        long start = System.nanoTime();
        Outcome outcome = together(arguments, suite, name -> failing.add(name) || true, false, SUITE_LIMIT_MS);
        answer.put("ms", TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start));
        long settings = state.settings();
        answer.put("changed", changes(outcome));
        if (outcome.code == ExitCode.OK) {
            answer.put("failing", new ArrayList<>(failing));
            answer.put("uncovered", new ArrayList<Object>(outcome.all.uncovered()));
            putLeft(outcome, settings, answer);
        }
        answer.put("error", outcome.error);
    }

    private void byAll(MinionArguments arguments, Map<?, ?> question, Map<String, Object> answer) throws Exception {
        Set<String> failing = Set.copyOf(texts(question.get("failing")));
        List<String> suite = texts(question.get("suite"));
        long limit = MARGIN * LoaderMinion.limit(arguments, ((Number) question.get("ms")).longValue());
        Outcome first = together(arguments, suite, failing::contains, true, limit);
        List<Object> changed = changes(first);
        List<Object> killing = new ArrayList<>(first.code == ExitCode.OK ? first.all.failed() : List.of());
        boolean certain = first.code == ExitCode.OK;
        if (!killing.isEmpty()) {
            boolean isKnown = suitesPassing.contains(suite);
            Outcome control = isKnown ? first : together(arguments, suite, failing::contains, false, limit);
            boolean passes = isKnown || control.code == ExitCode.OK && control.all.failed().isEmpty();
            changed.addAll(control == first ? List.of() : changes(control));
            if (passes) {
                suitesPassing.add(suite);
            }
            Outcome second = passes ? together(arguments, suite, failing::contains, true, limit) : control;
            changed.addAll(second == control ? List.of() : changes(second));
            killing.retainAll(second.code == ExitCode.OK ? second.all.failed() : List.of());
            certain = !killing.isEmpty();
        }
        answer.put("changed", changed);
        if (certain && !changed.contains(ProcessState.MEMORY)) {
            answer.put("status", (killing.isEmpty() ? DetectionStatus.SURVIVED : DetectionStatus.KILLED).name());
            answer.put("killing", killing);
            answer.put("run", (long) first.all.count());
            answer.put("exit", first.code.name());
        }
        answer.put("error", first.error);
    }

    private Outcome together(
        MinionArguments arguments, List<String> suite, Predicate<String> expected, boolean mutated, long limitMs) throws Exception {
        Outcome outcome = new Outcome();
        inLoader(arguments, minion -> {
            boolean isReady = !mutated || minion.insert();
            outcome.all = minion.suite(isReady ? suite : List.of(), expected);
            outcome.left = mutated ? null : fields.of(minion.loader());
            outcome.done(isReady ? ExitCode.OK : ExitCode.UNKNOWN_ERROR);
        }, outcome, limitMs);
        outcome.done(ExitCode.TIMEOUT);
        return outcome;
    }

    private List<Object> changes(Outcome outcome) throws Exception {
        return outcome.code == ExitCode.OK ? state.changes() : new ArrayList<>(List.of(outcome.code.name()));
    }

    private static void putLeft(Outcome outcome, long settings, Map<String, Object> answer) {
        if (outcome.left != null) {
            outcome.left.put("", settings);
            answer.put("left", outcome.left);
        }
    }

    private static List<String> texts(Object list) {
        return ((List<?>) list).stream().map(String.class::cast).collect(Collectors.toList());
    }

    /** Whether the tests pass without the mutant in this JVM. */
    private boolean pass(List<String> killing, MinionArguments arguments) throws Exception {
        List<String> tests = LoaderMinion.known(killing, arguments);
        if (tests.isEmpty() && !killing.isEmpty()) {
            return false;
        }
        for (String test : tests) {
            if (!passing.contains(test)) {
                Outcome control = new Outcome();
                inLoader(arguments, minion -> control.done(minion.passes(test) ? ExitCode.OK : ExitCode.UNKNOWN_ERROR),
                    control, CONTROL_LIMIT_MS);
                if (control.code != ExitCode.OK) {
                    return false;
                }
                passing.add(test);
            }
        }
        return true;
    }

    /** Whether the tests fail with the mutant where no other has run before them. */
    private boolean failAlone(List<String> killing, MinionArguments arguments) throws Exception {
        boolean isFirst = killing.isEmpty() || killing.contains(LoaderMinion.first(arguments));
        for (String test : isFirst ? List.<String>of() : LoaderMinion.known(killing, arguments)) {
            Outcome alone = new Outcome();
            inLoader(arguments, minion -> alone.done(minion.insert() && !minion.passes(test) ? ExitCode.OK : ExitCode.UNKNOWN_ERROR),
                alone, CONTROL_LIMIT_MS);
            if (alone.code != ExitCode.OK) {
                return false;
            }
        }
        return true;
    }

    private void inLoader(MinionArguments arguments, Work work, Outcome outcome, long limitMs) throws Exception {
        MutatedFile swap = new MutatedFile(mutated);
        try (ProjectLoader loader = new ProjectLoader(projectPath)) {
            Thread thread = new Thread(state.newGroup(), () -> {
                try {
                    work.on(new LoaderMinion(plugins, arguments, loader, swap));
                } catch (Throwable error) { // also those of the JVM
                    outcome.error = described(error);
                    outcome.done(ExitCode.UNKNOWN_ERROR);
                }
            }, "main");
            SystemLoader.delegateTo(loader);
            thread.setContextClassLoader(loader);
            thread.start();
            outcome.done.await(limitMs, TimeUnit.MILLISECONDS);
        } finally {
            swap.restore();
            StartedProcesses.seen(); // others ask what was set
        }
    }

    private static String described(Throwable error) {
        StackTraceElement[] trace = error.getStackTrace();
        String place = trace.length == 0 ? "" : " (at " + trace[0] + ")";
        return error + place + (error.getCause() == null ? "" : ", caused by " + described(error.getCause()));
    }

    private interface Work {
        void on(LoaderMinion minion) throws Exception;
    }

    /** What PIT says about one mutant. Its watchdogs call {@link #done}, too. */
    private static final class Outcome implements Reporter {
        private final CountDownLatch done = new CountDownLatch(1);
        private volatile MutationStatusTestPair verdict;
        private volatile ExitCode code;
        private volatile String error; // that ended it
        private volatile SuiteRun all; // tests, if all were to run
        private volatile Map<String, Object> left; // in static fields

        @Override
        public void describe(MutationIdentifier mutant) {}

        @Override
        public void report(MutationIdentifier mutant, MutationStatusTestPair pair) {
            verdict = pair;
        }

        @Override
        public synchronized void done(ExitCode exit) {
            if (code == null) {
                code = exit;
                done.countDown();
            }
        }

        boolean isCertain() {
            return CERTAIN.contains(status());
        }

        List<String> killing() {
            return verdict == null ? List.of() : verdict.getKillingTests();
        }

        private DetectionStatus status() {
            return code != ExitCode.OK || verdict == null ? DetectionStatus.getForErrorExitCode(code) : verdict.getStatus();
        }

        void describe(Map<String, Object> answer) {
            answer.put("status", status().name());
            answer.put("killing", killing());
            answer.put("run", verdict == null ? 0L : (long) verdict.getNumberOfTestsRun());
            answer.put("exit", code.name());
        }
    }
}
