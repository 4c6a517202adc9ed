import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.pitest.classinfo.ClassName;
import org.pitest.coverage.BlockCoverage;
import org.pitest.coverage.BlockLocation;
import org.pitest.coverage.CoverageData;
import org.pitest.coverage.CoverageDatabase;
import org.pitest.coverage.TestInfo;
import org.pitest.mutationtest.engine.Location;

/** Which blocks of code the tests of each test class cover, as a value that can be kept as JSON. */
final class Coverage {
    private static final Comparator<TestInfo> BY_NAME = Comparator.comparing(TestInfo::getName);

    /** By the name of the test class. */
    final Map<String, OfClass> classes = new TreeMap<>();
    /** The digests of all classes of the project, by their names. */
    final Map<String, String> digests = new HashMap<>();

    /** One test class. */
    static final class OfClass {
        /** Of all that it depends on. */
        final String digest;
        final Map<TestInfo, List<BlockLocation>> tests;

        OfClass(String digest, Map<TestInfo, List<BlockLocation>> tests) {
            this.digest = digest;
            this.tests = tests;
        }

        Set<BlockLocation> blocks() {
            return tests.values().stream().flatMap(Collection::stream).collect(Collectors.toSet());
        }
    }

    /** What PIT has measured: by the name of the test class, the blocks of each test. */
    static Map<String, Map<TestInfo, List<BlockLocation>>> byClass(CoverageData measured) {
        Map<String, Map<TestInfo, List<BlockLocation>>> found = new HashMap<>();
        for (BlockCoverage covered : measured.createCoverage()) {
            for (TestInfo test : measured.getTestsForBlockLocation(covered.getBlock())) {
                found.computeIfAbsent(TestInfo.toDefiningClassName().apply(test).asJavaName(), any -> new LinkedHashMap<>())
                    .computeIfAbsent(test, any -> new ArrayList<>()).add(covered.getBlock());
            }
        }
        return found;
    }

    /** Like {@code measured}, with these tests in place of those that were measured; null: it says nothing but the tests. */
    CoverageDatabase over(CoverageDatabase measured) {
        Map<Object, Set<TestInfo>> tests = new HashMap<>();
        for (OfClass each : classes.values()) {
            each.tests.forEach((test, blocks) -> blocks.forEach(block -> {
                tests.computeIfAbsent(block, any -> new TreeSet<>(BY_NAME)).add(test);
                tests.computeIfAbsent(block.getLocation().getClassName(), any -> new TreeSet<>(BY_NAME)).add(test);
            }));
        }
        return (CoverageDatabase) Proxy.newProxyInstance(
            Coverage.class.getClassLoader(), new Class<?>[] {CoverageDatabase.class}, (proxy, method, arguments) -> {
                if (method.getName().equals("getTestsForBlockLocation") || method.getName().equals("getTestsForClass")) {
                    return tests.getOrDefault(arguments[0], Set.of());
                }
                try {
                    return method.invoke(measured, arguments);
                } catch (InvocationTargetException error) {
                    throw error.getCause();
                }
            });
    }

    /** How many pairs of a test and a block there are. */
    long size() {
        return classes.values().stream().flatMap(each -> each.tests.values().stream()).mapToLong(List::size).sum();
    }

    /** As JSON. */
    Map<String, Object> written() {
        Map<BlockLocation, Integer> numbers = new LinkedHashMap<>();
        Map<String, Object> written = new HashMap<>();
        classes.forEach((name, each) -> {
            List<Object> tests = new ArrayList<>();
            each.tests.forEach((test, blocks) -> tests.add(List.of(
                test.getName(), (long) test.getTime(), (long) test.getNumberOfBlocksCovered(),
                blocks.stream().map(block -> numbers.computeIfAbsent(block, any -> numbers.size()).toString())
                    .collect(Collectors.joining(" ")))));
            written.put(name, List.of(each.digest, tests));
        });
        List<Object> blocks = numbers.keySet().stream().map(block -> List.of(
            block.getLocation().getClassName().asJavaName(), block.getLocation().getMethodName(),
            block.getLocation().getMethodDesc(), (long) block.getBlock())).collect(Collectors.toList());
        return new HashMap<>(Map.of("classes", written, "blocks", blocks, "digests", new HashMap<Object, Object>(digests)));
    }

    /** Reads what {@link #written()} gives; {@code testee} is PIT's guess of what a test class is about. */
    static Coverage read(Map<?, ?> written, Function<String, Optional<ClassName>> testee) {
        Coverage coverage = new Coverage();
        ((Map<?, ?>) written.get("digests")).forEach((name, digest) -> coverage.digests.put((String) name, (String) digest));
        List<BlockLocation> blocks = new ArrayList<>();
        for (Object each : (List<?>) written.get("blocks")) {
            List<?> fields = (List<?>) each;
            Location location = new Location(
                ClassName.fromString((String) fields.get(0)), (String) fields.get(1), (String) fields.get(2));
            blocks.add(new BlockLocation(location, ((Number) fields.get(3)).intValue()));
        }
        ((Map<?, ?>) written.get("classes")).forEach((name, each) -> {
            OfClass found = new OfClass((String) ((List<?>) each).get(0), new LinkedHashMap<>());
            for (Object test : (List<?>) ((List<?>) each).get(1)) {
                List<?> fields = (List<?>) test;
                List<BlockLocation> covered = new ArrayList<>();
                for (String number : ((String) fields.get(3)).split(" ")) {
                    covered.add(blocks.get(Integer.parseInt(number)));
                }
                found.tests.put(new TestInfo((String) name, (String) fields.get(0), ((Number) fields.get(1)).intValue(),
                    testee.apply((String) name), ((Number) fields.get(2)).intValue()), covered);
            }
            coverage.classes.put((String) name, found);
        });
        return coverage;
    }
}
