import java.io.File;
import java.lang.instrument.Instrumentation;
import java.lang.ref.PhantomReference;
import java.lang.ref.Reference;
import java.lang.reflect.AccessibleObject;
import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.net.URI;
import java.net.URL;
import java.nio.charset.Charset;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.SortedMap;
import java.util.TimeZone;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.pitest.boot.HotSwapAgent;

/**
 * What tests have left in the static fields of the classes of a loader, as one number for each class that is initialized.
 *
 * <p>Theory of operation. Two runs that leave the same numbers have left the same state to later tests. A number is made of
 * all objects that can be reached from the static fields of the class, by reflection, in an order that is the same in each
 * JVM: objects get numbers as they are met, and maps and sets of the JDK are read by their elements, these sorted by what they
 * hold. A thread-local variable counts by the value that the calling thread has. An object of the project that a static
 * field of another class holds is named by that field, and counts there.
 *
 * <p>Not looked into are objects that are equal or not by their names (classes, methods, charsets), and those of the JVM, of
 * security and of loggers, which are never the same. Whatever else differs between two runs without a mutant, such as the
 * time of the start, makes states differ that may be the same. Never the other way: a class that can't be read has no state.
 */
final class StaticState {
    private static final int MOST = 500_000; // objects
    private static final int DEPTH = 3; // by which elements of a set are sorted
    private static final List<String> BY_CLASS = List.of("sun.", "com.sun.", "jdk.", "java.security.", "javax.crypto.",
        "java.lang.invoke.", "java.util.zip.", "java.util.jar.", "java.util.logging.", "java.nio.channels.", "org.slf4j.",
        "ch.qos.logback.", "org.apache.logging.", "org.apache.log4j.", "org.apache.commons.logging.");
    private static final List<Class<?>> BY_TEXT = List.of(String.class, Number.class, Boolean.class,
        Character.class, AccessibleObject.class, Locale.class, Charset.class, Pattern.class, File.class, URL.class, URI.class);
    private static final List<Class<?>> OF_JVM = List.of(Thread.class, ThreadGroup.class, ClassLoader.class, Module.class);

    private final Instrumentation instrumentation;
    private final Method shouldBeInitialized;
    private final Object unsafe;
    private final Method mapOfThread;
    private final Method entryOfMap;
    private final Field valueOfEntry;

    /** Opens the JDK to this program, and to no test. */
    StaticState() throws ReflectiveOperationException {
        Field agent = HotSwapAgent.class.getDeclaredField("instrumentation");
        agent.setAccessible(true);
        instrumentation = (Instrumentation) agent.get(null);
        Set<Module> here = Set.of(StaticState.class.getModule());
        for (Module module : ModuleLayer.boot().modules()) {
            Map<String, Set<Module>> opened = module.getPackages().stream().collect(Collectors.toMap(name -> name, name -> here));
            instrumentation.redefineModule(module, Set.of(), Map.of(), opened, Set.of(), Map.of());
        }
        Class<?> type = Class.forName("jdk.internal.misc.Unsafe");
        unsafe = type.getMethod("getUnsafe").invoke(null);
        shouldBeInitialized = type.getMethod("shouldBeInitialized", Class.class);
        Class<?> map = Class.forName("java.lang.ThreadLocal$ThreadLocalMap");
        mapOfThread = ThreadLocal.class.getDeclaredMethod("getMap", Thread.class);
        entryOfMap = map.getDeclaredMethod("getEntry", ThreadLocal.class);
        valueOfEntry = Class.forName(map.getName() + "$Entry").getDeclaredField("value");
        List.of(mapOfThread, entryOfMap, valueOfEntry).forEach(each -> each.setAccessible(true));
    }

    /** The numbers of the classes of {@code loader}, and of loaders below it, by their names; null where they can't be known. */
    Map<String, Object> of(ClassLoader loader) {
        try {
            return new Reading(loader).numbers();
        } catch (ReflectiveOperationException | RuntimeException | LinkageError | OutOfMemoryError error) {
            return null; // it is too large, or a thread changes it
        }
    }

