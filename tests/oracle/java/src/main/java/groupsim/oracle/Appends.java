package groupsim.oracle;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.group.generated.CoordinatorRecordJsonConverters;
import org.apache.kafka.coordinator.group.generated.CoordinatorRecordType;

/** Turns log batches into JSON. */
final class Appends {
    private static final GroupCoordinatorRecordSerde SERDE = new GroupCoordinatorRecordSerde();

    private Appends() {
    }

    /** One element of a result's "appends". {@code error} is null for a batch that was stored. */
    static ObjectNode describe(int id, int partition, PartitionLog.Batch batch, Errors error) {
        ObjectNode node = describe(batch);
        node.put("id", id).put("partition", partition);
        if (error != null) {
            node.put("error", error.name());
        }
        return node;
    }

    /** A batch with its records decoded by Kafka's own JSON converters. */
    static ObjectNode describe(PartitionLog.Batch batch) {
        ObjectNode node = Json.object();
        node.put("base_offset", batch.baseOffset()).put("last_offset", batch.lastOffset());
        if (batch.producerId() >= 0) {
            node.put("producer_id", batch.producerId());
            node.put("producer_epoch", batch.producerEpoch());
            node.put("transactional", batch.transactional());
        }
        ArrayNode records = node.putArray("records");
        batch.entries().forEach(entry -> records.add(describe(entry)));
        return node;
    }

    static CoordinatorRecord decode(PartitionLog.Entry entry) {
        return SERDE.deserialize(entry.key().duplicate(),
            entry.value() == null ? null : entry.value().duplicate());
    }

    private static ObjectNode describe(PartitionLog.Entry entry) {
        ObjectNode node = Json.object();
        node.put("offset", entry.offset()).put("timestamp", entry.timestampMs());
        if (entry.marker() != null) {
            node.put("type", "EndTransactionMarker").put("marker", entry.markerType().name());
            return node.put("coordinator_epoch", entry.marker().coordinatorEpoch());
        }
        CoordinatorRecord record = decode(entry);
        node.put("type", typeName(record.key().apiKey()));
        node.set("key", CoordinatorRecordJsonConverters.writeRecordKeyAsJson(record.key()));
        if (record.value() == null) {
            node.putNull("value");
        } else {
            short version = record.value().version();
            node.put("version", version);
            node.set("value", CoordinatorRecordJsonConverters.writeRecordValueAsJson(
                record.value().message(), version));
        }
        return node;
    }

    /** GROUP_METADATA becomes GroupMetadata, the name of the record's schema without "Key". */
    private static String typeName(short apiKey) {
        StringBuilder name = new StringBuilder();
        for (String part : CoordinatorRecordType.fromId(apiKey).name().split("_")) {
            name.append(part.charAt(0)).append(part.substring(1).toLowerCase(java.util.Locale.ROOT));
        }
        return name.toString();
    }
}
