package groupsim.oracle;

import java.util.function.BiFunction;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.message.DeleteGroupsRequestData;
import org.apache.kafka.common.message.DeleteGroupsRequestDataJsonConverter;
import org.apache.kafka.common.message.DeleteGroupsResponseData;
import org.apache.kafka.common.message.DeleteGroupsResponseDataJsonConverter;
import org.apache.kafka.common.message.DescribeGroupsRequestData;
import org.apache.kafka.common.message.DescribeGroupsRequestDataJsonConverter;
import org.apache.kafka.common.message.DescribeGroupsResponseData;
import org.apache.kafka.common.message.DescribeGroupsResponseDataJsonConverter;
import org.apache.kafka.common.message.HeartbeatRequestData;
import org.apache.kafka.common.message.HeartbeatRequestDataJsonConverter;
import org.apache.kafka.common.message.HeartbeatResponseData;
import org.apache.kafka.common.message.HeartbeatResponseDataJsonConverter;
import org.apache.kafka.common.message.JoinGroupRequestData;
import org.apache.kafka.common.message.JoinGroupRequestDataJsonConverter;
import org.apache.kafka.common.message.JoinGroupResponseData;
import org.apache.kafka.common.message.JoinGroupResponseDataJsonConverter;
import org.apache.kafka.common.message.LeaveGroupRequestData;
import org.apache.kafka.common.message.LeaveGroupRequestDataJsonConverter;
import org.apache.kafka.common.message.LeaveGroupResponseData;
import org.apache.kafka.common.message.LeaveGroupResponseDataJsonConverter;
import org.apache.kafka.common.message.ListGroupsRequestData;
import org.apache.kafka.common.message.ListGroupsRequestDataJsonConverter;
import org.apache.kafka.common.message.ListGroupsResponseData;
import org.apache.kafka.common.message.ListGroupsResponseDataJsonConverter;
import org.apache.kafka.common.message.OffsetCommitRequestData;
import org.apache.kafka.common.message.OffsetCommitRequestDataJsonConverter;
import org.apache.kafka.common.message.OffsetCommitResponseData;
import org.apache.kafka.common.message.OffsetCommitResponseDataJsonConverter;
import org.apache.kafka.common.message.OffsetDeleteRequestData;
import org.apache.kafka.common.message.OffsetDeleteRequestDataJsonConverter;
import org.apache.kafka.common.message.OffsetDeleteResponseData;
import org.apache.kafka.common.message.OffsetDeleteResponseDataJsonConverter;
import org.apache.kafka.common.message.OffsetFetchRequestData;
import org.apache.kafka.common.message.OffsetFetchRequestDataJsonConverter;
import org.apache.kafka.common.message.OffsetFetchResponseData;
import org.apache.kafka.common.message.OffsetFetchResponseDataJsonConverter;
import org.apache.kafka.common.message.SyncGroupRequestData;
import org.apache.kafka.common.message.SyncGroupRequestDataJsonConverter;
import org.apache.kafka.common.message.SyncGroupResponseData;
import org.apache.kafka.common.message.SyncGroupResponseDataJsonConverter;
import org.apache.kafka.common.message.TxnOffsetCommitRequestData;
import org.apache.kafka.common.message.TxnOffsetCommitRequestDataJsonConverter;
import org.apache.kafka.common.message.TxnOffsetCommitResponseData;
import org.apache.kafka.common.message.TxnOffsetCommitResponseDataJsonConverter;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.requests.AbstractRequest;

