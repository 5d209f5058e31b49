package groupsim.oracle;

import java.lang.reflect.Field;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.protocol.Message;

/**
 * Completes the JSON of a request: a field that is left out gets the default of Kafka's schema, at
 * every depth. A field the message does not have at any version is a {@link CommandError}; one it
 * has at other versions only is ignored, as in Kafka's converters.
 */
final class Defaults {
    private record Key(Class<?> type, short version) {
    }

    private static final Map<Key, ObjectNode> TEMPLATES = new HashMap<>();
    private static final Map<Class<?>, Map<String, Class<?>>> NESTED = new HashMap<>();

    private Defaults() {
    }

    static void fill(ObjectNode json, Class<?> type, short version) {
        ObjectNode template = TEMPLATES.computeIfAbsent(new Key(type, version), Defaults::template);
        Map<String, Class<?>> nested = NESTED.computeIfAbsent(type, Defaults::fields);
        for (Iterator<Map.Entry<String, JsonNode>> given = json.fields(); given.hasNext();) {
            Map.Entry<String, JsonNode> field = given.next();
            if (!nested.containsKey(field.getKey())) {
                throw new CommandError(type.getSimpleName() + " has no field " + field.getKey());
            }
            fillNested(field.getValue(), nested.get(field.getKey()), version);
        }
        for (Iterator<Map.Entry<String, JsonNode>> all = template.fields(); all.hasNext();) {
            Map.Entry<String, JsonNode> field = all.next();
            if (!json.has(field.getKey())) {
                json.set(field.getKey(), field.getValue().deepCopy());
            }
        }
    }

    private static void fillNested(JsonNode value, Class<?> struct, short version) {
        if (struct == null) {
            return;
        }
        if (value.isArray()) {
            value.forEach(element -> fillNested(element, struct, version));
        } else if (value.isObject()) {
            fill((ObjectNode) value, struct, version);
        }
    }

    /** A new message written by its JSON converter: every field of the version at its default. */
    private static ObjectNode template(Key key) {
        try {
            Object empty = key.type().getDeclaredConstructor().newInstance();
            return (ObjectNode) Class.forName(converterName(key.type()))
                .getMethod("write", key.type(), short.class)
                .invoke(null, empty, key.version());
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("no template for " + key, e);
        }
    }

    /** JoinGroupRequestData$JoinGroupRequestProtocol has a converter nested in the outer's. */
    private static String converterName(Class<?> type) {
        Class<?> outer = type.getDeclaringClass();
        String own = type.getSimpleName() + "JsonConverter";
        return outer == null ? type.getPackageName() + "." + own
            : outer.getName() + "JsonConverter$" + own;
    }

    /** All fields of a message by name, each with the class of its structures, null for others. */
    private static Map<String, Class<?>> fields(Class<?> type) {
        Map<String, Class<?>> result = new HashMap<>();
        for (Field field : type.getDeclaredFields()) {
            result.put(field.getName(), struct(field.getGenericType()));
        }
        return result;
    }

    private static Class<?> struct(Type type) {
        if (type instanceof ParameterizedType generic) {
            return struct(generic.getActualTypeArguments()[0]);
        }
        if (type instanceof Class<?> plain) {
            if (Message.class.isAssignableFrom(plain)) {
                return plain;
            }
            // Collections such as JoinGroupRequestProtocolCollection extend a generic base.
            return plain.getGenericSuperclass() instanceof ParameterizedType base
                ? struct(base) : null;
        }
        return null;
    }
}
