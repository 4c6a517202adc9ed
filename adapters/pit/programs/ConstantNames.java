import java.util.LinkedHashSet;
import java.util.Set;
import java.util.stream.Stream;
import org.pitest.reloc.asm.ClassReader;
import org.pitest.reloc.asm.ConstantDynamic;
import org.pitest.reloc.asm.Handle;
import org.pitest.reloc.asm.tree.AbstractInsnNode;
import org.pitest.reloc.asm.tree.ClassNode;
import org.pitest.reloc.asm.tree.InvokeDynamicInsnNode;
import org.pitest.reloc.asm.tree.LdcInsnNode;
import org.pitest.reloc.asm.tree.MethodInsnNode;
import org.pitest.reloc.asm.tree.MethodNode;

/** The names that a class calls {@link Class#forName(String)} with, if each is a constant that stands right before the call. */
final class ConstantNames {
    static final String FOR_NAME = "java/lang/Class.forName";

    private final Set<String> names = new LinkedHashSet<>();
    private boolean others;

    /** As internal names; null: it may load other classes by name. */
    static Set<String> in(byte[] classFile) {
        try {
            ClassNode read = new ClassNode();
            new ClassReader(classFile).accept(read, ClassReader.SKIP_DEBUG | ClassReader.SKIP_FRAMES);
            ConstantNames found = new ConstantNames();
            for (MethodNode method : read.methods) {
                method.instructions.forEach(found::add);
            }
            return found.others ? null : found.names;
        } catch (RuntimeException unknown) { // of a newer JDK
            return null;
        }
    }

    private void add(AbstractInsnNode instruction) {
        if (instruction instanceof LdcInsnNode) {
            Object value = ((LdcInsnNode) instruction).cst;
            others |= value instanceof ConstantDynamic || isForName(value);
        } else if (instruction instanceof InvokeDynamicInsnNode) {
            others |= Stream.of(((InvokeDynamicInsnNode) instruction).bsmArgs).anyMatch(ConstantNames::isForName);
        } else if (instruction instanceof MethodInsnNode) {
            addCall((MethodInsnNode) instruction);
        }
    }

    private void addCall(MethodInsnNode call) {
        if (!FOR_NAME.equals(call.owner + "." + call.name)) {
            return;
        }
        AbstractInsnNode before = call.getPrevious(); // a label, where another value may come from
        Object constant = before instanceof LdcInsnNode ? ((LdcInsnNode) before).cst : null;
        if (constant instanceof String && call.desc.startsWith("(Ljava/lang/String;)")) {
            names.add(((String) constant).replace('.', '/'));
        } else {
            others = true;
        }
    }

    private static boolean isForName(Object value) {
        return value instanceof Handle && FOR_NAME.equals(((Handle) value).getOwner() + "." + ((Handle) value).getName());
    }
}