    static long textHash(String text) {
        long hash = text.length();
        for (int at = 0; at < text.length(); at++) {
            hash = mixed(hash, text.charAt(at));
        }
        return hash;
    }

    private static long mixed(long hash, long value) {
        long next = (hash ^ value) * 0x9E3779B97F4A7C15L;
        return next ^ next >>> 29;
    }

    private static String nameOf(Class<?> type) {
        String name = type.getName();
        int hidden = name.indexOf("$$Lambda");
        return Proxy.isProxyClass(type) ? "a proxy" : hidden < 0 ? name : name.substring(0, hidden);
    }

    private static boolean isByClass(Class<?> type) {
        return !Proxy.isProxyClass(type) && BY_CLASS.stream().anyMatch(type.getName()::startsWith)
            || OF_JVM.stream().anyMatch(each -> each.isAssignableFrom(type));
    }

    /** Of one loader at one time. */
    private final class Reading {
        private final List<Class<?>> classes = new ArrayList<>();
        private final Map<Class<?>, List<Field>> fields = new HashMap<>();
        private final Map<Object, Field> owners = new IdentityHashMap<>(); // static fields that hold an object
        private int objects;

        Reading(ClassLoader loader) throws ReflectiveOperationException {
            for (Class<?> type : instrumentation.getAllLoadedClasses()) {
                boolean isMade = type.isArray() || Proxy.isProxyClass(type) || type.getName().contains("/"); // has no state
                if (isBelow(type.getClassLoader(), loader) && !isMade && !isByClass(type)
                    && !(boolean) shouldBeInitialized.invoke(unsafe, type)) {
                    classes.add(type);
                }
            }
            classes.sort(Comparator.comparing(Class::getName));
        }

        private boolean isBelow(ClassLoader inner, ClassLoader loader) {
            return inner != null && (inner == loader || isBelow(inner.getParent(), loader));
        }

        Map<String, Object> numbers() throws ReflectiveOperationException {
            own(true);
            own(false);
            Map<String, Object> numbers = new HashMap<>();
            for (Class<?> type : classes) {
                if (!statics(type).isEmpty()) {
                    numbers.put(type.getName(), new Graph(type).number());
                }
            }
            return numbers;
        }

        /** An object is its own class's first: which other classes are initialized may be another matter. */
        private void own(boolean byItsClass) throws ReflectiveOperationException {
            for (Class<?> type : classes) {
                for (Field field : statics(type)) {
                    Object value = field.get(null);
                    if (value != null && !field.getType().isPrimitive() && value.getClass().getClassLoader() == type.getClassLoader()
                        && (!byItsClass || type.isInstance(value))) {
                        owners.putIfAbsent(value, field);
                    }
                }
            }
        }

        private List<Field> statics(Class<?> type) {
            return all(type).stream().filter(field -> Modifier.isStatic(field.getModifiers())).collect(Collectors.toList());
        }

        private List<Field> all(Class<?> type) {
            return fields.computeIfAbsent(type, any -> {
                List<Field> found = Proxy.isProxyClass(type) ? List.of() : Arrays.asList(type.getDeclaredFields());
                found.forEach(field -> field.setAccessible(true));
                return found;
            });
        }

        /** What can be reached from the static fields of one class. */
        private final class Graph {
            private final Class<?> root;
            private final Map<Object, Integer> met = new IdentityHashMap<>();
            private final ArrayDeque<Object> waiting = new ArrayDeque<>();
            private long hash;

            Graph(Class<?> root) {
                this.root = root;
            }

            long number() throws ReflectiveOperationException {
                for (Field field : statics(root)) {
                    add(field.get(null));
                }
                while (!waiting.isEmpty()) {
                    Object next = waiting.remove();
                    hash = mixed(hash, textHash(nameOf(next.getClass())));
                    for (Object part : parts(next)) {
                        add(part);
                    }
                }
                return hash;
            }

            private void add(Object value) {
                Long leaf = leaf(value);
                Field owner = owners.get(value);
                if (leaf != null) {
                    hash = mixed(hash, leaf);
                } else if (owner != null && owner.getDeclaringClass() != root) {
                    hash = mixed(hash, textHash(owner.toString()));
                } else {
                    Integer number = met.putIfAbsent(value, met.size());
                    hash = mixed(hash, number == null ? -1 : number);
                    if (number == null) {
                        waiting.add(value);
                        if (++objects > MOST) {
                            throw new IllegalStateException("too large");
                        }
                    }
                }
            }
        }

