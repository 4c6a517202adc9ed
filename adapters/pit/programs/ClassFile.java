import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.math.BigInteger;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;

/** What a class file says about other classes, by its constant pool alone: each name of a class stands in it. */
final class ClassFile {
    private static final int UTF8 = 1;
    private static final int CLASS = 7;
    private static final int STRING = 8;
    private static final int METHOD = 10;
    private static final int INTERFACE_METHOD = 11;
    private static final int NAME_AND_TYPE = 12;
    /** Bytes after the tag, by the tag; that of a text is its length. */
    private static final int[] SIZES = {0, 0, 0, 4, 4, 8, 8, 2, 2, 4, 4, 4, 4, 0, 0, 3, 2, 4, 4, 2, 2};

    /** Of the whole file. */
    final String digest;
    /** All texts: names, descriptors, signatures, strings, values of annotations. */
    final Set<String> texts = new LinkedHashSet<>();
    /** Those of them that are strings of its code; the name of its own source file is none. */
    final Set<String> strings = new LinkedHashSet<>();
    /** Internal names of classes that it uses, without arrays. */
    final Set<String> classes = new LinkedHashSet<>();
    /** Methods that it calls, as in {@code java/lang/Class.forName}. */
    final Set<String> methods = new LinkedHashSet<>();
    /** Internal names of the class and of the interfaces that it extends. */
    final Set<String> supertypes = new LinkedHashSet<>();

    /** Whether it is a class file: among resources of tests there are damaged ones. */
    final boolean readable;

    ClassFile(byte[] bytes) {
        digest = digestOf(bytes);
        readable = isRead(new DataInputStream(new ByteArrayInputStream(bytes)));
        if (readable && methods.contains(ConstantNames.FOR_NAME)) {
            Set<String> names = ConstantNames.in(bytes);
            if (names != null) {
                methods.remove(ConstantNames.FOR_NAME);
                classes.addAll(names);
            }
        }
    }

    private boolean isRead(DataInputStream in) {
        try {
            read(in);
            return true;
        } catch (IOException | RuntimeException damaged) {
            return false;
        }
    }

    private void read(DataInputStream in) throws IOException {
        in.readLong(); // the mark and the version
        int count = in.readUnsignedShort();
        Map<Integer, String> pool = new HashMap<>();
        Map<Integer, int[]> pairs = new HashMap<>();
        for (int index = 1; index < count; index++) {
            int tag = in.readUnsignedByte();
            if (tag == UTF8) {
                pool.put(index, in.readUTF());
            } else if (tag == CLASS || tag == STRING) {
                pairs.put(index, new int[] {tag, in.readUnsignedShort(), 0});
            } else if (tag == METHOD || tag == INTERFACE_METHOD || tag == NAME_AND_TYPE) {
                pairs.put(index, new int[] {tag, in.readUnsignedShort(), in.readUnsignedShort()});
            } else if (tag >= SIZES.length || SIZES[tag] == 0) {
                throw new IOException("an unknown constant: " + tag);
            } else {
                in.readFully(new byte[SIZES[tag]]);
                index += SIZES[tag] == Long.BYTES ? 1 : 0; // such a constant takes two places
            }
        }
        texts.addAll(pool.values());
        for (int[] pair : pairs.values()) {
            if (pair[0] == CLASS) {
                classes.add(element(pool.get(pair[1])));
            } else if (pair[0] == STRING) {
                strings.add(pool.get(pair[1]));
            } else if (pair[0] != NAME_AND_TYPE) {
                methods.add(pool.get(pairs.get(pair[1])[1]) + "." + pool.get(pairs.get(pair[2])[1]));
            }
        }
        in.readUnsignedShort(); // flags
        in.readUnsignedShort(); // its own name
        addSupertype(pool.get(pairs.getOrDefault(in.readUnsignedShort(), new int[2])[1]));
        for (int interfaces = in.readUnsignedShort(); interfaces > 0; interfaces--) {
            addSupertype(pool.get(pairs.get(in.readUnsignedShort())[1]));
        }
        texts.stream().filter(text -> text.startsWith("L") && text.endsWith(";") && text.indexOf(';') == text.length() - 1)
            .forEach(text -> classes.add(text.substring(1, text.length() - 1))); // annotations, among others
    }

    private void addSupertype(String name) {
        if (name != null) { // a module has none
            supertypes.add(name);
        }
    }

    /** The class of the elements of an array; {@code [I} becomes the empty text. */
    private static String element(String name) {
        if (!name.startsWith("[")) {
            return name;
        }
        String type = name.substring(name.lastIndexOf('[') + 1);
        return type.startsWith("L") ? type.substring(1, type.length() - 1) : "";
    }

    static String digestOf(byte[] content) {
        try {
            byte[] digest = MessageDigest.getInstance("SHA-256").digest(content);
            return String.format("%064x", new BigInteger(1, digest)).substring(0, 32);
        } catch (NoSuchAlgorithmException error) {
            throw new IllegalStateException(error); // each JDK has it
        }
    }
}
