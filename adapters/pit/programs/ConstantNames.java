import java.util.LinkedHashSet;
import java.util.Set;
import java.util.stream.Stream;
import org.pitest.reloc.asm.ClassReader;
import org.pitest.reloc.asm.ClassVisitor;
import org.pitest.reloc.asm.ConstantDynamic;
import org.pitest.reloc.asm.Handle;
import org.pitest.reloc.asm.Label;
import org.pitest.reloc.asm.MethodVisitor;
import org.pitest.reloc.asm.Opcodes;

/** The names that a class calls {@link Class#forName(String)} with, if each is a constant that stands right before the call. */
final class ConstantNames extends ClassVisitor {
    static final String FOR_NAME = "java/lang/Class.forName";

    private final Set<String> names = new LinkedHashSet<>();
    private boolean others;

    private ConstantNames() {
        super(Opcodes.ASM9);
    }

    /** As internal names; null: it may load other classes by name. */
    static Set<String> in(byte[] classFile) {
        try {
            ConstantNames found = new ConstantNames();
            new ClassReader(classFile).accept(found, ClassReader.SKIP_DEBUG | ClassReader.SKIP_FRAMES);
            return found.others ? null : found.names;
        } catch (RuntimeException unknown) { // of a newer JDK
            return null;
        }
    }

    @Override
    public MethodVisitor visitMethod(int access, String name, String descriptor, String signature, String[] exceptions) {
        return new Calls();
    }

    private final class Calls extends MethodVisitor {
        private Object constant; // that the last instruction loads; null: it is another one, or may come from elsewhere

        Calls() {
            super(Opcodes.ASM9);
        }

        @Override
        public void visitLdcInsn(Object value) {
            constant = value;
            others |= value instanceof ConstantDynamic || isForName(value);
        }

        @Override
        public void visitMethodInsn(int opcode, String owner, String name, String descriptor, boolean isInterface) {
            if (FOR_NAME.equals(owner + "." + name)) {
                if (constant instanceof String && descriptor.startsWith("(Ljava/lang/String;)")) {
                    names.add(((String) constant).replace('.', '/'));
                } else {
                    others = true;
                }
            }
            constant = null;
        }

        @Override
        public void visitInvokeDynamicInsn(String name, String descriptor, Handle bootstrap, Object... arguments) {
            others |= Stream.of(arguments).anyMatch(this::isForName);
            constant = null;
        }

        private boolean isForName(Object value) {
            return value instanceof Handle && FOR_NAME.equals(((Handle) value).getOwner() + "." + ((Handle) value).getName());
        }

        @Override
        public void visitLabel(Label label) {
            constant = null; // another value may come from where it jumps
        }

        @Override
        public void visitInsn(int opcode) {
            constant = null;
        }

        @Override
        public void visitIntInsn(int opcode, int operand) {
            constant = null;
        }

        @Override
        public void visitVarInsn(int opcode, int variable) {
            constant = null;
        }

        @Override
        public void visitTypeInsn(int opcode, String type) {
            constant = null;
        }

        @Override
        public void visitFieldInsn(int opcode, String owner, String name, String descriptor) {
            constant = null;
        }

        @Override
        public void visitJumpInsn(int opcode, Label label) {
            constant = null;
        }
    }
}
