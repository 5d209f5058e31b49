package groupsim.oracle;

import java.util.List;
import java.util.OptionalInt;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.TransactionResult;
import org.apache.kafka.coordinator.common.runtime.RuntimeAccess;
import org.apache.kafka.coordinator.group.GroupCoordinatorConfig;
import org.apache.kafka.coordinator.group.GroupCoordinatorShard;

/** Carries out commands, one at a time, and makes their results. */
final class Commands {
    private static final short TRANSACTION_VERSION = 2;

    private Engine engine = null;

    /** Never throws: what goes wrong is the result's "error". */
    ObjectNode execute(ObjectNode command) {
        ObjectNode result = Json.object();
        long drawn = MemberIds.draws();
        try {
            String op = Json.text(command, "op");
            if (op.equals("versions")) {
                versions(result);
            } else if (op.equals("configs")) {
                configs(result);
            } else if (op.equals("reset")) {
                drawn = 0;
                reset(command, result);
            } else if (engine == null) {
                throw new CommandError("the first command is reset");
            } else if (Api.named(op) != null) {
                request(Api.named(op), command);
            } else {
                control(op, command, result);
            }
        } catch (CommandError e) {
            result.put("error", e.getMessage());
        } catch (RuntimeException | LinkageError e) {
            result.put("error", e.getClass().getName() + ": " + e.getMessage());
        }
        if (engine != null) {
            report(result, drawn);
        }
        return result;
    }

    private void report(ObjectNode result, long drawn) {
        result.put("now", engine.nowMs());
        ArrayNode completed = result.putArray("completed");
        engine.takeCompleted().forEach(completed::add);
        ArrayNode appends = result.putArray("appends");
        engine.replication.takeNews().forEach(appends::add);
        List<ObjectNode> errors = ErrorLog.takeErrors();
        if (!errors.isEmpty()) {
            errors.forEach(result.putArray("logged")::add);
        }
        if (MemberIds.draws() > drawn) {
            result.put("uuids", MemberIds.draws() - drawn);
        }
    }

    private void reset(JsonNode command, ObjectNode result) {
        engine = null;
        MemberIds.restart(Json.text(command, "seed", ""));
        Engine fresh = new Engine(config(command), Json.integer(command, "time", 0));
        fresh.topics.begin();
        if (command.hasNonNull("topics")) {
            setTopics(fresh, command.get("topics"));
        }
        start(fresh, command);
        describeTopics(result);
    }

    /** The broker dies without a word and comes back, maybe with another configuration. */
    private void restart(JsonNode command) {
        Engine fresh = new Engine(config(command), engine);
        fresh.topics.begin();
        start(fresh, command);
    }

    private void start(Engine fresh, JsonNode command) {
        fresh.publishTopics();
        if (Json.flag(command, "started", true)) {
            fresh.startup();
            if (command.hasNonNull("load")) {
                command.get("load").forEach(partition -> fresh.elect(partition.intValue(), 0));
            } else {
                for (int partition = 0; partition < fresh.partitions(); partition++) {
                    fresh.elect(partition, 0);
                }
            }
        }
        fresh.settle();
        engine = fresh;
    }

    private static BrokerConfig config(JsonNode command) {
        return BrokerConfig.from(
            command.hasNonNull("config") ? command.get("config") : Json.object());
    }

    private void request(Api api, ObjectNode command) {
        short version = (short) Json.integer(command, "version", api.key.latestVersion());
        Context context = Context.of(api.key, version,
            Json.text(command, "client_id", "client"),
            Json.text(command, "client_host", "127.0.0.1"));
        if (!(Json.need(command, "request") instanceof ObjectNode body)) {
            throw new CommandError("field \"request\" must be an object");
        }
        engine.request(api, Json.integer(command, "token"), body, context);
        if (Json.flag(command, "settle", true)) {
            engine.settle();
        }
    }

    private void control(String op, JsonNode command, ObjectNode result) {
        switch (op) {
            case "restart" -> restart(command);
            case "advance" -> advance(command);
            case "timers" -> result.set("timers", engine.timers());
            case "snapshot" -> snapshot(command, result);
            case "records" -> records(partition(command), result);
            case "hold" -> engine.replication.hold(Json.flag(command, "on", true));
            case "commit_appends" -> commitAppends(command);
            case "fail_next_append" -> engine.replication.failNextAppend(
                optionalPartition(command), error(command));
            case "fail_next_verification" ->
                engine.replication.failNextVerification(error(command));
            case "load" -> engine.elect(partition(command), (int) Json.integer(command, "epoch"));
            case "unload" -> engine.resign(partition(command), command.hasNonNull("epoch")
                ? OptionalInt.of((int) Json.integer(command, "epoch")) : OptionalInt.empty());
            case "hold_load" -> engine.loader.hold(Json.flag(command, "on", true));
            case "finish_load" -> finishLoad(command);
            case "compact" -> result.put("removed",
                engine.replication.log(partition(command)).compact());
            case "truncate" -> result.put("removed",
                engine.replication.log(partition(command)).truncateToHighWatermark());
            case "end_txn" -> endTransaction(command);
            case "topics" -> {
                engine.topics.begin();
                setTopics(engine, Json.need(command, "topics"));
                engine.publishTopics();
                describeTopics(result);
            }
            case "topics_deleted" -> topicsDeleted(command);
            case "partition_for" -> result.put("partition",
                engine.partitionFor(Json.text(command, "group")));
            case "startup" -> engine.startup();
            case "shutdown" -> engine.shutdown();
            default -> throw new CommandError("unknown op " + op);
        }
        engine.settle();
    }

