package groupsim.oracle;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.CompletableFuture;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.requests.TransactionResult;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.common.runtime.CoordinatorLoader;
import org.apache.kafka.coordinator.common.runtime.CoordinatorPlayback;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;

/**
 * Replays a partition's log into a new coordinator as CoordinatorLoaderImpl does: up to the end of
 * the log, uncommitted records included, with the high watermark as the committed offset. While
 * loads are held, a load waits for {@link #finish}.
 */
final class LogLoader implements CoordinatorLoader<CoordinatorRecord> {
    // CoordinatorLoaderImpl.DEFAULT_COMMIT_INTERVAL_OFFSETS
    private static final long COMMIT_INTERVAL_OFFSETS = 16384;

    private record Waiting(int partition, CoordinatorPlayback<CoordinatorRecord> coordinator,
                           CompletableFuture<LoadSummary> result) {
    }

    private final Replication replication;
    private final Time time;
    private final Deque<Waiting> waiting = new ArrayDeque<>();
    private boolean held = false;

    LogLoader(Replication replication, Time time) {
        this.replication = replication;
        this.time = time;
    }

    void hold(boolean on) {
        held = on;
    }

    @Override
    public CompletableFuture<LoadSummary> load(
            TopicPartition tp, CoordinatorPlayback<CoordinatorRecord> coordinator) {
        Waiting load = new Waiting(tp.partition(), coordinator, new CompletableFuture<>());
        if (held) {
            waiting.add(load);
        } else {
            complete(load, null);
        }
        return load.result();
    }

    /** Finishes the oldest held load, of one partition if given; answers whether there was one. */
    boolean finish(Integer partition, Errors error) {
        for (Waiting load : waiting) {
            if (partition == null || load.partition() == partition) {
                waiting.remove(load);
                complete(load, error);
                return true;
            }
        }
        return false;
    }

    private void complete(Waiting load, Errors error) {
        if (error != null) {
            load.result().completeExceptionally(error.exception());
            return;
        }
        try {
            load.result().complete(replay(load));
        } catch (RuntimeException failure) {
            load.result().completeExceptionally(failure);
        }
    }

    private LoadSummary replay(Waiting load) {
        PartitionLog log = replication.log(load.partition());
        CoordinatorPlayback<CoordinatorRecord> coordinator = load.coordinator();
        long committed = -1;
        long records = 0;
        for (PartitionLog.Batch batch : log.batches()) {
            for (PartitionLog.Entry entry : batch.entries()) {
                records++;
                replay(coordinator, batch, entry);
            }
            long written = batch.nextOffset();
            if (written >= log.highWatermark()) {
                coordinator.updateLastWrittenOffset(written);
                if (log.highWatermark() > committed) {
                    committed = log.highWatermark();
                    coordinator.updateLastCommittedOffset(committed);
                }
            } else if (written - committed >= COMMIT_INTERVAL_OFFSETS) {
                committed = written;
                coordinator.updateLastWrittenOffset(written);
                coordinator.updateLastCommittedOffset(written);
            }
        }
        return new LoadSummary(time.milliseconds(), time.milliseconds(), 0, records, 0);
    }

    private static void replay(CoordinatorPlayback<CoordinatorRecord> coordinator,
                               PartitionLog.Batch batch, PartitionLog.Entry entry) {
        if (entry.marker() == null) {
            coordinator.replay(entry.offset(), batch.producerId(), batch.producerEpoch(),
                Appends.decode(entry));
        } else {
            coordinator.replayEndTransactionMarker(batch.producerId(), batch.producerEpoch(),
                entry.markerType() == ControlRecordType.COMMIT
                    ? TransactionResult.COMMIT : TransactionResult.ABORT);
        }
    }

    @Override
    public void close() {
        waiting.clear();
    }
}
