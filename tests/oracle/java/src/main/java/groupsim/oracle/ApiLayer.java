package groupsim.oracle;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.concurrent.CompletableFuture;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.DeleteGroupsResponseData;
import org.apache.kafka.common.message.DescribeGroupsResponseData;
import org.apache.kafka.common.message.OffsetCommitRequestData;
import org.apache.kafka.common.message.OffsetCommitRequestData.OffsetCommitRequestTopic;
import org.apache.kafka.common.message.OffsetDeleteRequestData;
import org.apache.kafka.common.message.OffsetDeleteRequestData.OffsetDeleteRequestTopic;
import org.apache.kafka.common.message.OffsetDeleteRequestData.OffsetDeleteRequestTopicCollection;
import org.apache.kafka.common.message.TxnOffsetCommitRequestData;
import org.apache.kafka.common.message.TxnOffsetCommitRequestData.TxnOffsetCommitRequestTopic;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.DeleteGroupsRequest;
import org.apache.kafka.common.requests.DeleteGroupsResponse;
import org.apache.kafka.common.requests.DescribeGroupsRequest;
import org.apache.kafka.common.requests.DescribeGroupsResponse;
import org.apache.kafka.common.requests.HeartbeatRequest;
import org.apache.kafka.common.requests.HeartbeatResponse;
import org.apache.kafka.common.requests.JoinGroupRequest;
import org.apache.kafka.common.requests.JoinGroupResponse;
import org.apache.kafka.common.requests.LeaveGroupRequest;
import org.apache.kafka.common.requests.LeaveGroupResponse;
import org.apache.kafka.common.requests.ListGroupsRequest;
import org.apache.kafka.common.requests.ListGroupsResponse;
import org.apache.kafka.common.requests.OffsetCommitRequest;
import org.apache.kafka.common.requests.OffsetCommitResponse;
import org.apache.kafka.common.requests.OffsetDeleteRequest;
import org.apache.kafka.common.requests.OffsetDeleteResponse;
import org.apache.kafka.common.requests.OffsetFetchRequest;
import org.apache.kafka.common.requests.SyncGroupRequest;
import org.apache.kafka.common.requests.SyncGroupResponse;
import org.apache.kafka.common.requests.TxnOffsetCommitRequest;
import org.apache.kafka.common.requests.TxnOffsetCommitResponse;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.coordinator.group.GroupCoordinator;

/**
 * What KafkaApis of 4.4.0 does around the coordinator, without authorisation (everything is
 * allowed) and quotas: gates, topic names and ids, shaping of answers by version.
 */
final class ApiLayer {
    private static final BufferSupplier NO_CACHE = BufferSupplier.NO_CACHING;

    private final GroupCoordinator coordinator;
    private final Topics topics;

    ApiLayer(GroupCoordinator coordinator, Topics topics) {
        this.coordinator = coordinator;
        this.topics = topics;
    }

    /** The future of the answer; a failed future is what KafkaApis turns into getErrorResponse. */
    CompletableFuture<? extends AbstractResponse> handle(Api api, AbstractRequest request,
                                                         Context context) {
        return switch (api) {
            case JOIN -> coordinator
                .joinGroup(context, ((JoinGroupRequest) request).data(), NO_CACHE)
                .thenApply(data -> new JoinGroupResponse(data, context.version()));
            case SYNC -> sync((SyncGroupRequest) request, context);
            case HEARTBEAT -> coordinator
                .heartbeat(context, ((HeartbeatRequest) request).data())
                .thenApply(HeartbeatResponse::new);
            case LEAVE -> coordinator
                .leaveGroup(context, ((LeaveGroupRequest) request).normalizedData())
                .thenApply(data -> new LeaveGroupResponse(data, context.version()));
            case COMMIT -> commit((OffsetCommitRequest) request, context);
            case TXN_COMMIT -> txnCommit((TxnOffsetCommitRequest) request, context);
            case FETCH -> new OffsetFetches(coordinator, topics)
                .handle((OffsetFetchRequest) request, context);
            case OFFSET_DELETE -> offsetDelete((OffsetDeleteRequest) request, context);
            case DELETE -> delete((DeleteGroupsRequest) request, context);
            case DESCRIBE -> coordinator
                .describeGroups(context, ((DescribeGroupsRequest) request).data().groups())
                .thenApply(groups -> new DescribeGroupsResponse(
                    new DescribeGroupsResponseData().setGroups(groups)));
            case LIST -> coordinator
                .listGroups(context, ((ListGroupsRequest) request).data())
                .thenApply(ListGroupsResponse::new);
        };
    }

