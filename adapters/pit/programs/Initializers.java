import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.pitest.reloc.asm.ClassReader;
import org.pitest.reloc.asm.ClassVisitor;
import org.pitest.reloc.asm.Handle;
import org.pitest.reloc.asm.Label;
import org.pitest.reloc.asm.MethodVisitor;
import org.pitest.reloc.asm.Opcodes;

/**
 * Which methods run only within static initializers, and have no branch: the constructor of an enum, for example.
 *
 * <p>The JVM sees to it that they run once. So there is no other path that a second run takes.
 */
final class Initializers extends ClassVisitor {
    private static final String INITIALIZER = "<clinit>";
    private static final String CONSTRUCTOR = "<init>";

    private final Map<String, String> candidates = new HashMap<>(); // methods, and how they are called
    private final Map<String, Set<String>> callers = new HashMap<>(); // by how a method is called
    private final Set<String> found = new HashSet<>();
    private boolean complete = true;
    private String owner;

    Initializers() {
        super(Opcodes.ASM9);
    }

    void read(byte[] classFile) {
        try {
            new ClassReader(classFile).accept(this, ClassReader.SKIP_DEBUG | ClassReader.SKIP_FRAMES);
        } catch (RuntimeException unknown) { // damaged, or of a newer JDK
            complete = false;
        }
    }

    /** The methods of the classes that were read, as in {@code example/Rate.<init>(I)V}. */
    Set<String> methods() {
        boolean more = complete;
        while (more) {
            more = false;
            for (Map.Entry<String, String> each : candidates.entrySet()) {
                Set<String> by = callers.getOrDefault(each.getValue(), Set.of());
                more |= !by.isEmpty() && found.containsAll(by) && found.add(each.getKey());
            }
        }
        return found;
    }

    @Override
    public void visit(int version, int access, String name, String signature, String supertype, String[] interfaces) {
        owner = name;
    }

    @Override
    public MethodVisitor visitMethod(int access, String name, String descriptor, String signature, String[] exceptions) {
        String method = owner + "." + name + descriptor;
        if (name.equals(INITIALIZER)) {
            found.add(method);
        } else if (name.equals(CONSTRUCTOR) || (access & (Opcodes.ACC_STATIC | Opcodes.ACC_PRIVATE)) != 0) { // none overrides it
            candidates.put(method, call(owner, name, descriptor));
        }
        return new Body(method);
    }

    /** A subclass may stand in a call in place of the owner. */
    private static String call(String owner, String name, String descriptor) {
        return name.equals(CONSTRUCTOR) ? owner + "." + name + descriptor : name + descriptor;
    }

    private final class Body extends MethodVisitor {
        private final String method;

        Body(String method) {
            super(Opcodes.ASM9);
            this.method = method;
        }

        @Override
        public void visitMethodInsn(int opcode, String owner, String name, String descriptor, boolean isInterface) {
            callers.computeIfAbsent(call(owner, name, descriptor), any -> new HashSet<>()).add(method);
        }

        @Override
        public void visitInvokeDynamicInsn(String name, String descriptor, Handle bootstrap, Object... arguments) {
            for (Object each : arguments) {
                visitLdcInsn(each);
            }
        }

        @Override
        public void visitLdcInsn(Object value) {
            if (value instanceof Handle) { // it is called later, from anywhere
                Handle handle = (Handle) value;
                callers.computeIfAbsent(call(handle.getOwner(), handle.getName(), handle.getDesc()), any -> new HashSet<>()).add("");
            }
        }

        @Override
        public void visitJumpInsn(int opcode, Label label) {
            candidates.remove(method);
        }

        @Override
        public void visitTableSwitchInsn(int min, int max, Label other, Label... labels) {
            candidates.remove(method);
        }

        @Override
        public void visitLookupSwitchInsn(Label other, int[] keys, Label[] labels) {
            candidates.remove(method);
        }

        @Override
        public void visitTryCatchBlock(Label start, Label end, Label handler, String type) {
            candidates.remove(method);
        }
    }
}
