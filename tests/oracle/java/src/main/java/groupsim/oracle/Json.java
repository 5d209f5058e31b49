package groupsim.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

/** Reading fields of commands; a missing or mistyped one is a {@link CommandError}. */
final class Json {
    static final ObjectMapper MAPPER = new ObjectMapper();

    private Json() {
    }

    static ObjectNode object() {
        return JsonNodeFactory.instance.objectNode();
    }

    static ArrayNode array() {
        return JsonNodeFactory.instance.arrayNode();
    }

    static JsonNode need(JsonNode command, String field) {
        JsonNode value = command.get(field);
        if (value == null || value.isNull()) {
            throw new CommandError("field \"" + field + "\" is missing");
        }
        return value;
    }

    static long integer(JsonNode command, String field) {
        JsonNode value = need(command, field);
        if (!value.isIntegralNumber()) {
            throw new CommandError("field \"" + field + "\" must be an integer, not " + value);
        }
        return value.longValue();
    }

    static long integer(JsonNode command, String field, long absent) {
        return command.hasNonNull(field) ? integer(command, field) : absent;
    }

    static String text(JsonNode command, String field) {
        JsonNode value = need(command, field);
        if (!value.isTextual()) {
            throw new CommandError("field \"" + field + "\" must be a string, not " + value);
        }
        return value.textValue();
    }

    static String text(JsonNode command, String field, String absent) {
        return command.hasNonNull(field) ? text(command, field) : absent;
    }

    static boolean flag(JsonNode command, String field, boolean absent) {
        if (!command.hasNonNull(field)) {
            return absent;
        }
        JsonNode value = command.get(field);
        if (!value.isBoolean()) {
            throw new CommandError("field \"" + field + "\" must be true or false, not " + value);
        }
        return value.booleanValue();
    }
}
