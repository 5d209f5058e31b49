package groupsim.oracle;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;

/** The log of one partition of __consumer_offsets, kept in memory as decoded batches. */
final class PartitionLog {
    /** One record. {@code marker} is set for an end-of-transaction marker and null otherwise. */
    record Entry(long offset, long timestampMs, ByteBuffer key, ByteBuffer value,
                 EndTransactionMarker marker) {
        boolean tombstone() {
            return marker == null && value == null;
        }

        ControlRecordType markerType() {
            return marker == null ? null : marker.controlType();
        }
    }

    /** One appended batch; {@code lastOffset} does not move when compaction removes records. */
    record Batch(long baseOffset, long lastOffset, long producerId, short producerEpoch,
                 boolean transactional, int sizeInBytes, List<Entry> entries) {
        boolean control() {
            return !entries.isEmpty() && entries.get(0).marker() != null;
        }

        long nextOffset() {
            return lastOffset + 1;
        }
    }

    private final List<Batch> batches = new ArrayList<>();
    private long endOffset = 0;
    private long highWatermark = 0;

    List<Batch> batches() {
        return batches;
    }

    long endOffset() {
        return endOffset;
    }

    long highWatermark() {
        return highWatermark;
    }

    /** Decodes and stores; answers the batch, whose offsets continue the log. */
    Batch append(MemoryRecords records) {
        Batch batch = decode(records, endOffset);
        batches.add(batch);
        endOffset = batch.nextOffset();
        return batch;
    }

    /** The batch as it would be stored at {@code baseOffset}. */
    static Batch decode(MemoryRecords records, long baseOffset) {
        MutableRecordBatch source = records.batches().iterator().next();
        List<Entry> entries = new ArrayList<>();
        long offset = baseOffset;
        for (Record record : source) {
            ByteBuffer key = record.hasKey() ? copy(record.key()) : null;
            ByteBuffer value = record.hasValue() ? copy(record.value()) : null;
            EndTransactionMarker marker =
                source.isControlBatch() ? EndTransactionMarker.deserialize(record) : null;
            entries.add(new Entry(offset++, record.timestamp(), key, value, marker));
        }
        return new Batch(baseOffset, offset - 1, source.producerId(), source.producerEpoch(),
            source.isTransactional(), records.sizeInBytes(), entries);
    }

    private static ByteBuffer copy(ByteBuffer source) {
        byte[] bytes = new byte[source.remaining()];
        source.duplicate().get(bytes);
        return ByteBuffer.wrap(bytes).asReadOnlyBuffer();
    }

    /** Moves the high watermark forward, never beyond the end; answers whether it moved. */
    boolean commitUpTo(long offset) {
        long target = Math.min(offset, endOffset);
        if (target <= highWatermark) {
            return false;
        }
        highWatermark = target;
        return true;
    }

    /** Loses everything above the high watermark, as a new leader that never received it. */
    int truncateToHighWatermark() {
        int lost = 0;
        while (!batches.isEmpty() && batches.get(batches.size() - 1).nextOffset() > highWatermark) {
            lost += batches.remove(batches.size() - 1).entries().size();
        }
        endOffset = highWatermark;
        return lost;
    }

    /**
     * Compacts what Kafka's log cleaner may touch: batches below the high watermark, below the
     * first open transaction, and not the last one (the active segment is never cleaned). There
     * the newest record of each key stays; older ones, tombstones and records of aborted
     * transactions go. Answers the number of records removed.
     */
    int compact() {
        int end = cleanableBatches();
        Map<ByteBuffer, Long> newest = new HashMap<>();
        List<List<Entry>> kept = new ArrayList<>();
        for (int i = 0; i < end; i++) {
            Batch batch = batches.get(i);
            List<Entry> survivors = aborted(i) ? List.of() : batch.entries();
            kept.add(survivors);
            if (!batch.control()) {
                survivors.forEach(entry -> newest.put(entry.key(), entry.offset()));
            }
        }
        int removed = 0;
        List<Batch> result = new ArrayList<>();
        for (int i = 0; i < end; i++) {
            Batch batch = batches.get(i);
            List<Entry> survivors = batch.control() ? kept.get(i) : kept.get(i).stream()
                .filter(e -> !e.tombstone() && newest.get(e.key()) == e.offset()).toList();
            removed += batch.entries().size() - survivors.size();
            if (!survivors.isEmpty()) {
                result.add(new Batch(batch.baseOffset(), batch.lastOffset(), batch.producerId(),
                    batch.producerEpoch(), batch.transactional(), batch.sizeInBytes(), survivors));
            }
        }
        result.addAll(batches.subList(end, batches.size()));
        batches.clear();
        batches.addAll(result);
        return removed;
    }

    private int cleanableBatches() {
        int end = 0;
        while (end < batches.size() - 1 && batches.get(end).nextOffset() <= highWatermark
                && !(batches.get(end).transactional() && !batches.get(end).control()
                    && markerAfter(end) == null)) {
            end++;
        }
        return end;
    }

    private boolean aborted(int index) {
        Batch batch = batches.get(index);
        return batch.transactional() && !batch.control()
            && markerAfter(index) == ControlRecordType.ABORT;
    }

    /** The marker that ends the transaction of the batch at {@code index}, null if still open. */
    private ControlRecordType markerAfter(int index) {
        Batch batch = batches.get(index);
        for (Batch later : batches.subList(index + 1, batches.size())) {
            if (later.control() && later.producerId() == batch.producerId()) {
                return later.entries().get(0).markerType();
            }
        }
        return null;
    }
}
