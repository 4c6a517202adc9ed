package org.pitest.mutationtest.execute;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import org.pitest.classinfo.ClassName;

/** Puts a mutant into its class, and into a class file: a JVM that a test starts loads it from there. */
public final class MutatedFile extends HotSwap {
    private final Path directory;
    private Path file;
    private byte[] original;

    /** {@code directory} is for the file; null: it takes the place of the class file that the loader has found. */
    public MutatedFile(Path directory) {
        this.directory = directory;
    }

    @Override
    public Boolean insertClass(ClassName name, ClassLoader loader, byte[] mutant) {
        boolean isInserted = super.insertClass(name, loader, mutant);
        if (isInserted) {
            try {
                write(name.asInternalName() + ".class", loader, mutant);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
        return isInserted;
    }

    private void write(String name, ClassLoader loader, byte[] mutant) throws IOException {
        file = directory == null ? Path.of(URI.create(loader.getResource(name).toString())) : directory.resolve(name);
        original = Files.exists(file) ? Files.readAllBytes(file) : null;
        Files.createDirectories(file.getParent());
        Files.write(file, mutant);
    }

    /** Takes the mutant out of the file. */
    public void restore() throws IOException {
        if (original != null) {
            Files.write(file, original);
        } else if (file != null) {
            Files.deleteIfExists(file);
        }
    }
}
