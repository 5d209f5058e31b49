package groupsim.oracle;

import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * Reads cases of the vector format (tests/vectors/README.md) from standard input, one a line, and
 * writes what Kafka's own assignors make of them. A case with "repeat" is run that often, each
 * time with a new assignor, and answered by the CPU nanoseconds of each call as well. After a
 * call that does not return within "limit" seconds the driver answers "stuck" and ends; rounds after
 * that one are not played.
 */
public final class AssignorDriver {
    private static final long LIMIT_SECONDS = 20;

    private AssignorDriver() {
    }

    public static void main(String[] args) throws IOException {
        OutputStream output = new BufferedOutputStream(System.out, 1 << 16);
        System.setOut(System.err);
        BufferedReader input =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8), 1 << 16);
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            if (!line.isBlank()) {
                ObjectNode answer = answer(Json.MAPPER.readTree(line));
                output.write(Json.MAPPER.writeValueAsBytes(answer));
                output.write('\n');
                output.flush();
                if (answer.get("stuck").booleanValue()) {
                    return; // the only way to end the thread
                }
            }
        }
    }

    private static ObjectNode answer(JsonNode vector) {
        ObjectNode answer = Json.object();
        ArrayNode nanoseconds = Json.array();
        int repeats = vector.path("repeat").asInt(1);
        for (int run = 0; run < repeats; run++) {
            AssignorCase running = new AssignorCase(Json.text(vector, "kind"),
                Json.integer(vector, "limit", LIMIT_SECONDS));
            ArrayNode rounds = Json.array();
            for (JsonNode round : Json.need(vector, "rounds")) {
                if (!running.isStuck()) {
                    rounds.add(running.play(round));
                }
            }
            answer.put("stuck", running.isStuck());
            nanoseconds.add(running.nanoseconds());
            answer.set("rounds", rounds);
            ErrorLog.takeErrors();
        }
        if (vector.has("repeat")) {
            answer.set("nanoseconds", nanoseconds);
        }
        return answer;
    }
}
