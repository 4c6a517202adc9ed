import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * The test classes that are likely to kill the mutants of a class, before it is known what any test covers.
 *
 * <p>They are those that have the name of the class in theirs ({@code StringUtilsContainsTest}), else those that use the class.
 * Where they are many of all, or all are few, there are none: then it is soon known of all.
 */
final class LikelyTests {
    private static final int FEW = 20; // test classes
    private static final int MOST = 4; // one in four of them
    private static final String SUFFIX = ".class";

    private LikelyTests() {}

    /** The names of such classes in the directory {@code tests}; {@code names} are of classes at the top of their files. */
    static Set<String> of(Set<String> names, Path tests) throws IOException {
        Map<String, Path> all = files(tests);
        if (all.size() < FEW) {
            return Set.of();
        }
        Set<String> likely = names.stream().flatMap(name -> of(name, all).stream()).collect(Collectors.toSet());
        return likely.size() * MOST > all.size() ? Set.of() : likely;
    }

    private static Set<String> of(String name, Map<String, Path> all) {
        String simple = name.substring(name.lastIndexOf('.') + 1);
        Set<String> named = all.keySet().stream().filter(test -> simpleName(test).contains(simple)).collect(Collectors.toSet());
        return !named.isEmpty() ? named
            : all.keySet().stream().filter(test -> uses(all.get(test), name)).collect(Collectors.toSet());
    }

    /** The name of the class at the top of the file, without its package. */
    private static String simpleName(String test) {
        return top(test).substring(test.lastIndexOf('.') + 1);
    }

    /** The class at the top of the file that has the class. */
    static String top(String name) {
        int inner = name.indexOf('$', name.lastIndexOf('.') + 2);
        return inner < 0 ? name : name.substring(0, inner);
    }

    private static boolean uses(Path file, String name) {
        try {
            return new ClassFile(Files.readAllBytes(file)).classes.stream()
                .anyMatch(each -> top(each.replace('/', '.')).equals(name));
        } catch (IOException gone) {
            return false;
        }
    }

    private static Map<String, Path> files(Path tests) throws IOException {
        try (Stream<Path> files = Files.walk(tests)) {
            return files.filter(file -> file.toString().endsWith(SUFFIX)).collect(Collectors.toMap(file -> {
                String path = tests.relativize(file).toString();
                return path.substring(0, path.length() - SUFFIX.length()).replace('/', '.');
            }, file -> file, (one, other) -> one, TreeMap::new));
        }
    }
}
