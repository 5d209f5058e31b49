package groupsim.oracle;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.OffsetFetchRequestData.OffsetFetchRequestGroup;
import org.apache.kafka.common.message.OffsetFetchRequestData.OffsetFetchRequestTopics;
import org.apache.kafka.common.message.OffsetFetchResponseData.OffsetFetchResponseGroup;
import org.apache.kafka.common.message.OffsetFetchResponseData.OffsetFetchResponsePartitions;
import org.apache.kafka.common.message.OffsetFetchResponseData.OffsetFetchResponseTopics;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.OffsetFetchRequest;
import org.apache.kafka.common.requests.OffsetFetchResponse;
import org.apache.kafka.coordinator.group.GroupCoordinator;

/** KafkaApis' part of OffsetFetch: one or many groups, named topics or all, names or ids. */
final class OffsetFetches {
    private final GroupCoordinator coordinator;
    private final Topics topics;

    OffsetFetches(GroupCoordinator coordinator, Topics topics) {
        this.coordinator = coordinator;
        this.topics = topics;
    }

    CompletableFuture<AbstractResponse> handle(OffsetFetchRequest request, Context context) {
        List<CompletableFuture<OffsetFetchResponseGroup>> groups = new ArrayList<>();
        for (OffsetFetchRequestGroup group : request.groups()) {
            groups.add(OffsetFetchRequest.requestAllOffsets(group)
                ? all(group, request.requireStable(), context)
                : named(group, request.requireStable(), context));
        }
        return CompletableFuture.allOf(groups.toArray(new CompletableFuture<?>[0]))
            .thenApply(done -> new OffsetFetchResponse.Builder(
                groups.stream().map(CompletableFuture::join).toList()).build(context.version()));
    }

    private CompletableFuture<OffsetFetchResponseGroup> all(
            OffsetFetchRequestGroup group, boolean requireStable, Context context) {
        return coordinator.fetchOffsets(context, group, requireStable).handle((found, failure) -> {
            if (failure != null) {
                return failed(group, failure, context);
            }
            if (found.errorCode() != Errors.NONE.code()
                    || !OffsetFetchRequest.useTopicIds(context.version())) {
                return found;
            }
            List<OffsetFetchResponseTopics> identified = new ArrayList<>();
            for (OffsetFetchResponseTopics topic : found.topics()) {
                if (topic.topicId().equals(Uuid.ZERO_UUID)) {
                    topic.setTopicId(topics.id(topic.name()));
                }
                if (!topic.topicId().equals(Uuid.ZERO_UUID)) {
                    identified.add(topic);
                }
            }
            return found.setTopics(identified);
        });
    }

    private CompletableFuture<OffsetFetchResponseGroup> named(
            OffsetFetchRequestGroup group, boolean requireStable, Context context) {
        boolean useIds = OffsetFetchRequest.useTopicIds(context.version());
        List<OffsetFetchRequestTopics> known = new ArrayList<>();
        List<OffsetFetchResponseTopics> unknown = new ArrayList<>();
        for (OffsetFetchRequestTopics topic : group.topics()) {
            if (useIds && !topic.topicId().equals(Uuid.ZERO_UUID)) {
                topics.name(topic.topicId()).ifPresent(topic::setName);
            }
            if (useIds && topic.name().isEmpty()) {
                unknown.add(unknownId(topic));
            } else {
                known.add(topic);
            }
        }
        OffsetFetchRequestGroup asked = new OffsetFetchRequestGroup()
            .setGroupId(group.groupId())
            .setMemberId(group.memberId())
            .setMemberEpoch(group.memberEpoch())
            .setTopics(known);
        return coordinator.fetchOffsets(context, asked, requireStable).handle((found, failure) -> {
            if (failure != null) {
                return failed(group, failure, context);
            }
            if (found.errorCode() != Errors.NONE.code()) {
                return found;
            }
            List<OffsetFetchResponseTopics> all = new ArrayList<>(found.topics());
            all.addAll(unknown);
            return found.setTopics(all);
        });
    }

    private static OffsetFetchResponseGroup failed(OffsetFetchRequestGroup group,
                                                   Throwable failure, Context context) {
        return OffsetFetchResponse.groupError(
            group, Errors.forException(failure), context.version());
    }

    private static OffsetFetchResponseTopics unknownId(OffsetFetchRequestTopics topic) {
        OffsetFetchResponseTopics response = new OffsetFetchResponseTopics()
            .setTopicId(topic.topicId()).setName(topic.name());
        topic.partitionIndexes().forEach(index -> response.partitions().add(
            new OffsetFetchResponsePartitions().setPartitionIndex(index).setCommittedOffset(-1)
                .setErrorCode(Errors.UNKNOWN_TOPIC_ID.code())));
        return response;
    }
}
