import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.pitest.bytecode.analysis.ClassTree;
import org.pitest.classpath.CodeSource;
import org.pitest.coverage.BlockLocation;
import org.pitest.coverage.CoverageData;
import org.pitest.coverage.CoverageDatabase;
import org.pitest.coverage.TestInfo;
import org.pitest.mutationtest.build.TestPrioritiser;
import org.pitest.mutationtest.build.TestPrioritiserFactory;
import org.pitest.mutationtest.engine.Location;

/**
 * Decides which test classes are measured, and adds what was kept of the others.
 *
 * <p>Theory of operation. What a test class covers is kept under a digest of all that it can run ({@link Reach}), or of the
 * whole tree where that is not known. So a test class is measured again when that has changed. Four things are not said by
 * its own reach:
 *
 * <ul><li>A test class may have run a class that is not in its reach: then it depends on the whole tree from then on.
 * <li>A class that is new or changed, and in no reach, may be run nevertheless: then all test classes are measured.
 * <li>PIT runs all tests in one JVM. What is done once in it, such as a static initializer, is covered by the first test that
 *     needs it, and by no other. So if the measured test classes cover a block of an unchanged class no more that they, or those
 *     that are gone, have covered before, another one may be the first now. If one that was not measured can run that class, all
 *     are measured. If they cover a block that one other test alone has covered, that one may be the second now, and its class is
 *     measured with them. What only static initializers run is left out: such a test covers too much, not too little.
 * <li>A test may pass only after others, which set something for it. So if one fails among some test classes, all are
 *     measured, as for a new server.</ul>
 *
 * <p>Where fewer tests run before a test class than in a run of all, it covers more, not less.
 */
final class Measurement {
    /** More test classes must be measured: these, or all if there are none. */
    private static final class Incomplete extends RuntimeException {
        private static final long serialVersionUID = 1L;
        private final transient Set<String> classes;

        Incomplete(Set<String> classes) {
            this.classes = classes;
        }
    }

    private static final long MOST = 4_000_000; // pairs of a test and a block: 30 MB

    private final Reach reach;
    private final Map<String, String> digests;
    private final String tree;
    private final Map<?, ?> kept; // null: nothing
    private boolean everything;
    private Set<String> required = Set.of(); // whatever was kept
    private Coverage before;
    private Set<String> names = Set.of();
    private final Set<String> measured = new HashSet<>();
    private Coverage coverage;

    /** {@code tree} is a digest of all files of the project. */
    Measurement(Reach reach, String tree, Map<?, ?> kept) {
        this.reach = reach;
        this.digests = reach.digests();
        this.tree = tree;
        this.kept = kept;
    }

    /** What can be kept; null where it is too much, or PIT names tests of classes that it was not told to run. */
    Map<String, Object> keepable() {
        if (coverage == null || coverage.size() > MOST) {
            return null;
        }
        Map<String, Object> written = coverage.written();
        written.put("tree", tree);
        return written;
    }

    /** Like {@code code}, with those test classes alone that must be measured. */
    CodeSource limited(CodeSource code) {
        return (CodeSource) Proxy.newProxyInstance(
            Measurement.class.getClassLoader(), new Class<?>[] {CodeSource.class}, (proxy, method, arguments) -> {
                try {
                    Object answer = method.invoke(code, arguments);
                    return method.getName().equals("testTrees") ? chosen(code, (Stream<?>) answer) : answer;
                } catch (InvocationTargetException error) {
                    throw error.getCause();
                }
            });
    }

    private Stream<ClassTree> chosen(CodeSource code, Stream<?> trees) {
        List<ClassTree> all = trees.map(ClassTree.class::cast).collect(Collectors.toList());
        names = all.stream().map(Measurement::nameOf).collect(Collectors.toSet());
        before = kept == null ? new Coverage() : Coverage.read(kept, code::findTestee);
        everything |= digests.keySet().stream().filter(name -> !isUnchanged(name)).anyMatch(
            name -> names.stream().noneMatch(test -> runs(test, name)));
        measured.clear();
        names.stream().filter(name -> everything || required.contains(name) || !isCurrent(name)).forEach(measured::add);
        return all.stream().filter(each -> measured.contains(nameOf(each)));
    }

    private static String nameOf(ClassTree tree) {
        return tree.name().asJavaName();
    }

    private boolean isUnchanged(String name) {
        return digests.containsKey(name) && digests.get(name).equals(before.digests.get(name));
    }