/** The request kinds of the command language with Kafka's JSON converters. */
enum Api {
    JOIN("join", ApiKeys.JOIN_GROUP, JoinGroupRequestData.class,
        JoinGroupRequestDataJsonConverter::read,
        (data, v) -> JoinGroupResponseDataJsonConverter.write((JoinGroupResponseData) data, v)),
    SYNC("sync", ApiKeys.SYNC_GROUP, SyncGroupRequestData.class,
        SyncGroupRequestDataJsonConverter::read,
        (data, v) -> SyncGroupResponseDataJsonConverter.write((SyncGroupResponseData) data, v)),
    HEARTBEAT("heartbeat", ApiKeys.HEARTBEAT, HeartbeatRequestData.class,
        HeartbeatRequestDataJsonConverter::read,
        (data, v) -> HeartbeatResponseDataJsonConverter.write((HeartbeatResponseData) data, v)),
    LEAVE("leave", ApiKeys.LEAVE_GROUP, LeaveGroupRequestData.class,
        LeaveGroupRequestDataJsonConverter::read,
        (data, v) -> LeaveGroupResponseDataJsonConverter.write((LeaveGroupResponseData) data, v)),
    COMMIT("commit", ApiKeys.OFFSET_COMMIT, OffsetCommitRequestData.class,
        OffsetCommitRequestDataJsonConverter::read,
        (data, v) -> OffsetCommitResponseDataJsonConverter.write((OffsetCommitResponseData) data, v)),
    TXN_COMMIT("txn_commit", ApiKeys.TXN_OFFSET_COMMIT, TxnOffsetCommitRequestData.class,
        TxnOffsetCommitRequestDataJsonConverter::read,
        (data, v) -> TxnOffsetCommitResponseDataJsonConverter.write(
            (TxnOffsetCommitResponseData) data, v)),
    FETCH("fetch", ApiKeys.OFFSET_FETCH, OffsetFetchRequestData.class,
        OffsetFetchRequestDataJsonConverter::read,
        (data, v) -> OffsetFetchResponseDataJsonConverter.write((OffsetFetchResponseData) data, v)),
    OFFSET_DELETE("offset_delete", ApiKeys.OFFSET_DELETE, OffsetDeleteRequestData.class,
        OffsetDeleteRequestDataJsonConverter::read,
        (data, v) -> OffsetDeleteResponseDataJsonConverter.write((OffsetDeleteResponseData) data, v)),
    DELETE("delete", ApiKeys.DELETE_GROUPS, DeleteGroupsRequestData.class,
        DeleteGroupsRequestDataJsonConverter::read,
        (data, v) -> DeleteGroupsResponseDataJsonConverter.write((DeleteGroupsResponseData) data, v)),
    DESCRIBE("describe", ApiKeys.DESCRIBE_GROUPS, DescribeGroupsRequestData.class,
        DescribeGroupsRequestDataJsonConverter::read,
        (data, v) -> DescribeGroupsResponseDataJsonConverter.write(
            (DescribeGroupsResponseData) data, v)),
    LIST("list", ApiKeys.LIST_GROUPS, ListGroupsRequestData.class,
        ListGroupsRequestDataJsonConverter::read,
        (data, v) -> ListGroupsResponseDataJsonConverter.write((ListGroupsResponseData) data, v));

    final String op;
    final ApiKeys key;
    private final Class<? extends ApiMessage> requestClass;
    private final BiFunction<JsonNode, Short, ? extends ApiMessage> readRequest;
    private final BiFunction<Message, Short, JsonNode> writeResponse;

    Api(String op, ApiKeys key, Class<? extends ApiMessage> requestClass,
            BiFunction<JsonNode, Short, ? extends ApiMessage> readRequest,
            BiFunction<Message, Short, JsonNode> writeResponse) {
        this.op = op;
        this.key = key;
        this.requestClass = requestClass;
        this.readRequest = readRequest;
        this.writeResponse = writeResponse;
    }

    /** The kind for an "op", or null. */
    static Api named(String op) {
        for (Api api : values()) {
            if (api.op.equals(op)) {
                return api;
            }
        }
        return null;
    }

    /**
     * The request as the broker's network layer would read it from the wire at this version: the
     * JSON is completed with defaults, written in Kafka's binary form, and parsed again.
     */
    AbstractRequest parse(ObjectNode json, short version) {
        Defaults.fill(json, requestClass, version);
        ApiMessage data;
        try {
            data = readRequest.apply(json, version);
        } catch (RuntimeException e) {
            throw new CommandError("bad " + op + " request: " + e.getMessage());
        }
        return AbstractRequest.parseRequest(
            key, version, MessageUtil.toByteBufferAccessor(data, version)).request;
    }

    JsonNode response(Message data, short version) {
        return writeResponse.apply(data, version);
    }
}