    private CompletableFuture<AbstractResponse> sync(SyncGroupRequest request, Context context) {
        if (!request.areMandatoryProtocolTypeAndNamePresent()) {  // S-01
            return answer(request.getErrorResponse(
                Errors.INCONSISTENT_GROUP_PROTOCOL.exception()));
        }
        return coordinator.syncGroup(context, request.data(), NO_CACHE)
            .thenApply(SyncGroupResponse::new);
    }

    private CompletableFuture<AbstractResponse> commit(OffsetCommitRequest request,
                                                       Context context) {
        OffsetCommitRequestData data = request.data();
        boolean useIds = OffsetCommitResponse.useTopicIds(context.version());
        OffsetCommitResponse.Builder response = OffsetCommitResponse.newBuilder(useIds);
        List<OffsetCommitRequestTopic> valid = new ArrayList<>();
        for (OffsetCommitRequestTopic topic : data.topics()) {
            if (useIds) {
                topics.name(topic.topicId()).ifPresent(topic::setName);
            } else {
                topic.setTopicId(topics.id(topic.name()));
            }
            if (useIds && topic.name().isEmpty()) {
                response.addPartitions(topic.topicId(), topic.name(), topic.partitions(),
                    partition -> partition.partitionIndex(), Errors.UNKNOWN_TOPIC_ID);
            } else if (topic.topicId().equals(Uuid.ZERO_UUID)) {
                response.addPartitions(Uuid.ZERO_UUID, topic.name(), topic.partitions(),
                    partition -> partition.partitionIndex(), Errors.UNKNOWN_TOPIC_OR_PARTITION);
            } else {
                OffsetCommitRequestTopic known = new OffsetCommitRequestTopic()
                    .setTopicId(topic.topicId()).setName(topic.name());
                topic.partitions().forEach(partition -> {
                    if (topics.exists(topic.name(), partition.partitionIndex())) {
                        known.partitions().add(partition);
                    } else {
                        response.addPartition(topic.topicId(), topic.name(),
                            partition.partitionIndex(), Errors.UNKNOWN_TOPIC_OR_PARTITION);
                    }
                });
                if (!known.partitions().isEmpty()) {
                    valid.add(known);
                }
            }
        }
        if (valid.isEmpty()) {  // O-01.4
            return answer(response.build());
        }
        return coordinator.commitOffsets(context, new OffsetCommitRequestData()
                .setGroupId(data.groupId())
                .setMemberId(data.memberId())
                .setGenerationIdOrMemberEpoch(data.generationIdOrMemberEpoch())
                .setRetentionTimeMs(data.retentionTimeMs())
                .setGroupInstanceId(data.groupInstanceId())
                .setTopics(valid), NO_CACHE)
            .thenApply(results -> response.merge(results).build());
    }

