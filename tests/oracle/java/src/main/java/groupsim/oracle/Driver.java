package groupsim.oracle;

import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * Reads commands from standard input and writes results to standard output, one JSON value a line:
 * an object is answered by an object, an array of commands by the array of their results. The
 * language is described in tests/oracle/README.md.
 */
public final class Driver {
    private Driver() {
    }

    public static void main(String[] args) throws IOException {
        MemberIds.install();
        OutputStream output = new BufferedOutputStream(System.out, 1 << 16);
        // Nothing but results may reach standard output.
        System.setOut(System.err);
        BufferedReader input =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8), 1 << 16);
        Commands commands = new Commands();
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            if (!line.isBlank()) {
                output.write(Json.MAPPER.writeValueAsBytes(answer(commands, line)));
                output.write('\n');
                output.flush();
            }
        }
    }

    private static JsonNode answer(Commands commands, String line) {
        JsonNode request;
        try {
            request = Json.MAPPER.readTree(line);
        } catch (JsonProcessingException e) {
            return Json.object().put("error", "not JSON: " + e.getOriginalMessage());
        }
        if (!request.isArray()) {
            return execute(commands, request);
        }
        ArrayNode results = Json.array();
        request.forEach(command -> results.add(execute(commands, command)));
        return results;
    }

    private static JsonNode execute(Commands commands, JsonNode command) {
        return command instanceof ObjectNode object ? commands.execute(object)
            : Json.object().put("error", "a command is a JSON object, not " + command);
    }
}
