import java.io.File;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.StringJoiner;
import java.util.jar.JarFile;
import org.apache.flink.annotation.docs.Documentation;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.FallbackKey;
import org.apache.flink.configuration.description.HtmlFormatter;
import org.apache.flink.util.TimeUtils;

/**
 * Prints the options that the classes of Apache Flink's jars declare, one a line: class, key, type, values of an enum,
 * default, old keys and description, separated by tabs. docs/make_flink_options.py runs it.
 */
public class FlinkOptions {
    public static void main(String[] jars) throws Exception {
        for (String jar : jars) {
            List<String> names = new ArrayList<>();
            try (JarFile file = new JarFile(jar)) {
                file.stream().map(entry -> entry.getName())
                        .filter(name -> name.matches("org/apache/flink/(?!.*shaded).*(Option|Config)[^/]*\\.class"))
                        .forEach(name -> names.add(name.substring(0, name.length() - 6).replace('/', '.')));
            }
            Collections.sort(names);
            for (String name : names) {
                try {
                    print(Class.forName(name, false, FlinkOptions.class.getClassLoader()));
                } catch (NoClassDefFoundError missing) {
                    System.err.println(new File(jar).getName() + ": " + name + " needs " + missing.getMessage());
                }
            }
        }
    }

    private static void print(Class<?> options) throws Exception {
        for (Field field : options.getDeclaredFields()) {
            if (Modifier.isStatic(field.getModifiers()) && field.getType() == ConfigOption.class) {
                field.setAccessible(true);
                print(options, field, (ConfigOption<?>) field.get(null));
            }
        }
    }

    private static void print(Class<?> options, Field field, ConfigOption<?> option) throws Exception {
        Documentation.SuffixOption suffix = field.getAnnotation(Documentation.SuffixOption.class);
        String prefix = suffix == null ? "" : suffix.value() + (suffix.value().contains("<") ? "." : ".<name>.");
        Class<?> type = (Class<?>) asked(option, "getClazz");
        StringJoiner values = new StringJoiner(",");
        if (type.isEnum()) {
            for (Object value : type.getEnumConstants()) {
                values.add(value.toString());
            }
        }
        StringJoiner old = new StringJoiner(",");
        for (FallbackKey key : option.fallbackKeys()) {
            if (key.isDeprecated()) {
                old.add(key.getKey());
            }
        }
        System.out.println(String.join("\t", options.getName(), prefix + option.key(),
                (type.isEnum() ? "Enum" : type.getSimpleName()) + ((Boolean) asked(option, "isList") ? "[]" : ""),
                values.toString(), oneLine(text(option.defaultValue())), old.toString(),
                oneLine(new HtmlFormatter().format(option.description()))));
    }

    private static Object asked(ConfigOption<?> option, String method) throws Exception {
        Method found = ConfigOption.class.getDeclaredMethod(method);
        found.setAccessible(true);
        return found.invoke(option);
    }

    /** A value as a user would write it; empty for none. */
    private static String text(Object value) {
        if (value == null) {
            return "";
        }
        if (value instanceof Duration) {
            return TimeUtils.formatWithHighestUnit((Duration) value);
        }
        if (value instanceof Collection) {
            StringJoiner items = new StringJoiner(";");
            ((Collection<?>) value).forEach(item -> items.add(text(item)));
            return items.toString();
        }
        if (value instanceof Map) {
            StringJoiner pairs = new StringJoiner(",");
            ((Map<?, ?>) value).forEach((key, item) -> pairs.add(key + ":" + item));
            return pairs.toString();
        }
        return value.toString();
    }

    private static String oneLine(String text) {
        return text.replaceAll("\\s+", " ").trim();
    }
}
