package org.apache.kafka.coordinator.common.runtime;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.server.util.timer.TimerTask;

/** Looks into a CoordinatorRuntime. Lives in Kafka's package to reach its package-private parts. */
public final class RuntimeAccess {
    private static final Field COORDINATORS = field(CoordinatorRuntime.class, "coordinators");
    private static final Field TASKS = field(CoordinatorTimerImpl.class, "tasks");
    private static final Field OPERATION_EVENT = field(operationTimeout(), "event");
    private static final Field OPERATION_PARTITION = field(operationTimeout(), "tp");

    private RuntimeAccess() {
    }

    /** One partition's coordinator; {@code shard} is null unless it is loading or active. */
    public record Partition<S>(int partition, String state, int epoch, S shard, long lastWritten,
                               long lastCommitted, int batchedRecords,
                               Map<String, TimerTask> timers) {
    }

    /** A runtime's partitions, by number. */
    @SuppressWarnings("unchecked")
    public static <S extends CoordinatorShard<U>, U> List<Partition<S>> partitions(
            CoordinatorRuntime<S, U> runtime) {
        List<Partition<S>> result = new ArrayList<>();
        Map<TopicPartition, CoordinatorRuntime<S, U>.CoordinatorContext> contexts =
            (Map<TopicPartition, CoordinatorRuntime<S, U>.CoordinatorContext>)
                get(COORDINATORS, runtime);
        contexts.forEach((tp, context) -> {
            SnapshottableCoordinator<S, U> coordinator = context.coordinator;
            result.add(new Partition<>(
                tp.partition(), context.state.name(), context.epoch,
                coordinator == null ? null : coordinator.coordinator(),
                coordinator == null ? -1 : coordinator.lastWrittenOffset(),
                coordinator == null ? -1 : coordinator.lastCommittedOffset(),
                batchedRecords(context.currentBatch),
                (Map<String, TimerTask>) get(TASKS, context.timer)));
        });
        result.sort(Comparator.comparingInt(Partition::partition));
        return result;
    }

    private static int batchedRecords(Object batch) {
        // CoordinatorBatch is private, so even its builder is reached by reflection.
        return batch == null ? 0
            : ((MemoryRecordsBuilder) get(field(batch.getClass(), "builder"), batch)).numRecords();
    }

    /** What a timer task of the runtime is for. */
    public record Purpose(String kind, String name, Integer partition) {
    }

    /**
     * Describes a task: kind "group" (a coordinator's keyed timer, by key), "operation" (T-8, by
     * the name of the write operation that waits) or "linger" (a batch to be flushed).
     */
    public static Purpose purpose(TimerTask task) {
        if (operationTimeout().isInstance(task)) {
            String event = get(OPERATION_EVENT, task).toString();
            String name = event.substring(event.indexOf('=') + 1, event.length() - 1);
            return new Purpose("operation", name,
                ((TopicPartition) get(OPERATION_PARTITION, task)).partition());
        }
        Class<?> wanted = isFlush(task) ? CoordinatorRuntime.CoordinatorContext.class : String.class;
        for (Field captured : task.getClass().getDeclaredFields()) {
            if (captured.getType() == wanted) {
                captured.setAccessible(true);
                Object value = get(captured, task);
                return value instanceof CoordinatorRuntime<?, ?>.CoordinatorContext owner
                    ? new Purpose("linger", "flush", owner.tp.partition())
                    : new Purpose("group", (String) value, null);
            }
        }
        return new Purpose("other", task.getClass().getName(), null);
    }

    /** Whether the task flushes a lingering batch (append.linger.ms above 0). */
    public static boolean isFlush(TimerTask task) {
        // An anonymous class inside CoordinatorContext.
        return task.getClass().getEnclosingClass() == CoordinatorRuntime.CoordinatorContext.class;
    }

    private static Class<?> operationTimeout() {
        return CoordinatorRuntime.OperationTimeout.class;
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
