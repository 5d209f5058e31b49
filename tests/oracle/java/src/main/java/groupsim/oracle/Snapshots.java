package groupsim.oracle;

import java.util.Base64;
import java.util.Collection;
import java.util.Map;
import java.util.TreeSet;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.coordinator.common.runtime.RuntimeAccess;
import org.apache.kafka.coordinator.group.Group;
import org.apache.kafka.coordinator.group.GroupAccess;
import org.apache.kafka.coordinator.group.GroupCoordinatorShard;
import org.apache.kafka.coordinator.group.GroupMetadataManager;
import org.apache.kafka.coordinator.group.OffsetAndMetadata;
import org.apache.kafka.coordinator.group.classic.ClassicGroup;
import org.apache.kafka.coordinator.group.classic.ClassicGroupMember;

/** Kafka's in-memory state as JSON. Maps whose order Kafka acts on are written in that order. */
final class Snapshots {
    private Snapshots() {
    }

    /** A partition with its groups and offsets; {@code log} is null if nothing was ever written. */
    static ObjectNode partition(RuntimeAccess.Partition<GroupCoordinatorShard> partition,
                                PartitionLog log) {
        ObjectNode node = Json.object();
        node.put("partition", partition.partition());
        node.put("state", partition.state()).put("epoch", partition.epoch());
        node.put("last_written", partition.lastWritten());
        node.put("last_committed", partition.lastCommitted());
        node.put("batched_records", partition.batchedRecords());
        node.put("log_end", log == null ? 0 : log.endOffset());
        node.put("high_watermark", log == null ? 0 : log.highWatermark());
        GroupCoordinatorShard shard = partition.shard();
        if (shard != null) {
            groups(node.putArray("groups"), shard, partition.lastCommitted());
            offsets(node.putArray("offsets"), GroupAccess.committed(shard));
            ArrayNode pending = node.putArray("pending_offsets");
            GroupAccess.forEachPending(shard, (producerId, offsets) -> {
                ArrayNode own = Json.array();
                offsets(own, offsets);
                own.forEach(offset ->
                    pending.add(((ObjectNode) offset).put("producer_id", producerId)));
            });
            openTransactions(node.putArray("open_transactions"), shard);
        }
        return node;
    }

    private static void groups(ArrayNode target, GroupCoordinatorShard shard, long committed) {
        GroupMetadataManager manager = GroupAccess.groups(shard);
        for (String groupId : manager.groupIds()) {
            Group group = manager.group(groupId);
            ObjectNode node = target.addObject();
            node.put("group_id", groupId).put("type", group.type().toString());
            node.put("state", group.stateAsString());
            // Whether read operations (Describe, List, plain OffsetFetch) can see it.
            node.put("committed", committed(manager, groupId, committed));
            if (group instanceof ClassicGroup classic) {
                classicGroup(node, classic);
            }
        }
    }

    /** Null where Kafka itself fails: it may have no snapshot of the committed offset. */
    private static Boolean committed(GroupMetadataManager manager, String groupId, long offset) {
        try {
            return manager.maybeGroup(groupId, offset) != null;
        } catch (RuntimeException noSnapshot) {
            return null;
        }
    }

    private static void classicGroup(ObjectNode node, ClassicGroup group) {
        node.put("previous_state", group.previousState().toString());
        node.put("state_timestamp", GroupAccess.stateTimestamp(group).orElse(null));
        node.put("generation_id", group.generationId());
        node.put("protocol_type", group.protocolType().orElse(null));
        node.put("protocol_name", group.protocolName().orElse(null));
        node.put("leader", group.leaderOrNull());
        node.put("new_member_added", group.newMemberAdded());
        node.put("num_awaiting_join", group.numAwaitingJoinResponse());
        sorted(node.putArray("pending_join_members"), GroupAccess.pendingJoinMembers(group));
        sorted(node.putArray("pending_sync_members"), GroupAccess.pendingSyncMembers(group));
        if (group.subscribedTopics().isPresent()) {
            sorted(node.putArray("subscribed_topics"), group.subscribedTopics().get());
        } else {
            node.putNull("subscribed_topics");
        }
        ObjectNode supported = node.putObject("supported_protocols");
        group.supportedProtocols().forEach(supported::put);
        ArrayNode members = node.putArray("members");
        group.allMembers().forEach(member -> member(members.addObject(), member));
    }

    private static void member(ObjectNode node, ClassicGroupMember member) {
        node.put("member_id", member.memberId());
        node.put("group_instance_id", member.groupInstanceId().orElse(null));
        node.put("client_id", member.clientId()).put("client_host", member.clientHost());
        node.put("session_timeout_ms", member.sessionTimeoutMs());
        node.put("rebalance_timeout_ms", member.rebalanceTimeoutMs());
        node.put("protocol_type", member.protocolType());
        ArrayNode protocols = node.putArray("protocols");
        member.supportedProtocols().forEach(protocol -> protocols.addArray()
            .add(protocol.name()).add(base64(protocol.metadata())));
        node.put("assignment", base64(member.assignment()));
        node.put("is_new", member.isNew());
        node.put("awaiting_join", member.isAwaitingJoin());
        node.put("awaiting_sync", member.isAwaitingSync());
    }

    private static void offsets(
            ArrayNode target, Map<String, Map<String, Map<Integer, OffsetAndMetadata>>> groups) {
        groups.forEach((group, topics) -> topics.forEach((topic, partitions) ->
            partitions.forEach((partition, offset) -> {
                ObjectNode node = target.addObject();
                node.put("group_id", group).put("topic", topic).put("partition", partition);
                node.put("offset", offset.committedOffset);
                node.put("leader_epoch", offset.leaderEpoch.orElse(-1));
                node.put("metadata", offset.metadata);
                node.put("commit_timestamp", offset.commitTimestampMs);
                node.put("expire_timestamp", offset.expireTimestampMs.orElse(-1));
                node.put("record_offset", offset.recordOffset);
                node.put("topic_id", offset.topicId.toString());
            })));
    }

    private static void openTransactions(ArrayNode target, GroupCoordinatorShard shard) {
        GroupAccess.openTransactions(shard).forEach((group, topics) ->
            topics.forEach((topic, partitions) -> partitions.forEach((partition, producers) -> {
                ObjectNode node = target.addObject();
                node.put("group_id", group).put("topic", topic).put("partition", partition);
                ArrayNode ids = node.putArray("producer_ids");
                new TreeSet<>(producers).forEach(ids::add);
            })));
    }

    private static void sorted(ArrayNode target, Collection<String> names) {
        new TreeSet<>(names).forEach(target::add);
    }

    private static String base64(byte[] bytes) {
        return bytes == null ? null : Base64.getEncoder().encodeToString(bytes);
    }
}
