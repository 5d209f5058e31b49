package groupsim.oracle;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;

import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.internals.Topic;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.coordinator.common.runtime.PartitionWriter;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.VerificationGuard;

/**
 * The logs of __consumer_offsets and their replication. Unless held, an append is committed at
 * once, as with one replica: the listener hears of the new high watermark inside the append, and
 * Kafka then puts its own event in front of the queue.
 */
final class Replication implements PartitionWriter {
    /** An error that the next append (of one partition, or of any if null) throws. */
    private record Fault(Integer partition, Errors error) {
    }

    /** Where an append ended, so that "commit up to append k" finds its high watermark. */
    private record Position(int partition, long endOffset) {
    }

    private final TreeMap<Integer, PartitionLog> logs = new TreeMap<>();
    private final Map<Integer, List<Listener>> listeners = new HashMap<>();
    private final List<Position> positions = new ArrayList<>();
    private final Deque<Fault> appendFaults = new ArrayDeque<>();
    private final Deque<Errors> verificationFaults = new ArrayDeque<>();
    private LogConfig config = null;
    private boolean held = false;
    private List<ObjectNode> news = new ArrayList<>();

    /** A new coordinator works on these logs; the one before is gone and hears nothing more. */
    void attach(LogConfig newConfig) {
        config = newConfig;
        listeners.clear();
        appendFaults.clear();
        verificationFaults.clear();
    }

    PartitionLog log(int partition) {
        return logs.computeIfAbsent(partition, p -> new PartitionLog());
    }

    /** The logs that exist, by partition. */
    Map<Integer, PartitionLog> logs() {
        return logs;
    }

    void hold(boolean on) {
        held = on;
    }

    void failNextAppend(Integer partition, Errors error) {
        appendFaults.add(new Fault(partition, error));
    }

    void failNextVerification(Errors error) {
        verificationFaults.add(error);
    }

    /** The appends since the last call, as JSON. */
    List<ObjectNode> takeNews() {
        List<ObjectNode> taken = news;
        news = new ArrayList<>();
        return taken;
    }

    /** Commits every append whose id is at most {@code id}, partition by partition. */
    void commitUpTo(long id) {
        Map<Integer, Long> ends = new TreeMap<>();
        for (int i = 0; i < positions.size() && i <= id; i++) {
            Position position = positions.get(i);
            if (position != null) {
                ends.merge(position.partition(), position.endOffset(), Math::max);
            }
        }
        ends.forEach(this::commit);
    }

    void commitAll() {
        commitUpTo(positions.size());
    }

    /** Moves one partition's high watermark, and tells the coordinator if it listens. */
    void commit(int partition, long offset) {
        PartitionLog log = log(partition);
        if (log.commitUpTo(offset)) {
            for (Listener listener : List.copyOf(listeners.getOrDefault(partition, List.of()))) {
                listener.onHighWatermarkUpdated(offsetsPartition(partition), log.highWatermark());
            }
        }
    }

    static TopicPartition offsetsPartition(int partition) {
        return new TopicPartition(Topic.GROUP_METADATA_TOPIC_NAME, partition);
    }

    @Override
    public void registerListener(TopicPartition tp, Listener listener) {
        listeners.computeIfAbsent(tp.partition(), p -> new ArrayList<>()).add(listener);
    }

    @Override
    public void deregisterListener(TopicPartition tp, Listener listener) {
        listeners.getOrDefault(tp.partition(), new ArrayList<>()).remove(listener);
    }

    @Override
    public LogConfig config(TopicPartition tp) {
        return config;
    }

    @Override
    public long append(TopicPartition tp, VerificationGuard guard, MemoryRecords records,
                       short transactionVersion) {
        int partition = tp.partition();
        int id = positions.size();
        PartitionLog log = log(partition);
        Errors error = takeAppendFault(partition);
        if (error == null && records.sizeInBytes() > config.maxMessageSize()) {
            error = Errors.MESSAGE_TOO_LARGE;
        }
        if (error != null) {
            positions.add(null);
            news.add(Appends.describe(
                id, partition, PartitionLog.decode(records, log.endOffset()), error));
            throw error == Errors.MESSAGE_TOO_LARGE
                ? new RecordTooLargeException(error.message()) : error.exception();
        }
        PartitionLog.Batch batch = log.append(records);
        positions.add(new Position(partition, batch.nextOffset()));
        news.add(Appends.describe(id, partition, batch, null));
        if (!held) {
            commit(partition, batch.nextOffset());
        }
        return batch.nextOffset();
    }

    private Errors takeAppendFault(int partition) {
        for (Iterator<Fault> faults = appendFaults.iterator(); faults.hasNext();) {
            Fault fault = faults.next();
            if (fault.partition() == null || fault.partition() == partition) {
                faults.remove();
                return fault.error();
            }
        }
        return null;
    }

    @Override
    public CompletableFuture<VerificationGuard> maybeStartTransactionVerification(
            TopicPartition tp, String transactionalId, long producerId, short producerEpoch,
            int apiVersion) {
        Errors error = verificationFaults.poll();
        return error == null ? CompletableFuture.completedFuture(VerificationGuard.SENTINEL)
            : CompletableFuture.failedFuture(error.exception());
    }

    @Override
    public CompletableFuture<Void> deleteRecords(TopicPartition tp, long beforeOffset) {
        return CompletableFuture.completedFuture(null);
    }
}
