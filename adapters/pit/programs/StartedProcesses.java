package org.pitest.mutationtest.execute;

import java.io.IOException;
import java.io.InputStream;
import org.pitest.boot.HotSwapAgent;
import org.pitest.reloc.asm.ClassReader;
import org.pitest.reloc.asm.ClassVisitor;
import org.pitest.reloc.asm.ClassWriter;
import org.pitest.reloc.asm.MethodVisitor;
import org.pitest.reloc.asm.Opcodes;

/**
 * Says whether tests have started processes, which may be JVMs that run the project: coverage does not have those.
 *
 * <p>{@link ProcessBuilder}, by which all of them are started, sets a property: it can call nothing but the JDK.
 */
public final class StartedProcesses {
    private static final String STARTED = "msp-bridge.process";

    private static boolean any; // ever

    private StartedProcesses() {}

    /** Begins to look. */
    public static void watch() throws IOException {
        try (InputStream file = ProcessBuilder.class.getResourceAsStream("ProcessBuilder.class")) {
            ClassReader reader = new ClassReader(file);
            ClassWriter writer = new ClassWriter(reader, ClassWriter.COMPUTE_MAXS);
            reader.accept(new Telling(writer), 0);
            HotSwapAgent.hotSwap(ProcessBuilder.class, writer.toByteArray());
        }
    }

    /** Whether one was started since this was asked last, or one lives. */
    public static synchronized boolean seen() {
        boolean isNew = System.clearProperty(STARTED) != null;
        any |= isNew;
        return isNew || (any && ProcessHandle.current().children().anyMatch(ProcessHandle::isAlive));
    }

    /** Sets {@link #STARTED} where a process is started. */
    private static final class Telling extends ClassVisitor {
        Telling(ClassWriter writer) {
            super(Opcodes.ASM9, writer);
        }

        @Override
        public MethodVisitor visitMethod(int access, String name, String descriptor, String signature, String[] exceptions) {
            MethodVisitor method = super.visitMethod(access, name, descriptor, signature, exceptions);
            return !name.equals("start") ? method : new MethodVisitor(Opcodes.ASM9, method) {
                @Override
                public void visitCode() {
                    super.visitCode();
                    super.visitLdcInsn(STARTED);
                    super.visitLdcInsn("");
                    super.visitMethodInsn(Opcodes.INVOKESTATIC, "java/lang/System", "setProperty",
                        "(Ljava/lang/String;Ljava/lang/String;)Ljava/lang/String;", false);
                    super.visitInsn(Opcodes.POP);
                }
            };
        }
    }
}