    private boolean isCurrent(String name) {
        Coverage.OfClass found = before.classes.get(name);
        return found != null && (found.digest.equals(tree) || found.digest.equals(reach.digest(name)));
    }

    /** Whether the test class can run the class, as far as that is known. */
    private boolean runs(String test, String name) {
        Set<String> reached = reach.of(test);
        return reached != null && reached.contains(name);
    }

    /** Like {@code factory}, with the coverage of all test classes. Its product throws {@link Incomplete}: then PIT must run again. */
    TestPrioritiserFactory completing(TestPrioritiserFactory factory) {
        return new TestPrioritiserFactory() {
            @Override
            public TestPrioritiser makeTestPrioritiser(Properties properties, CodeSource code, CoverageDatabase data) {
                // before the tests are measured there is another, empty one
                return factory.makeTestPrioritiser(
                    properties, code, data instanceof CoverageData ? completed((CoverageData) data) : data);
            }

            @Override
            public String description() {
                return factory.description();
            }
        };
    }

    private CoverageDatabase completed(CoverageData data) {
        Map<String, Map<TestInfo, List<BlockLocation>>> found = Coverage.byClass(data);
        if (!names.containsAll(found.keySet())) {
            if (measured.size() < names.size()) {
                throw new Incomplete(Set.of());
            }
            return data;
        }
        Coverage all = new Coverage();
        all.digests.putAll(digests);
        for (String name : names) {
            all.classes.put(name, measured.contains(name)
                ? ofClass(name, found.getOrDefault(name, Map.of())) : before.classes.get(name));
        }
        Set<String> overtaken = overtaken(all);
        if (!overtaken.isEmpty() || isIncomplete(all)) {
            throw new Incomplete(overtaken);
        }
        coverage = all;
        return all.over(data);
    }

    /** Has more test classes measured next time, after this error; false: all were. */
    boolean widen(RuntimeException error) {
        Set<String> more = error instanceof Incomplete ? ((Incomplete) error).classes : Set.of();
        everything |= more.isEmpty() || !required.isEmpty();
        required = more;
        return measured.size() < names.size();
    }

    private Coverage.OfClass ofClass(String name, Map<TestInfo, List<BlockLocation>> tests) {
        boolean known = reach.of(name) != null
            && tests.values().stream().flatMap(List::stream).allMatch(block -> runs(name, classOf(block)));
        return new Coverage.OfClass(known ? reach.digest(name) : tree, tests);
    }

    private boolean isIncomplete(Coverage now) {
        Set<BlockLocation> lost = new HashSet<>();
        before.classes.forEach((name, each) -> {
            if (measured.contains(name) || !names.contains(name)) {
                lost.addAll(each.blocks());
            }
        });
        measured.forEach(name -> lost.removeAll(now.classes.get(name).blocks()));
        Set<String> classes = lost.stream().map(Measurement::classOf)
            .filter(this::isUnchanged).collect(Collectors.toSet());
        return names.stream().filter(name -> !measured.contains(name)).anyMatch(
            test -> reach.of(test) == null ? !classes.isEmpty() : classes.stream().anyMatch(name -> runs(test, name)));
    }

    /** Test classes that were not measured, one test of which alone ran what a measured one runs now. */
    private Set<String> overtaken(Coverage now) {
        Map<BlockLocation, Integer> tests = new HashMap<>(); // how many
        before.classes.values().forEach(each -> each.tests.values().forEach(
            blocks -> blocks.forEach(block -> tests.merge(block, 1, Integer::sum))));
        Set<String> ignored = reach.initializers.methods();
        Set<BlockLocation> once = measured.stream().flatMap(name -> now.classes.get(name).blocks().stream())
            .filter(block -> tests.getOrDefault(block, 0) == 1 && !ignored.contains(methodOf(block)))
            .collect(Collectors.toSet());
        return names.stream().filter(name -> !measured.contains(name))
            .filter(name -> before.classes.get(name).blocks().stream().anyMatch(once::contains)).collect(Collectors.toSet());
    }

    private static String methodOf(BlockLocation block) {
        Location method = block.getLocation();
        return method.getClassName().asInternalName() + "." + method.getMethodName() + method.getMethodDesc();
    }

    private static String classOf(BlockLocation block) {
        return block.getLocation().getClassName().asJavaName();
    }
}
