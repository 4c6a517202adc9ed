import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import org.pitest.util.Log;

/**
 * Answers questions about the mutants of one module, as JSON lines: see `toolkit/json_lines.py`.
 *
 * <p>The questions, by what stands in "do": "open" with the "settings" comes first; "list" gives all mutants; "measure"
 * runs the tests without a mutant, as far as "kept" does not say what they cover; "arguments" gives what {@link Tester} needs for
 * the mutant "key", also before that, after a list and "foresee"; "test" tests it in a JVM of its own; "stop" ends the
 * test that question "of" has started, and is answered when its JVM is dead. All but "open" are answered in threads of their own.
 */
public final class PitHost {
    private final PrintStream answers;
    private final Map<Long, Job> jobs = new ConcurrentHashMap<>();
    private Analysis analysis;

    private PitHost(PrintStream answers) {
        this.answers = answers;
    }

    public static void main(String[] arguments) throws IOException {
        PrintStream answers = new PrintStream(new FileOutputStream(FileDescriptor.out), true, "UTF-8");
        InputStream questions = System.in;
        System.setOut(System.err);
        System.setIn(new ByteArrayInputStream(new byte[0]));
        answers.println("msp-bridge: json lines");
        new PitHost(answers).serve(questions);
        System.exit(0);
    }

    private void serve(InputStream questions) throws IOException {
        answer(0, new HashMap<>());
        BufferedReader lines = new BufferedReader(new InputStreamReader(questions, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Map<?, ?> question = (Map<?, ?>) Json.read(line);
            long id = ((Number) question.get("id")).longValue();
            Job job = new Job(question);
            jobs.put(id, job);
            Thread thread = new Thread(() -> answer(id, job.answer()));
            job.thread = thread;
            if ("open".equals(question.get("do"))) {
                thread.run();
            } else {
                thread.start();
            }
        }
    }

    private void answer(long id, Map<String, Object> answer) {
        answer.put("id", id);
        String line = Json.write(answer);
        synchronized (answers) {
            answers.println(line);
        }
        jobs.remove(id);
    }

    /** One question while it has no answer. */
    private final class Job {
        private final Map<?, ?> question;
        private volatile Thread thread;
        private ProcessHandle minion;
        private boolean stopped;

        Job(Map<?, ?> question) {
            this.question = question;
        }

        Map<String, Object> answer() {
            Warnings warnings = new Warnings();
            Log.getLogger().addHandler(warnings);
            try {
                return answered();
            } catch (Throwable error) { // also those of PIT's plug-ins and of the JVM: each is an answer
                Map<String, Object> answer = new HashMap<>();
                answer.put("error", error.getMessage() == null ? error.toString() : error.getMessage());
                answer.put("kind", error.getClass().getName());
                answer.put("printed", warnings.text());
                return answer;
            } finally {
                Log.getLogger().removeHandler(warnings);
            }
        }

        private Map<String, Object> answered() throws IOException, InterruptedException {
            Map<String, Object> answer = new HashMap<>();
            switch ((String) question.get("do")) {
                case "open":
                    analysis = new Analysis((Map<?, ?>) question.get("settings"));
                    break;
                case "list":
                    return analysis.list();
                case "foresee":
                    return analysis.foresee(question);
                case "measure":
                    return analysis.measure(question);
                case "arguments":
                    answer.put("arguments", analysis.arguments((String) question.get("key"), question.get("uncovered") == null));
                    break;
                case "test":
                    return analysis.test((String) question.get("key"), this::started);
                default:
                    Job job = jobs.get(((Number) question.get("of")).longValue());
                    if (job != null) {
                        job.stop();
                    }
            }
            return answer;
        }

        private synchronized void started(ProcessHandle process) {
            minion = process;
            if (stopped) {
                end();
            }
        }

        private void stop() throws InterruptedException {
            synchronized (this) {
                stopped = true;
                if (minion != null) {
                    end();
                }
            }
            thread.join();
        }

        private void end() {
            List.of(minion.descendants().toArray(ProcessHandle[]::new)).forEach(ProcessHandle::destroyForcibly);
            minion.destroyForcibly();
            minion.onExit().join();
        }
    }

    /** What PIT logs as a warning or worse. */
    private static final class Warnings extends Handler {
        private static final int LIMIT = 20_000;
        private final StringBuffer text = new StringBuffer();

        String text() {
            return text.toString();
        }

        @Override
        public void publish(LogRecord record) {
            if (record.getLevel().intValue() >= Level.WARNING.intValue() && text.length() < LIMIT) {
                text.append(record.getMessage()).append('\n');
            }
        }

        @Override
        public void flush() {}

        @Override
        public void close() {}
    }
}
