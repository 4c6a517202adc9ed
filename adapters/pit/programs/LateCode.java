package org.pitest.mutationtest.execute;

import java.io.IOException;
import java.io.InputStream;
import java.net.URL;
import java.util.Set;
import org.pitest.reloc.asm.AnnotationVisitor;
import org.pitest.reloc.asm.ClassReader;
import org.pitest.reloc.asm.ClassVisitor;
import org.pitest.reloc.asm.MethodVisitor;
import org.pitest.reloc.asm.Opcodes;

/**
 * Whether a class of tests runs code of the project in a method with {@code @AfterAll}.
 *
 * <p>PIT's coverage has that for the first test of the next class, or, after the last class, for none.
 */
final class LateCode extends ClassVisitor {
    private static final String AFTER_ALL = "Lorg/junit/jupiter/api/AfterAll;";
    private static final Set<String> ANY = Set.of("java/lang/AutoCloseable", "java/io/Closeable", "java/lang/Runnable");

    private final ClassLoader loader;
    private boolean found;

    private LateCode(ClassLoader loader) {
        super(Opcodes.ASM9);
        this.loader = loader;
    }

    static boolean isIn(Class<?> test) {
        for (Class<?> each = test; each != null && each.getClassLoader() == test.getClassLoader(); each = each.getSuperclass()) {
            LateCode code = new LateCode(test.getClassLoader());
            try (InputStream file = test.getClassLoader().getResourceAsStream(each.getName().replace('.', '/') + ".class")) {
                new ClassReader(file).accept(code, ClassReader.SKIP_DEBUG | ClassReader.SKIP_FRAMES);
            } catch (IOException | RuntimeException unknown) { // made while the tests run, or of a newer JDK
                return true;
            }
            if (code.found) {
                return true;
            }
        }
        return false;
    }

    @Override
    public MethodVisitor visitMethod(int access, String name, String descriptor, String signature, String[] exceptions) {
        return new MethodVisitor(Opcodes.ASM9) {
            private boolean isLate;

            @Override
            public AnnotationVisitor visitAnnotation(String type, boolean visible) {
                isLate |= type.equals(AFTER_ALL);
                return null;
            }

            @Override
            public void visitMethodInsn(int kind, String owner, String called, String type, boolean isInterface) {
                found |= isLate && (ANY.contains(owner) || isOfProject(owner));
            }
        };
    }

    /** Libraries are jars. */
    private boolean isOfProject(String name) {
        URL file = loader.getResource(name + ".class");
        return file != null && file.getProtocol().equals("file");
    }
}