    private void advance(JsonNode command) {
        long ms = Json.integer(command, "ms");
        if (ms < 0) {
            throw new CommandError("time does not go backwards");
        }
        engine.advanceTo(engine.nowMs() + ms);
    }

    private void snapshot(JsonNode command, ObjectNode result) {
        Integer only = optionalPartition(command);
        ArrayNode partitions = result.putObject("snapshot").putArray("partitions");
        for (RuntimeAccess.Partition<GroupCoordinatorShard> partition : engine.coordinators()) {
            if (only == null || only == partition.partition()) {
                partitions.add(Snapshots.partition(
                    partition, engine.replication.logs().get(partition.partition())));
            }
        }
        ((ObjectNode) result.get("snapshot")).set("timers", engine.timers());
    }

    private void records(int partition, ObjectNode result) {
        PartitionLog log = engine.replication.log(partition);
        result.put("log_end", log.endOffset()).put("high_watermark", log.highWatermark());
        ArrayNode batches = result.putArray("batches");
        log.batches().forEach(batch -> batches.add(Appends.describe(batch)));
    }

    private void commitAppends(JsonNode command) {
        JsonNode upTo = Json.need(command, "upto");
        if (upTo.isTextual() && upTo.textValue().equals("all")) {
            engine.replication.commitAll();
        } else {
            engine.replication.commitUpTo(Json.integer(command, "upto"));
        }
    }

    private void finishLoad(JsonNode command) {
        Errors error = command.hasNonNull("error") ? error(command) : null;
        if (!engine.loader.finish(optionalPartition(command), error)) {
            throw new CommandError("no load is held");
        }
    }

    private void endTransaction(JsonNode command) {
        int partition = command.hasNonNull("group")
            ? engine.partitionFor(Json.text(command, "group")) : partition(command);
        TransactionResult outcome = switch (Json.text(command, "result")) {
            case "COMMIT" -> TransactionResult.COMMIT;
            case "ABORT" -> TransactionResult.ABORT;
            default -> throw new CommandError("result is COMMIT or ABORT");
        };
        engine.endTransaction(Json.integer(command, "token"), partition,
            Json.integer(command, "producer_id"),
            (short) Json.integer(command, "producer_epoch", 0),
            (int) Json.integer(command, "coordinator_epoch", 0), outcome,
            (short) Json.integer(command, "transaction_version", TRANSACTION_VERSION));
    }

    private static void setTopics(Engine engine, JsonNode topics) {
        topics.fields().forEachRemaining(topic ->
            engine.topics.set(topic.getKey(), topic.getValue().intValue()));
    }

    private void topicsDeleted(JsonNode command) {
        engine.topics.begin();
        Json.need(command, "topics").forEach(name -> engine.topics.remove(name.textValue()));
        engine.publishTopics();
    }

    private void describeTopics(ObjectNode result) {
        ObjectNode topics = result.putObject("topics");
        engine.topics.all().forEach(topic -> topics.putObject(topic.name())
            .put("id", topic.id().toString()).put("partitions", topic.partitions().size()));
    }

    private static void versions(ObjectNode result) {
        ObjectNode versions = result.putObject("versions");
        for (Api api : Api.values()) {
            ApiKeys key = api.key;
            versions.putObject(api.op).put("api", key.name)
                .put("oldest", key.oldestVersion()).put("latest", key.latestVersion())
                .put("latest_unstable", key.latestVersion(true));
        }
    }

    private static void configs(ObjectNode result) {
        ObjectNode configs = result.putObject("configs");
        GroupCoordinatorConfig.CONFIG_DEF.configKeys().values().forEach(config -> {
            ObjectNode node = configs.putObject(config.name);
            node.put("type", config.type.name());
            node.put("default", config.defaultValue == null ? null : config.defaultValue.toString());
            node.put("valid", config.validator == null ? null : config.validator.toString());
            node.put("internal", config.internalConfig);
        });
    }

    private static int partition(JsonNode command) {
        return (int) Json.integer(command, "partition");
    }

    private static Integer optionalPartition(JsonNode command) {
        return command.hasNonNull("partition") ? partition(command) : null;
    }

    private static Errors error(JsonNode command) {
        String name = Json.text(command, "error");
        try {
            return Errors.valueOf(name);
        } catch (IllegalArgumentException e) {
            throw new CommandError("no such error: " + name);
        }
    }
}
