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
import java.util.Base64;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
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
import org.pitest.mutationtest.execute.Reporter;
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
 * test holds for the JVM's life. Where there is doubt the answer has no "status", and PIT's own minion in a new JVM decides;
 * so it does on time-outs, since in PIT's minion classes are loaded before the clock runs. Of the first mutant a test runs
 * without it before: what the test framework loads once in a JVM may take longer than PIT's time limit.
 *
 * <p>Questions come on descriptor 0, answers go to descriptor 3; the tests have 1 and 2, which are both stderr.
 */
public final class Tester {
    private static final Set<DetectionStatus> CERTAIN = Set.of(
        DetectionStatus.KILLED, DetectionStatus.SURVIVED, DetectionStatus.NON_VIABLE);

    private static final long CONTROL_LIMIT_S = 60;

    private final List<File> projectPath;
    private final MinionSettings plugins = new MinionSettings(ClientPluginServices.makeForContextLoader());
    private final Set<String> passing = new HashSet<>(); // without a mutant, in this JVM
    private boolean warm;
    private final ProcessState state;

    private Tester(List<File> projectPath) throws IOException, ReflectiveOperationException {
        this.projectPath = projectPath;
        for (TransformationPlugin plugin : ClientPluginServices.makeForContextLoader().findTransformations()) {
            HotSwapAgent.addTransformer(plugin.makeMutationTransformer());
        }
        HotSwapAgent.addTransformer(new CatchNewClassLoadersTransformer());
        Class.forName("org.pitest.mutationtest.execute.MutationTimeoutDecorator"); // its thread belongs to no mutant
        Log.getLogger(); // sets itself up, with a handler
        FileChannel.open(Path.of("/dev/null")).close(); // the JDK opens sockets for the first channel, and keeps them
        state = new ProcessState();
    }

    /** The arguments are the class path of the project, then the whole class path, each as one text. */
    public static void main(String[] arguments) throws IOException, ReflectiveOperationException {
        PrintStream answers = new PrintStream(new FileOutputStream("/dev/fd/3"), true, "UTF-8");
        InputStream questions = System.in;
        System.setIn(new ByteArrayInputStream(new byte[0]));
        System.setProperty("java.class.path", arguments[1]);
        answers.println("msp-bridge: json lines");
        Tester tester = new Tester(ProjectLoader.files(List.of(arguments[0].split(File.pathSeparator))));
        answers.println("{\"id\": 0}");
        BufferedReader lines = new BufferedReader(new InputStreamReader(questions, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Map<?, ?> question = (Map<?, ?>) Json.read(line);
            Map<String, Object> answer = tester.answer((String) question.get("arguments"));
            answer.put("id", ((Number) question.get("id")).longValue());
            answers.println(Json.write(answer));
        }
        Runtime.getRuntime().halt(0);
    }

    private Map<String, Object> answer(String encoded) {
        Map<String, Object> answer = new HashMap<>();
        try {
            MinionArguments arguments = new SafeDataInputStream(
                new ByteArrayInputStream(Base64.getDecoder().decode(encoded))).read(MinionArguments.class);
            if (!warm) {
                pass(List.of(LoaderMinion.quickest(arguments)), arguments);
                passing.clear(); // that was before any mutant: it says nothing of what one leaves
                warm = true;
            }
            Outcome outcome = new Outcome();
            inLoader(arguments, minion -> {
                minion.run(outcome); // each test has its time limit
                outcome.done(ExitCode.OK);
            }, outcome, Long.MAX_VALUE);
            boolean certain = outcome.isCertain() && pass(outcome.killing(), arguments);
            List<Object> changed = outcome.code == ExitCode.OK ? state.changes() : List.of(outcome.code.name());
            answer.put("changed", changed);
            if (certain && !changed.contains(ProcessState.MEMORY)) { // PIT has a status for it
                outcome.describe(answer);
            }
            answer.put("error", outcome.error);
        } catch (Throwable error) { // also those of PIT's plug-ins and of the JVM
            answer.put("changed", List.of(error.toString()));
            answer.put("error", described(error));
        }
        return answer;
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
                    control, CONTROL_LIMIT_S);
                if (control.code != ExitCode.OK) {
                    return false;
                }
                passing.add(test);
            }
        }
        return true;
    }

    private void inLoader(MinionArguments arguments, Work work, Outcome outcome, long limitS) throws Exception {
        try (ProjectLoader loader = new ProjectLoader(projectPath)) {
            Thread thread = new Thread(state.newGroup(), () -> {
                try {
                    work.on(new LoaderMinion(plugins, arguments, loader));
                } catch (Throwable error) { // also those of the JVM
                    outcome.error = described(error);
                    outcome.done(ExitCode.UNKNOWN_ERROR);
                }
            }, "main");
            SystemLoader.delegateTo(loader);
            thread.setContextClassLoader(loader);
            thread.start();
            outcome.done.await(limitS, TimeUnit.SECONDS);
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
