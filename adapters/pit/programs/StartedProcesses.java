package org.pitest.mutationtest.execute;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import org.pitest.boot.HotSwapAgent;
import org.pitest.reloc.asm.ClassReader;
import org.pitest.reloc.asm.ClassVisitor;
import org.pitest.reloc.asm.ClassWriter;
import org.pitest.reloc.asm.MethodVisitor;
import org.pitest.reloc.asm.Opcodes;

/**
 * Says whether tests have started JVMs, which may run the project: coverage does not have those.
 *
 * <p>{@link ProcessBuilder}, by which all processes are started, adds their commands to a property: it can call nothing but the
 * JDK. A command that does not name Java may be a script that starts it: a JVM has a file in a directory of its user.
 */
public final class StartedProcesses {
    private static final String COMMANDS = "msp-bridge.commands";
    private static final Path OF_JVMS = Path.of("/tmp", "hsperfdata_" + System.getProperty("user.name"));
    private static final boolean IS_TOLD = Files.exists(OF_JVMS.resolve(Long.toString(ProcessHandle.current().pid())));

    private static boolean any; // process
    private static boolean anyJvm;
    private static FileTime changed;

    private StartedProcesses() {}

    /** Begins to look. */
    public static void watch() throws IOException {
        try (InputStream file = ProcessBuilder.class.getResourceAsStream("ProcessBuilder.class")) {
            ClassReader reader = new ClassReader(file);
            ClassWriter writer = new ClassWriter(reader, ClassWriter.COMPUTE_MAXS);
            reader.accept(new Telling(writer), 0);
            HotSwapAgent.hotSwap(ProcessBuilder.class, writer.toByteArray());
        }
        seen();
    }

    /** Whether a JVM was started since this was asked last, as far as that is known, or one lives. */
    public static synchronized boolean seen() throws IOException {
        String commands = System.clearProperty(COMMANDS);
        any |= commands != null;
        FileTime before = changed;
        changed = IS_TOLD ? Files.getLastModifiedTime(OF_JVMS) : null;
        boolean isNew = commands != null && (commands.contains("java") || !IS_TOLD) || any && IS_TOLD && !changed.equals(before);
        anyJvm |= isNew;
        return isNew || anyJvm && ProcessHandle.current().children().anyMatch(ProcessHandle::isAlive);
    }

    /** Adds to {@link #COMMANDS} where a process is started. */
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
                    super.visitLdcInsn(COMMANDS);
                    super.visitLdcInsn(COMMANDS);
                    super.visitLdcInsn("");
                    call(Opcodes.INVOKESTATIC, "java/lang/System.getProperty", "(Ljava/lang/String;Ljava/lang/String;)Ljava/lang/String;");
                    super.visitVarInsn(Opcodes.ALOAD, 0);
                    super.visitFieldInsn(Opcodes.GETFIELD, "java/lang/ProcessBuilder", "command", "Ljava/util/List;");
                    call(Opcodes.INVOKESTATIC, "java/lang/String.valueOf", "(Ljava/lang/Object;)Ljava/lang/String;");
                    call(Opcodes.INVOKEVIRTUAL, "java/lang/String.concat", "(Ljava/lang/String;)Ljava/lang/String;");
                    call(Opcodes.INVOKESTATIC, "java/lang/System.setProperty", "(Ljava/lang/String;Ljava/lang/String;)Ljava/lang/String;");
                    super.visitInsn(Opcodes.POP);
                }

                private void call(int kind, String called, String type) {
                    int end = called.indexOf('.');
                    super.visitMethodInsn(kind, called.substring(0, end), called.substring(end + 1), type, false);
                }
            };
        }
    }
}
