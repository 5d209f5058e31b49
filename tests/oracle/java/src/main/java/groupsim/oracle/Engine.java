package groupsim.oracle;

import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.TransactionResult;
import org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataImage;
import org.apache.kafka.coordinator.common.runtime.RuntimeAccess;
import org.apache.kafka.coordinator.group.GroupAccess;
import org.apache.kafka.coordinator.group.GroupCoordinatorShard;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.server.util.timer.TimerTask;

/** One group coordinator with its clock, timer, logs and topics; made anew by each reset. */
final class Engine {
    // Far above what one command of a sane script fires at one instant.
    private static final int LIVELOCK = 20_000;

    final Topics topics;
    final Replication replication;
    final LogLoader loader;
    private final VirtualTime time;
    private final ManualTimer timer;
    private final EventQueue events = new EventQueue();
    private final GroupAccess.Coordinator coordinator;
    private final ApiLayer apiLayer;
    private final int partitions;
    private List<ObjectNode> completed = new ArrayList<>();

    /** A coordinator with empty logs and no topics. */
    Engine(BrokerConfig config, long timeMs) {
        this(config, new VirtualTime(timeMs), new Topics(), new Replication());
    }

    /** What a crashed broker is after its restart: the logs, topics and time of {@code before}. */
    Engine(BrokerConfig config, Engine before) {
        this(config, before.time, before.topics, before.replication);
    }

    private Engine(BrokerConfig config, VirtualTime time, Topics topics, Replication replication) {
        this.time = time;
        this.topics = topics;
        this.replication = replication;
        replication.attach(config.offsetsLog());
        timer = new ManualTimer(time);
        loader = new LogLoader(replication, time);
        partitions = config.group().offsetsTopicPartitions();
        coordinator = GroupAccess.build(new GroupAccess.World(
            config.group(), config.groupConfigs(), time, timer, events, replication, loader,
            new DirectExecutor(), new QuietMetrics(), QuietMetrics.group()));
        apiLayer = new ApiLayer(coordinator.service(), topics);
    }

    void startup() {
        coordinator.service().startup(() -> partitions);
    }

    void shutdown() {
        coordinator.service().shutdown();
        settle();
    }

    long nowMs() {
        return time.milliseconds();
    }

    int partitions() {
        return partitions;
    }

    /**
     * Runs queued events and timers that are due until neither is left. All timers of one instant
     * put their events into the queue before the first event runs, as Kafka's timer thread does
     * with the timers of one millisecond; only the flush of a lingering batch, which goes to the
     * front of the queue, waits for the events of the timers before it.
     */
    void settle() {
        events.drain();
        for (int fired = 0; timer.nextDeadlineMs() <= time.milliseconds(); fired++) {
            if (fired == LIVELOCK) {
                throw new CommandError("livelock: timers of zero delay keep each other going");
            }
            TimerTask next = timer.next();
            if (RuntimeAccess.isFlush(next)) {
                events.drain();
                // The events before it may have flushed the batch and cancelled its timer.
                if (timer.nextDeadlineMs() <= time.milliseconds() && timer.next() == next) {
                    timer.fireNext();
                    events.drain();
                }
            } else {
                timer.fireNext();
            }
            if (timer.nextDeadlineMs() > time.milliseconds()) {
                events.drain();
            }
        }
    }

    /** Moves the clock, stopping at every deadline on the way. */
    void advanceTo(long targetMs) {
        settle();
        while (timer.nextDeadlineMs() <= targetMs) {
            time.moveTo(timer.nextDeadlineMs());
            settle();
        }
        time.moveTo(targetMs);
    }

    /** Hands a request to the coordinator; its answer appears among the completions. */
    void request(Api api, long token, ObjectNode json, Context context) {
        if (!api.key.isVersionSupported(context.version())) {
            closeConnection(token, "UNSUPPORTED_VERSION");
            return;
        }
        AbstractRequest request = api.parse(json, context.version());
        apiLayer.handle(api, request, context).handle((response, failure) -> {
            try {
                complete(token, api.response(failure == null ? response.data()
                    : request.getErrorResponse(failure).data(), context.version()));
            } catch (RuntimeException unwritable) {
                // The broker cannot write such an answer at this version and drops the client.
                closeConnection(token, unwritable.getMessage());
            }
            return null;
        });
    }

    private void complete(long token, JsonNode response) {
        ObjectNode done = Json.object().put("token", token).put("at", nowMs());
        done.set("response", response);
        completed.add(done);
    }

    private void closeConnection(long token, String why) {
        completed.add(Json.object().put("token", token).put("at", nowMs())
            .put("closed", true).put("error", why));
    }

    /** A transaction coordinator's marker for one partition, as KafkaApis answers it. */
    void endTransaction(long token, int partition, long producerId, short producerEpoch,
                        int coordinatorEpoch, TransactionResult result, short version) {
        coordinator.service().completeTransaction(Replication.offsetsPartition(partition),
            producerId, producerEpoch, coordinatorEpoch, result, version)
            .handle((done, failure) -> {
                Errors error = failure == null ? Errors.NONE : Errors.forException(failure);
                error = switch (error) {
                    case COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS,
                        NOT_COORDINATOR -> Errors.NOT_LEADER_OR_FOLLOWER;
                    default -> error;
                };
                complete(token, Json.object().put("errorCode", error.code()));
                return null;
            });
    }

    int partitionFor(String groupId) {
        return coordinator.service().partitionFor(groupId);
    }

    void elect(int partition, int epoch) {
        coordinator.service().onElection(partition, epoch);
    }

    void resign(int partition, OptionalInt epoch) {
        coordinator.service().onResignation(partition, epoch);
    }

    /** Tells the coordinator of what was set or removed since {@code topics.begin()}. */
    void publishTopics() {
        MetadataDelta delta = topics.commit();
        coordinator.runtime().onMetadataUpdate(new KRaftCoordinatorMetadataDelta(delta),
            new KRaftCoordinatorMetadataImage(topics.image()));
        Map<Uuid, String> deleted = new LinkedHashMap<>();
        if (delta.topicsDelta() != null) {
            for (Uuid id : delta.topicsDelta().deletedTopicIds()) {
                deleted.put(id, delta.topicsDelta().image().getTopic(id).name());
            }
        }
        if (!deleted.isEmpty()) {
            GroupAccess.topicsDeleted(coordinator, deleted);
        }
    }

    /** Completions since the last call. */
    List<ObjectNode> takeCompleted() {
        List<ObjectNode> taken = completed;
        completed = new ArrayList<>();
        return taken;
    }

    List<RuntimeAccess.Partition<GroupCoordinatorShard>> coordinators() {
        return RuntimeAccess.partitions(coordinator.runtime());
    }

    /** The armed timers in firing order. */
    ArrayNode timers() {
        Map<TimerTask, Integer> owners = new IdentityHashMap<>();
        coordinators().forEach(partition -> partition.timers().values()
            .forEach(task -> owners.put(task, partition.partition())));
        ArrayNode result = Json.array();
        for (ManualTimer.Armed armed : timer.armed()) {
            RuntimeAccess.Purpose purpose = RuntimeAccess.purpose(armed.task());
            ObjectNode node = result.addObject();
            node.put("deadline", armed.deadlineMs()).put("kind", purpose.kind());
            node.put("name", purpose.name());
            if (purpose.kind().equals("group")) {
                // Null: armed by a coordinator that was unloaded since; fires without effect.
                node.put("partition", owners.get(armed.task()));
            } else {
                node.put("partition", purpose.partition());
            }
        }
        return result;
    }
}
