import java.io.File;
import java.io.IOException;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Which classes of the project a test class can run, as the class files say it.
 *
 * <p>Theory of operation. A class runs another one of which its constant pool has the name, or one that the JDK or a library
 * runs for it. So the reach of a class is what follows from the names in all its constants, strings too, from class to class;
 * the name of a package stands for all classes in it. That does not hold for code which loads classes by names that it has
 * made or read, and for libraries that look for classes. So a class has no reach but the whole tree, if anything in its reach
 *
 * <ul><li>calls a method of the JDK that loads classes by name, compiles, looks for files, or starts processes: but
 *     {@link Class#forName(String)} with a constant is no more than the name in it;
 * <li>uses a library of which it is not known that it looks for no class;
 * <li>has the name of a source or class file among its strings: it may read it.</ul>
 *
 * <p>Code that reads objects from a stream can run each class that is serializable.
 *
 * <p>The classes of services of the project, such as an extension of JUnit, and those in the settings of JUnit may be run with
 * each test class. Files that are
 * no sources count for each test class, outside of this.
 */
final class Reach {
    private static final Set<String> LOADING = Set.of(
        "java/lang/Class.forName", "java/util/ServiceLoader.load", "java/util/ServiceLoader.loadInstalled",
        "java/util/ResourceBundle.getBundle",
        "java/lang/invoke/MethodHandles$Lookup.findClass", "java/lang/invoke/MethodHandles$Lookup.defineClass",
        "java/lang/invoke/MethodType.fromMethodDescriptorString", "java/lang/Runtime.exec", "java/lang/ProcessBuilder.start", "java/beans/XMLDecoder.readObject",
        "javax/tools/ToolProvider.getSystemJavaCompiler", "java/io/File.list", "java/io/File.listFiles",
        "java/nio/file/Files.find", "java/nio/file/Files.list", "java/nio/file/Files.newDirectoryStream",
        "java/nio/file/Files.walk", "java/nio/file/Files.walkFileTree");
    private static final Set<String> HARMLESS = Set.of( // of class loaders
        "getSystemClassLoader", "getParent", "getResource", "getResourceAsStream", "getSystemResource",
        "getSystemResourceAsStream");
    private static final String DESERIALIZING = "java/io/ObjectInputStream.<init>";
    private static final List<String> LOADERS = List.of(
        "java/lang/ClassLoader.", "java/security/SecureClassLoader.", "java/net/URLClassLoader.");
    private static final List<String> LIBRARIES = List.of(
        "org/junit/", "junit/", "org/hamcrest/", "org/assertj/", "org/opentest4j/", "org/apiguardian/", "org/testng/",
        "org/mockito/", "net/bytebuddy/", "org/easymock/", "com/google/common/", "org/apache/commons/", "org/slf4j/",
        "org/jspecify/", "org/jetbrains/annotations/", "kotlin/", "lombok/", "org/h2/");
    private static final List<String> SEARCHING = List.of( // parts of these libraries that look for classes
        "org/junit/platform/suite/", "org/junit/platform/engine/discovery/", "org/junit/extensions/",
        "org/junit/platform/commons/support/ReflectionSupport", "com/google/common/reflect/ClassPath");
    private static final Pattern SOURCES = Pattern.compile("src/(main|test)/(java|kotlin)|/.*\\.(java|kt)$");
    private static final Pattern CODE = Pattern.compile("\\.(java|kt|class)$");
    private static final String SUFFIX = ".class";
    private static final List<String> SERVICES = List.of("META-INF/services/", "mockito-extensions/", "junit-platform.properties");
    private static final String SEPARATORS = "[^\\p{L}\\p{M}\\p{N}\\p{Pc}\\p{Sc}./-]+";

    /** Of all these classes. */
    final Initializers initializers = new Initializers();

    private final Map<String, ClassFile> files = new HashMap<>(); // by internal name
    private final Set<String> services = new HashSet<>(); // words of their files
    private final Set<String> serializable = new HashSet<>(); // those that may be
    private final Map<String, Set<String>> packages = new HashMap<>();
    private final Map<String, Set<String>> references = new HashMap<>();
    private final Map<String, Set<String>> known = new HashMap<>();

    /** Reads the class files in the directories of a class path, whose first directory with a class counts. */
    Reach(List<File> path) throws IOException {
        for (File entry : path) {
            if (entry.isDirectory()) {
                try (Stream<Path> found = Files.walk(entry.toPath())) {
                    for (Path file : (Iterable<Path>) found.filter(Files::isRegularFile)::iterator) {
                        read(file, entry.toPath().relativize(file).toString().replace(File.separatorChar, '/'));
                    }
                }
            }
        }
        try (ProjectLoader libraries = new ProjectLoader(path)) {
            for (String name : files.keySet()) {
                packages.computeIfAbsent(parent(name), any -> new HashSet<>()).add(name);
                if (isSerializable(name, libraries)) {
                    serializable.add(name);
                }
            }
        }
    }

    private void read(Path file, String name) throws IOException {
        if (name.endsWith(SUFFIX)) {
            byte[] bytes = Files.readAllBytes(file);
            files.putIfAbsent(name.substring(0, name.length() - SUFFIX.length()), new ClassFile(bytes));
            initializers.read(bytes);
        } else if (SERVICES.stream().anyMatch(name::startsWith)) {
            services.addAll(List.of(new String(Files.readAllBytes(file), StandardCharsets.UTF_8).split(SEPARATORS)));
        }
    }

    /** The digests of all classes, by their Java names. */
    Map<String, String> digests() {
        return files.entrySet().stream().collect(
            Collectors.toMap(each -> each.getKey().replace('/', '.'), each -> each.getValue().digest));
    }

    /** The Java names of the classes that the class can run, with itself; null: any. */
    Set<String> of(String name) {
        if (!known.containsKey(name)) {
            known.put(name, found(name.replace('.', '/')));
        }
        return known.get(name);
    }

    /** Of all that the class can run; null: of anything. */
    String digest(String name) {
        Set<String> reached = of(name);
        if (reached == null) {
            return null;
        }
        String text = new TreeSet<>(reached).stream().map(each -> each + " " + files.get(each.replace('.', '/')).digest)
            .collect(Collectors.joining("\n"));
        return ClassFile.digestOf(text.getBytes(StandardCharsets.UTF_8));
    }

    private Set<String> found(String start) {
        Set<String> reached = new HashSet<>(Set.of(start));
        services.forEach(word -> add(word.replace('.', '/'), reached));
        Deque<String> waiting = new ArrayDeque<>(reached);
        while (!waiting.isEmpty()) {
            String name = waiting.pop();
            if (!files.containsKey(name) || isUnlimited(files.get(name))) {
                return null;
            }
            if (files.get(name).methods.contains(DESERIALIZING)) {
                serializable.stream().filter(reached::add).forEach(waiting::push);
            }
            references.computeIfAbsent(name, this::references).stream().filter(reached::add).forEach(waiting::push);
        }
        return reached.stream().map(each -> each.replace('/', '.')).collect(Collectors.toSet());
    }

    /** Whether it may be read from a stream. */
    private boolean isSerializable(String name, ClassLoader libraries) {
        ClassFile file = files.get(name);
        if (file != null) {
            return !file.readable || file.texts.contains("$deserializeLambda$")
                || file.supertypes.stream().anyMatch(each -> isSerializable(each, libraries));
        }
        try {
            return Serializable.class.isAssignableFrom(Class.forName(name.replace('/', '.'), false, libraries));
        } catch (ClassNotFoundException | LinkageError unknown) {
            return true;
        }
    }

    private boolean isUnlimited(ClassFile file) {
        return !file.readable || file.methods.stream().anyMatch(Reach::loads)
            || file.classes.stream().anyMatch(name -> !files.containsKey(name) && !isLimited(name))
            || file.texts.stream().anyMatch(text -> SOURCES.matcher(text).find())
            || file.strings.stream().anyMatch(text -> CODE.matcher(text).find());
    }

    private static boolean loads(String method) {
        return LOADING.contains(method) || (LOADERS.stream().anyMatch(method::startsWith)
            && !HARMLESS.contains(method.substring(method.indexOf('.') + 1)));
    }

    private static boolean isLimited(String library) {
        return library.isEmpty() || ProjectLoader.isOfJdk(library.replace('/', '.'))
            || (LIBRARIES.stream().anyMatch(library::startsWith) && SEARCHING.stream().noneMatch(library::startsWith));
    }

    private Set<String> references(String name) {
        Set<String> found = new HashSet<>();
        for (String text : files.get(name).texts) {
            for (String word : text.split(SEPARATORS)) {
                add(word.replace('.', '/'), found);
            }
        }
        return found;
    }

    /** Adds the classes that a word names: by its own name, that of a descriptor, of a member, or of a package. */
    private void add(String word, Set<String> found) {
        found.addAll(packages.getOrDefault(word.endsWith("/") ? parent(word) : word, Set.of()));
        for (String part = word; !part.isEmpty(); part = parent(part)) {
            Stream.of(part, part.substring(1)).filter(files::containsKey).forEach(found::add);
        }
    }

    private static String parent(String name) {
        return name.substring(0, Math.max(0, name.lastIndexOf('/')));
    }
}
