import java.io.File;
import java.io.IOException;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;

/** Loads the classes of the project, its tests and its libraries itself; what it doesn't have comes from the JVM. */
final class ProjectLoader extends URLClassLoader {
    private static final Set<String> OF_JDK = ModuleLayer.boot().modules().stream()
        .flatMap(module -> module.getPackages().stream()).collect(Collectors.toSet());

    static {
        registerAsParallelCapable();
    }

    ProjectLoader(List<File> path) {
        super(path.stream().map(ProjectLoader::url).toArray(URL[]::new), ProjectLoader.class.getClassLoader());
    }

    static List<File> files(List<String> path) {
        return path.stream().map(File::new).collect(Collectors.toList());
    }

    static boolean isOfJdk(String name) {
        return OF_JDK.contains(name.substring(0, Math.max(0, name.lastIndexOf('.'))));
    }

    private static URL url(File file) {
        try {
            return file.toURI().toURL();
        } catch (MalformedURLException error) {
            throw new IllegalArgumentException(error);
        }
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
        synchronized (getClassLoadingLock(name)) {
            Class<?> known = findLoadedClass(name);
            if (known != null) {
                return known;
            }
            if (!isOfJdk(name)) {
                try {
                    return findClass(name);
                } catch (ClassNotFoundException absent) {
                    // the parent may have it
                }
            }
            return super.loadClass(name, resolve);
        }
    }

    @Override
    public URL getResource(String name) {
        URL own = findResource(name);
        return own == null ? super.getResource(name) : own;
    }

    @Override
    public Enumeration<URL> getResources(String name) throws IOException {
        List<URL> found = new ArrayList<>(Collections.list(findResources(name)));
        Collections.list(getParent().getResources(name)).stream().filter(each -> !found.contains(each)).forEach(found::add);
        return Collections.enumeration(found);
    }
}
