package org.apache.kafka.coordinator.group;

import java.lang.reflect.Field;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.coordinator.common.runtime.CoordinatorEventProcessor;
import org.apache.kafka.coordinator.common.runtime.CoordinatorLoader;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRuntimeMetrics;
import org.apache.kafka.coordinator.common.runtime.PartitionWriter;
import org.apache.kafka.coordinator.group.classic.ClassicGroup;
import org.apache.kafka.coordinator.group.metrics.GroupCoordinatorMetrics;
import org.apache.kafka.server.share.persister.NoOpStatePersister;
import org.apache.kafka.server.util.PartitionMetadataClient;
import org.apache.kafka.server.util.timer.Timer;

/**
 * Builds and looks into the group coordinator. Lives in Kafka's package because the service's
 * constructor, and much of what is inspected, is package-private.
 */
public final class GroupAccess {
    private static final Field GROUPS = field(GroupCoordinatorShard.class, "groupMetadataManager");
    private static final Field OFFSETS = field(GroupCoordinatorShard.class, "offsetMetadataManager");
    private static final Field COMMITTED = field(OffsetMetadataManager.class, "offsets");
    private static final Field PENDING =
        field(OffsetMetadataManager.class, "pendingTransactionalOffsets");
    private static final Field OPEN = field(OffsetMetadataManager.class, "openTransactions");
    private static final Field BY_GROUP = field(COMMITTED.getType(), "offsetsByGroup");
    private static final Field OPEN_BY_GROUP = field(OPEN.getType(), "openTransactionsByGroup");
    private static final Field PENDING_JOIN = field(ClassicGroup.class, "pendingJoinMembers");
    private static final Field PENDING_SYNC = field(ClassicGroup.class, "pendingSyncMembers");
    private static final Field STATE_TIMESTAMP = field(ClassicGroup.class, "currentStateTimestamp");

    // Share groups ask it for the ends of partitions; classic groups never do.
    private static final PartitionMetadataClient NO_OFFSETS = new PartitionMetadataClient() {
        @Override
        public Map<TopicPartition, CompletableFuture<OffsetResponse>> listLatestOffsets(
                Set<TopicPartition> partitions) {
            throw new UnsupportedOperationException("share groups are not driven");
        }

        @Override
        public void close() {
        }
    };

    private GroupAccess() {
    }

    /** A service and the runtime inside it. */
    public record Coordinator(
        GroupCoordinatorService service,
        CoordinatorRuntime<GroupCoordinatorShard, CoordinatorRecord> runtime) {
    }

    /** What the coordinator is built around; see GroupCoordinatorService.Builder.build. */
    public record World(
        GroupCoordinatorConfig config, GroupConfigManager groupConfigs, Time time, Timer timer,
        CoordinatorEventProcessor events, PartitionWriter writer,
        CoordinatorLoader<CoordinatorRecord> loader, ExecutorService executor,
        CoordinatorRuntimeMetrics runtimeMetrics, GroupCoordinatorMetrics metrics) {
    }

    /** GroupCoordinatorService.Builder.build with our event processor and executor. */
    public static Coordinator build(World world) {
        LogContext log = new LogContext("[GroupCoordinator id=0] ");
        GroupCoordinatorConfig config = world.config();
        CoordinatorRuntime<GroupCoordinatorShard, CoordinatorRecord> runtime =
            new CoordinatorRuntime.Builder<GroupCoordinatorShard, CoordinatorRecord>()
                .withTime(world.time())
                .withTimer(world.timer())
                .withLogPrefix("GroupCoordinator id=0")
                .withLogContext(log)
                .withEventProcessor(world.events())
                .withPartitionWriter(world.writer())
                .withLoader(world.loader())
                .withCoordinatorShardBuilderSupplier(() ->
                    new GroupCoordinatorShard.Builder(config, world.groupConfigs())
                        .withAuthorizerPlugin(Optional.empty()))
                .withWriteTimeout(Duration.ofMillis(config.offsetCommitTimeoutMs()))
                .withCoordinatorRuntimeMetrics(world.runtimeMetrics())
                .withCoordinatorMetrics(world.metrics())
                .withSerializer(new GroupCoordinatorRecordSerde())
                .withCompression(Compression.of(config.offsetTopicCompressionType()).build())
                .withAppendLingerMs(config.appendLingerMs())
                .withExecutorService(world.executor())
                .withCachedBufferMaxBytesSupplier(config::cachedBufferMaxBytes)
                .build();
        GroupCoordinatorService service = new GroupCoordinatorService(
            log, config, runtime, world.metrics(), world.groupConfigs(), new NoOpStatePersister(),
            world.timer(), NO_OFFSETS, Optional.empty(), world.time());
        return new Coordinator(service, runtime);
    }

