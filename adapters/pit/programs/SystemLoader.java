import java.io.File;
import java.io.IOException;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.Enumeration;

/** The system class loader of a {@link Tester}: the loader of the mutant that is tested now. */
public final class SystemLoader extends URLClassLoader {
    private static volatile ClassLoader current;

    static {
        registerAsParallelCapable();
    }

    /** The JVM calls it, for `java.system.class.loader`. */
    public SystemLoader(ClassLoader parent) {
        super(new URL[0], parent);
    }

    static void delegateTo(ClassLoader loader) {
        current = loader;
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
        ClassLoader loader = current;
        if (loader != null) {
            try {
                return loader.loadClass(name);
            } catch (ClassNotFoundException absent) {
                // an agent's may be here
            }
        }
        return super.loadClass(name, resolve);
    }

    @Override
    public URL getResource(String name) {
        ClassLoader loader = current;
        return loader == null ? super.getResource(name) : loader.getResource(name);
    }

    @Override
    public Enumeration<URL> getResources(String name) throws IOException {
        ClassLoader loader = current;
        return loader == null ? super.getResources(name) : loader.getResources(name);
    }

    /** The JVM calls it when an agent is attached. */
    void appendToClassPathForInstrumentation(String path) throws MalformedURLException {
        addURL(new File(path).toURI().toURL());
    }
}
