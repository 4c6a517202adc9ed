import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryType;
import java.net.Authenticator;
import java.net.CookieHandler;
import java.net.ProxySelector;
import java.net.ResponseCache;
import java.net.URLConnection;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.Security;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Properties;
import java.util.Set;
import java.util.TimeZone;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.ForkJoinWorkerThread;
import java.util.concurrent.TimeUnit;
import java.util.logging.LogManager;
import java.util.logging.Logger;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.management.MBeanServer;
import javax.management.MBeanServerFactory;

/**
 * What tests can change of a JVM, beside the static fields of classes that they load.
 *
 * <p>{@link #changes()} sets back what has a setter. It names what is else than it was, which nothing can set back: threads,
 * sockets, child processes, loggers, providers and other registries of the JDK, properties that configure the JDK.
 */
final class ProcessState {
    static final String MEMORY = "memory";

    private static final double FULL = 0.9; // of the heap: PIT's own limit
    private static final long ENDING_MS = 200; // for threads that were told to end
    private static final Set<String> OF_JDK = Set.of("java", "javax", "jdk", "sun", "com.sun", "JMImplementation");

    private final Properties properties = copyOf(System.getProperties());
    private final Locale locale = Locale.getDefault();
    private final Locale display = Locale.getDefault(Locale.Category.DISPLAY);
    private final Locale format = Locale.getDefault(Locale.Category.FORMAT);
    private final TimeZone zone = TimeZone.getDefault();
    private final PrintStream out = System.out;
    private final PrintStream err = System.err;
    private final InputStream in = System.in;
    private final Thread.UncaughtExceptionHandler handler = Thread.getDefaultUncaughtExceptionHandler();
    private final List<MemoryPoolMXBean> heap = ManagementFactory.getMemoryPoolMXBeans().stream()
        .filter(pool -> pool.getType() == MemoryType.HEAP && pool.isUsageThresholdSupported() && pool.getUsage().getMax() > 0)
        .collect(Collectors.toList());
    private final Map<String, Object> before;
    private final List<ThreadGroup> groups = new ArrayList<>();

    ProcessState() {
        heap.forEach(pool -> pool.setUsageThreshold((long) (pool.getUsage().getMax() * FULL)));
        before = registries();
    }

    /** A group for the threads of the next tests. */
    ThreadGroup newGroup() {
        groups.add(new ThreadGroup("main"));
        return groups.get(groups.size() - 1);
    }

    /** What {@link #changes()} sets back, as a number: what tests have set, others may read. */
    long settings() {
        Map<String, Object> now = new TreeMap<>();
        copyOf(System.getProperties()).forEach((name, value) -> now.put(name.toString(), value));
        return StaticState.textHash(Arrays.asList(now, Locale.getDefault(), Locale.getDefault(Locale.Category.DISPLAY),
            Locale.getDefault(Locale.Category.FORMAT), TimeZone.getDefault().getID(), System.out == out, System.err == err,
            System.in == in, Thread.getDefaultUncaughtExceptionHandler() == handler).toString());
    }

    /** Names what has changed for good since this was made. */
    List<Object> changes() throws IOException, InterruptedException {
        List<Object> found = new ArrayList<>();
        for (long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(ENDING_MS); threads() > 0; Thread.sleep(2)) {
            if (System.nanoTime() > end) {
                found.add("threads");
                break;
            }
        }
        groups.clear();
        Properties now = copyOf(System.getProperties());
        Stream.of(properties, now).flatMap(each -> each.stringPropertyNames().stream()).distinct()
            .filter(name -> isOfJdk(name) && !Objects.equals(now.get(name), properties.get(name))).forEach(found::add);
        setBack();
        Map<String, Object> after = registries();
        after.keySet().stream().filter(name -> !Objects.equals(before.get(name), after.get(name))).forEach(found::add);
        return found;
    }

    private long threads() {
        return groups.stream().flatMap(group -> {
            Thread[] alive = new Thread[group.activeCount() + 8];
            return Arrays.stream(alive, 0, group.enumerate(alive));
        }).filter(thread -> !isIdleWorker(thread)).count();
    }

    private static boolean isIdleWorker(Thread thread) {
        ForkJoinPool common = ForkJoinPool.commonPool();
        return thread instanceof ForkJoinWorkerThread && ((ForkJoinWorkerThread) thread).getPool() == common
            && common.isQuiescent();
    }

    private void setBack() {
        System.setProperties(copyOf(properties));
        Locale.setDefault(locale);
        Locale.setDefault(Locale.Category.DISPLAY, display);
        Locale.setDefault(Locale.Category.FORMAT, format);
        TimeZone.setDefault(zone);
        System.setOut(out);
        System.setErr(err);
        System.setIn(in);
        Thread.setDefaultUncaughtExceptionHandler(handler);
    }

    private Map<String, Object> registries() {
        Map<String, Object> found = new HashMap<>();
        found.put("security providers", Arrays.asList(Security.getProviders()));
        found.put("loggers", loggers());
        found.put("beans", beans());
        found.put("sockets", sockets());
        found.put("child processes", ProcessHandle.current().children().count());
        found.put(MEMORY, heap.stream().mapToLong(MemoryPoolMXBean::getUsageThresholdCount).sum());
        found.put("authenticator", Authenticator.getDefault());
        found.put("cookie handler", CookieHandler.getDefault());
        found.put("proxy selector", ProxySelector.getDefault());
        found.put("response cache", ResponseCache.getDefault());
        found.put("name map of files", URLConnection.getFileNameMap().getClass());
        return found;
    }

    private static Set<List<Object>> loggers() {
        LogManager manager = LogManager.getLogManager();
        return Collections.list(manager.getLoggerNames()).stream().map(manager::getLogger).filter(Objects::nonNull)
            .filter(logger -> logger.getLevel() != null || logger.getHandlers().length > 0 || logger.getFilter() != null)
            .map(ProcessState::described).collect(Collectors.toSet());
    }

    private static List<Object> described(Logger logger) {
        return Arrays.asList(logger.getName(), logger.getLevel(), logger.getFilter(), List.of(logger.getHandlers()));
    }

    private static Set<Object> beans() {
        Set<Object> found = new HashSet<>();
        for (MBeanServer server : MBeanServerFactory.findMBeanServer(null)) {
            server.queryNames(null, null).stream().filter(name -> !isOfJdk(name.getDomain())).forEach(found::add);
        }
        return found;
    }

    private static boolean isOfJdk(String name) {
        return OF_JDK.stream().anyMatch(each -> name.equals(each) || name.startsWith(each + "."));
    }

    /** Open sockets, where the system shows them. */
    private static Set<String> sockets() {
        Set<String> found = new TreeSet<>();
        String[] descriptors = new File("/proc/self/fd").list();
        for (String descriptor : descriptors == null ? new String[0] : descriptors) {
            try {
                found.add(Files.readSymbolicLink(Path.of("/proc/self/fd", descriptor)).toString());
            } catch (IOException error) {
                // closed since
            }
        }
        found.removeIf(link -> !link.startsWith("socket:"));
        return found;
    }

    private static Properties copyOf(Properties original) {
        Properties copy = new Properties();
        synchronized (original) {
            copy.putAll(original);
        }
        return copy;
    }
}