    /**
     * GroupCoordinatorService.handleTopicsDeletion without its last line, which waits for the
     * futures and would stop the only thread there is.
     */
    public static void topicsDeleted(Coordinator coordinator, Map<Uuid, String> deleted) {
        List<GroupCoordinatorShard.DeletedTopic> topics = new ArrayList<>();
        deleted.forEach((id, name) ->
            topics.add(new GroupCoordinatorShard.DeletedTopic(id, name)));
        coordinator.runtime().scheduleWriteAllOperation(
            "on-topics-deleted", shard -> shard.onTopicsDeleted(topics));
        coordinator.runtime().scheduleWriteAllOperation(
            "maybe-cleanup-share-group-state",
            shard -> shard.maybeCleanupShareGroupState(deleted.keySet()));
    }

    public static GroupMetadataManager groups(GroupCoordinatorShard shard) {
        return (GroupMetadataManager) get(GROUPS, shard);
    }

    public static OffsetMetadataManager offsets(GroupCoordinatorShard shard) {
        return (OffsetMetadataManager) get(OFFSETS, shard);
    }

    /** group → topic → partition → offset. */
    @SuppressWarnings("unchecked")
    public static Map<String, Map<String, Map<Integer, OffsetAndMetadata>>> committed(
            GroupCoordinatorShard shard) {
        return (Map<String, Map<String, Map<Integer, OffsetAndMetadata>>>)
            get(BY_GROUP, get(COMMITTED, offsets(shard)));
    }

    /** producer id → group → topic → partition → offset. */
    @SuppressWarnings("unchecked")
    public static void forEachPending(GroupCoordinatorShard shard, PendingVisitor visitor) {
        ((Map<Long, Object>) get(PENDING, offsets(shard))).forEach((producerId, offsets) ->
            visitor.visit(producerId,
                (Map<String, Map<String, Map<Integer, OffsetAndMetadata>>>)
                    get(BY_GROUP, offsets)));
    }

    /** Called once for each producer with pending offsets. */
    public interface PendingVisitor {
        void visit(long producerId,
                   Map<String, Map<String, Map<Integer, OffsetAndMetadata>>> offsets);
    }

    /** group → topic → partition → ids of the producers with an open transaction on it. */
    @SuppressWarnings("unchecked")
    public static Map<String, Map<String, Map<Integer, Set<Long>>>> openTransactions(
            GroupCoordinatorShard shard) {
        return (Map<String, Map<String, Map<Integer, Set<Long>>>>)
            get(OPEN_BY_GROUP, get(OPEN, offsets(shard)));
    }

    @SuppressWarnings("unchecked")
    public static Set<String> pendingJoinMembers(ClassicGroup group) {
        return (Set<String>) get(PENDING_JOIN, group);
    }

    @SuppressWarnings("unchecked")
    public static Set<String> pendingSyncMembers(ClassicGroup group) {
        return (Set<String>) get(PENDING_SYNC, group);
    }

    @SuppressWarnings("unchecked")
    public static Optional<Long> stateTimestamp(ClassicGroup group) {
        return (Optional<Long>) get(STATE_TIMESTAMP, group);
    }

    private static Field field(Class<?> owner, String name) {
        try {
            Field field = owner.getDeclaredField(name);
            field.setAccessible(true);
            return field;
        } catch (NoSuchFieldException e) {
            throw new IllegalStateException(e);
        }
    }

    private static Object get(Field field, Object owner) {
        try {
            return field.get(owner);
        } catch (IllegalAccessException e) {
            throw new IllegalStateException(e);
        }
    }
}
