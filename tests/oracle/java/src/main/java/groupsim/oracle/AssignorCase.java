package groupsim.oracle;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/** One assignor object of Kafka's and the groups given to it, one after the other. */
final class AssignorCase {
    private static final Node[] NO_NODES = new Node[0];

    private final String kind;
    private final long limitSeconds;
    private final ConsumerPartitionAssignor assignor;
    private long nanoseconds;
    private boolean stuck;

    AssignorCase(String kind, long limitSeconds) {
        this.kind = kind;
        this.limitSeconds = limitSeconds;
        this.assignor = switch (kind) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "sticky" -> new StickyAssignor();
            case "cooperative-sticky" -> new CooperativeStickyAssignor();
            default -> throw new CommandError("no assignor \"" + kind + "\"");
        };
    }

    /** CPU time of assign() so far; what the compiler and the collector do beside it is left out. */
    long nanoseconds() {
        return nanoseconds;
    }

    /** Whether assign() did not come back in time; it is still running then. */
    boolean isStuck() {
        return stuck;
    }

    ObjectNode play(JsonNode round) {
        JsonNode told = round.get("told");
        if (told != null) {
            assignor.onAssignment(new Assignment(partitions(told.get("parts"))), inGeneration(told));
        }
        ByteBuffer sent = assignor.subscriptionUserData(Collections.emptySet());
        MessageDigest wire = sha256();
        List<String> order = new ArrayList<>();
        // As ConsumerCoordinator.onLeaderElected fills it.
        Map<String, Subscription> subscriptions = new HashMap<>();
        for (JsonNode member : round.get("members")) {
            order.add(member.get("id").textValue());
            subscriptions.put(member.get("id").textValue(), subscription(member, wire));
        }
        ObjectNode outcome = Json.object();
        outcome.set("result", assign(cluster(round.get("topics")), subscriptions, order, wire));
        outcome.put("sent", sent == null ? null : HexFormat.of().formatHex(bytes(sent)));
        outcome.put("wire", HexFormat.of().formatHex(wire.digest()).substring(0, 16));
        return outcome;
    }

    private ObjectNode assign(Cluster cluster, Map<String, Subscription> subscriptions,
                              List<String> order, MessageDigest wire) {
        ObjectNode result = Json.object();
        Map<String, Assignment> plan;
        try {
            plan = timed(cluster, new GroupSubscription(subscriptions));
        } catch (RuntimeException e) {
            return result.put("!", e.getClass().getSimpleName());
        } catch (TimeoutException e) {
            stuck = true;
            return result.put("!", "(never returns)");
        }
        plan.forEach((id, assignment) -> result.set(id, json(assignment.partitions())));
        for (String id : order) {
            wire.update(ConsumerProtocol.serializeAssignment(plan.get(id)));
        }
        return result;
    }

    /** Runs assign() in a thread of its own: it does not always end (X5). */
    private Map<String, Assignment> timed(Cluster cluster, GroupSubscription group)
            throws TimeoutException {
        FutureTask<Map<String, Assignment>> task = new FutureTask<>(() -> {
            ThreadMXBean clock = ManagementFactory.getThreadMXBean();
            long start = clock.getCurrentThreadCpuTime();
            try {
                return assignor.assign(cluster, group).groupAssignment();
            } finally {
                nanoseconds += clock.getCurrentThreadCpuTime() - start;
            }
        });
        Thread thread = new Thread(task, "assign");
        thread.setDaemon(true);
        thread.start();
        try {
            return task.get(limitSeconds, TimeUnit.SECONDS);
        } catch (ExecutionException e) {
            if (e.getCause() instanceof RuntimeException thrown) {
                throw thrown;
            }
            throw new AssertionError("assign() ended with", e.getCause());
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    /** The member's subscription as it arrives at the leader, after the way over the wire. */
    private Subscription subscription(JsonNode member, MessageDigest wire) {
        List<String> topics = new ArrayList<>();
        member.get("topics").forEach(topic -> topics.add(topic.textValue()));
        ByteBuffer data = ConsumerProtocol.serializeSubscription(
            new Subscription(topics, userData(member), partitions(member.get("owned")),
                member.get("gen").intValue(), Optional.ofNullable(Json.text(member, "rack", null))),
            (short) member.get("ver").intValue());
        wire.update(data.duplicate());
        Subscription arrived = ConsumerProtocol.deserializeSubscription(data);
        arrived.setGroupInstanceId(Optional.ofNullable(Json.text(member, "inst", null)));
        return arrived;
    }

    private ByteBuffer userData(JsonNode member) {
        if (member.hasNonNull("raw")) {
            return ByteBuffer.wrap(HexFormat.of().parseHex(member.get("raw").textValue()));
        }
        JsonNode data = member.get("ud");
        if (data == null) {
            return null;
        }
        // Kafka's own encoding: that of an assignor which was told just this.
        ConsumerPartitionAssignor writer =
            kind.equals("sticky") ? new StickyAssignor() : new CooperativeStickyAssignor();
        writer.onAssignment(new Assignment(partitions(data.path("parts"))), inGeneration(data));
        return writer.subscriptionUserData(Collections.emptySet());
    }

    private static ConsumerGroupMetadata inGeneration(JsonNode data) {
        return new ConsumerGroupMetadata("g", data.get("gen").intValue(), "", Optional.empty());
    }

    private static Cluster cluster(JsonNode topics) {
        Map<String, Node> nodes = new LinkedHashMap<>();
        List<PartitionInfo> partitions = new ArrayList<>();
        topics.fields().forEachRemaining(entry -> {
            for (int number = 0; number < entry.getValue().size(); number++) {
                List<Node> replicas = new ArrayList<>();
                for (JsonNode rack : entry.getValue().get(number)) {
                    replicas.add(nodes.computeIfAbsent(rack.asText() + rack.isNull(), name ->
                        new Node(nodes.size(), "h", 9092, rack.isNull() ? null : rack.textValue())));
                }
                partitions.add(new PartitionInfo(entry.getKey(), number, null,
                    replicas.toArray(NO_NODES), NO_NODES));
            }
        });
        return new Cluster("c", nodes.values(), partitions, Collections.emptySet(),
            Collections.emptySet());
    }

    private static List<TopicPartition> partitions(JsonNode pairs) {
        List<TopicPartition> partitions = new ArrayList<>();
        pairs.forEach(pair -> partitions.add(
            new TopicPartition(pair.get(0).textValue(), pair.get(1).intValue())));
        return partitions;
    }

    private static ArrayNode json(List<TopicPartition> partitions) {
        ArrayNode pairs = Json.array();
        partitions.forEach(tp -> pairs.add(Json.array().add(tp.topic()).add(tp.partition())));
        return pairs;
    }

    private static byte[] bytes(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return bytes;
    }

    private static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }
}