    private CompletableFuture<AbstractResponse> txnCommit(TxnOffsetCommitRequest request,
                                                          Context context) {
        TxnOffsetCommitRequestData data = request.data();
        boolean useIds = TxnOffsetCommitResponse.useTopicIds(context.version());
        TxnOffsetCommitResponse.Builder response = TxnOffsetCommitResponse.newBuilder(useIds);
        List<TxnOffsetCommitRequestTopic> valid = new ArrayList<>();
        for (TxnOffsetCommitRequestTopic topic : data.topics()) {
            if (useIds) {
                topics.name(topic.topicId()).ifPresent(topic::setName);
            } else {
                topic.setTopicId(topics.id(topic.name()));
            }
            if (useIds && topic.name().isEmpty()) {
                response.addPartitions(topic.topicId(), topic.name(), topic.partitions(),
                    partition -> partition.partitionIndex(), Errors.UNKNOWN_TOPIC_ID);
            } else if (topic.topicId().equals(Uuid.ZERO_UUID)) {
                response.addPartitions(Uuid.ZERO_UUID, topic.name(), topic.partitions(),
                    partition -> partition.partitionIndex(), Errors.UNKNOWN_TOPIC_OR_PARTITION);
            } else {
                TxnOffsetCommitRequestTopic known = new TxnOffsetCommitRequestTopic()
                    .setTopicId(topic.topicId()).setName(topic.name());
                topic.partitions().forEach(partition -> {
                    if (topics.exists(topic.name(), partition.partitionIndex())) {
                        known.partitions().add(partition);
                    } else {
                        response.addPartition(topic.topicId(), topic.name(),
                            partition.partitionIndex(), Errors.UNKNOWN_TOPIC_OR_PARTITION);
                    }
                });
                if (!known.partitions().isEmpty()) {
                    valid.add(known);
                }
            }
        }
        if (valid.isEmpty()) {
            return answer(masked(response.build(), context));
        }
        return coordinator.commitTransactionalOffsets(context, new TxnOffsetCommitRequestData()
                .setGroupId(data.groupId())
                .setMemberId(data.memberId())
                .setGenerationIdOrMemberEpoch(data.generationIdOrMemberEpoch())
                .setGroupInstanceId(data.groupInstanceId())
                .setProducerEpoch(data.producerEpoch())
                .setProducerId(data.producerId())
                .setTransactionalId(data.transactionalId())
                .setTopics(valid), NO_CACHE)
            .thenApply(results -> masked(response.merge(results).build(), context));
    }

    /** O-10: clients below version 2 do not know COORDINATOR_LOAD_IN_PROGRESS. */
    private static TxnOffsetCommitResponse masked(TxnOffsetCommitResponse response,
                                                  Context context) {
        if (context.version() < 2) {
            response.data().topics().forEach(topic -> topic.partitions().forEach(partition -> {
                if (partition.errorCode() == Errors.COORDINATOR_LOAD_IN_PROGRESS.code()) {
                    partition.setErrorCode(Errors.COORDINATOR_NOT_AVAILABLE.code());
                }
            }));
        }
        return response;
    }

    private CompletableFuture<AbstractResponse> offsetDelete(OffsetDeleteRequest request,
                                                             Context context) {
        OffsetDeleteResponse.Builder response = new OffsetDeleteResponse.Builder();
        OffsetDeleteRequestTopicCollection valid = new OffsetDeleteRequestTopicCollection();
        for (OffsetDeleteRequestTopic topic : request.data().topics()) {
            if (!topics.exists(topic.name())) {
                response.addPartitions(topic.name(), topic.partitions(),
                    partition -> partition.partitionIndex(), Errors.UNKNOWN_TOPIC_OR_PARTITION);
                continue;
            }
            OffsetDeleteRequestTopic known = new OffsetDeleteRequestTopic().setName(topic.name());
            topic.partitions().forEach(partition -> {
                if (topics.exists(topic.name(), partition.partitionIndex())) {
                    known.partitions().add(partition);
                } else {
                    response.addPartition(topic.name(), partition.partitionIndex(),
                        Errors.UNKNOWN_TOPIC_OR_PARTITION);
                }
            });
            if (!known.partitions().isEmpty()) {
                valid.add(known);
            }
        }
        return coordinator.deleteOffsets(context, new OffsetDeleteRequestData()
                .setGroupId(request.data().groupId()).setTopics(valid), NO_CACHE)
            .thenApply(results -> response.merge(results).build());
    }

    private CompletableFuture<AbstractResponse> delete(DeleteGroupsRequest request,
                                                       Context context) {
        List<String> groups = List.copyOf(new LinkedHashSet<>(request.data().groupsNames()));
        return coordinator.deleteGroups(context, groups, NO_CACHE).thenApply(results -> {
            if (context.version() < 3) {
                results.forEach(result -> {
                    if (result.errorCode() == Errors.GROUP_DELETION_FAILED.code()) {
                        result.setErrorCode(Errors.UNKNOWN_SERVER_ERROR.code());
                    }
                });
            }
            return new DeleteGroupsResponse(new DeleteGroupsResponseData().setResults(results));
        });
    }

    static CompletableFuture<AbstractResponse> answer(AbstractResponse response) {
        return CompletableFuture.completedFuture(response);
    }
}