        /** The number of an object that is not looked into; null for another one. */
        private Long leaf(Object value) {
            if (value == null) {
                return 0L;
            }
            Class<?> type = value.getClass();
            if (value instanceof Class) {
                return textHash(nameOf((Class<?>) value));
            }
            if (value instanceof TimeZone) {
                return textHash(((TimeZone) value).getID());
            }
            if (value instanceof Enum && !owners.containsKey(value)) {
                return textHash(type.getName() + "." + ((Enum<?>) value).name());
            }
            if (type.getName().startsWith("java.") && BY_TEXT.stream().anyMatch(each -> each.isInstance(value))) {
                return mixed(textHash(value.toString()), textHash(type.getName()));
            }
            return isByClass(type) ? textHash(nameOf(type)) : null;
        }

        /** What an object consists of: elements, and the fields but those of the JDK that make up the elements. */
        private List<Object> parts(Object value) throws ReflectiveOperationException {
            List<Object> found = elements(value);
            boolean isRead = found != null;
            found = isRead ? found : new ArrayList<>();
            for (Class<?> type = value.getClass(); type != null; type = type.getSuperclass()) {
                if (!isRead || !type.getName().startsWith("java.")) {
                    for (Field field : all(type)) {
                        if (!Modifier.isStatic(field.getModifiers())) {
                            found.add(field.get(value));
                        }
                    }
                }
            }
            return found;
        }

        private List<Object> elements(Object value) throws ReflectiveOperationException {
            List<Object> found = new ArrayList<>();
            String name = value.getClass().getName();
            boolean isImmutable = name.startsWith("java.util.ImmutableCollections$");
            boolean isOfJdk = name.startsWith("java.util.") && (isImmutable || !name.contains("$")) && !(value instanceof Properties);
            if (value instanceof Object[]) {
                found.addAll(Arrays.asList((Object[]) value));
            } else if (value.getClass().isArray()) {
                found.add(primitives(value));
            } else if (value instanceof ThreadLocal) {
                Object map = mapOfThread.invoke(value, Thread.currentThread());
                Object entry = map == null ? null : entryOfMap.invoke(map, value);
                found.add(entry == null ? null : valueOfEntry.get(entry));
            } else if (value instanceof Reference) {
                found.add(value instanceof PhantomReference ? null : ((Reference<?>) value).get());
            } else if (isOfJdk && value instanceof Map) {
                boolean isOrdered = value instanceof SortedMap || value instanceof LinkedHashMap;
                Stream<? extends Map.Entry<?, ?>> entries = ((Map<?, ?>) value).entrySet().stream();
                (isOrdered ? entries : entries.sorted(Comparator.comparingLong(each -> shallow(each.getKey(), DEPTH))))
                    .forEach(each -> found.addAll(Arrays.asList(each.getKey(), each.getValue())));
            } else if (isOfJdk && value instanceof Collection) {
                found.addAll((Collection<?>) value);
                if (isImmutable && value instanceof Set || value instanceof HashSet && !(value instanceof LinkedHashSet)) {
                    found.sort(Comparator.comparingLong(each -> shallow(each, DEPTH)));
                }
            } else {
                return null;
            }
            found.add(found.size());
            return found;
        }

        private long primitives(Object array) {
            long hash = Array.getLength(array);
            for (int at = 0; at < Array.getLength(array); at++) {
                hash = mixed(hash, Array.get(array, at).hashCode());
            }
            return hash;
        }

        private long shallow(Object value, int depth) {
            Long leaf = leaf(value);
            if (leaf != null) {
                return leaf;
            }
            long hash = textHash(nameOf(value.getClass()));
            try {
                for (Object part : depth == 0 ? List.of() : parts(value)) {
                    hash = mixed(hash, shallow(part, depth - 1));
                }
            } catch (ReflectiveOperationException error) {
                throw new IllegalStateException(error);
            }
            return hash;
        }
    }
}
