import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;

/** JSON, as far as the messages of the host need it: objects, arrays, texts, numbers, true, false and null. */
final class Json {
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    static Object read(String text) {
        return new Json(text).value();
    }

    static String write(Object value) {
        if (value instanceof Map) {
            return joined("{", ((Map<?, ?>) value).entrySet(), field -> write(field.getKey()) + ":" + write(field.getValue()), "}");
        }
        if (value instanceof List) {
            return joined("[", (List<?>) value, Json::write, "]");
        }
        return value instanceof String ? quoted((String) value) : String.valueOf(value);
    }

    private Object value() {
        switch (peek()) {
            case '{':
                return object();
            case '[':
                return array();
            case '"':
                return string();
            default:
                return word();
        }
    }

    private Map<String, Object> object() {
        Map<String, Object> fields = new HashMap<>();
        for (at++; peek() != '}'; ) {
            skip(',');
            String name = string();
            skip(':');
            fields.put(name, value());
        }
        at++;
        return fields;
    }

    private List<Object> array() {
        List<Object> items = new ArrayList<>();
        for (at++; peek() != ']'; ) {
            skip(',');
            items.add(value());
        }
        at++;
        return items;
    }

    /** The next character that is no space. */
    private char peek() {
        while (text.charAt(at) == ' ') {
            at++;
        }
        return text.charAt(at);
    }

    private void skip(char separator) {
        if (peek() == separator) {
            at++;
            peek();
        }
    }

    private String string() {
        StringBuilder out = new StringBuilder();
        for (at++; text.charAt(at) != '"'; at++) {
            char character = text.charAt(at);
            out.append(character == '\\' ? escaped() : character);
        }
        at++;
        return out.toString();
    }

    private char escaped() {
        char character = text.charAt(++at);
        if (character == 'u') {
            at += 4;
            return (char) Integer.parseInt(text.substring(at - 3, at + 1), 16);
        }
        int known = "bfnrt".indexOf(character);
        return known < 0 ? character : "\b\f\n\r\t".charAt(known);
    }

    private Object word() {
        int start = at;
        while (at < text.length() && ",]} ".indexOf(text.charAt(at)) < 0) {
            at++;
        }
        String word = text.substring(start, at);
        switch (word) {
            case "true":
                return true;
            case "false":
                return false;
            case "null":
                return null;
            default:
                return Double.valueOf(word);
        }
    }

    private static <T> String joined(String begin, Collection<T> items, Function<T, String> written, String end) {
        return items.stream().map(written).collect(Collectors.joining(",", begin, end));
    }

    private static String quoted(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (char character : text.toCharArray()) {
            if (character < ' ' || character == '"' || character == '\\' || character > '~') {
                out.append(String.format("\\u%04x", (int) character));
            } else {
                out.append(character);
            }
        }
        return out.append('"').toString();
    }
}
