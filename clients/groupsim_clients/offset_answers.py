"""What the answers to OffsetCommit and OffsetFetch do, code by code (rules CO-03 to CO-06, CO-10)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupsim.protocol.consumer_protocol import TopicPartition
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import OffsetCommitResponse, OffsetFetchResponse
from groupsim_clients.errors import JavaError
from groupsim_clients.futures import RequestFuture
from groupsim_clients.generation import Generation, JoinState

if TYPE_CHECKING:
    from groupsim_clients.consumer_coordinator import ConsumerCoordinator

__all__ = ["OffsetAnswers"]

_NOT_A_MEMBER = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.FENCED_INSTANCE_ID,  # for a client that rejoins after it
    }
)
_EXECUTING = (
    "Offset commit cannot be completed since the consumer group is executing a rebalance at the "
    "moment. You can try completing the rebalance by calling poll() and then retry commit again"
)
_STALE = (
    "Offset commit cannot be completed since the consumer member's generation is already stale, "
    "meaning it has already participated another rebalance and got a new generation. You can try "
    "completing the rebalance by calling poll() and then retry commit again"
)
_FENCED = (
    "Offset commit cannot be completed since the consumer member's old generation is fenced by its "
    "group instance id, it is possible that this consumer has already participated another rebalance "
    "and got a new generation"
)
_COMMIT_FAILED = (  # CommitFailedException's own text
    "Commit cannot be completed since the group has already rebalanced and assigned the partitions to "
    "another member. This means that the time between subsequent calls to poll() was longer than the "
    "configured max.poll.interval.ms, which typically implies that the poll loop is spending too much "
    "time message processing. You can address this either by increasing max.poll.interval.ms or by "
    "reducing the maximum size of batches returned in poll() with max.poll.records."
)


class OffsetAnswers:
    """The handlers of one coordinator."""

    def __init__(self, coordinator: ConsumerCoordinator) -> None:
        self._coordinator = coordinator
        self._ctx = coordinator.ctx

    def committed(
        self, response: OffsetCommitResponse, future: RequestFuture[None], sent: Generation
    ) -> None:
        """Take an OffsetCommit answer: the first decisive code ends the scan (CO-03)."""
        unauthorized = []
        for topic in response.topics:
            for partition in topic.partitions:
                code = partition.error_code
                if code == ErrorCode.NONE:
                    continue
                level = "warn" if code.retriable else "error"
                self._ctx.log(
                    level,
                    f"Offset commit failed on partition {topic.name}-{partition.partition_index}: "
                    f"{code.message}",
                )
                if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                    unauthorized.append(topic.name)
                    continue
                self._commit_refused(code, future, sent)
                return
        if unauthorized:
            names = sorted(set(unauthorized))
            future.fail(
                JavaError(
                    "TopicAuthorizationException", f"Not authorized to access topics: {names}"
                )
            )
        else:
            future.complete(None)

    def _commit_refused(
        self, code: ErrorCode, future: RequestFuture[None], sent: Generation
    ) -> None:
        coordinator = self._coordinator
        if coordinator.reacts("commit", code):
            future.fail(coordinator.told_as("commit", code))
        elif code == ErrorCode.GROUP_AUTHORIZATION_FAILED:
            future.fail(JavaError.group_authorization(coordinator.group_id))
        elif code in {
            ErrorCode.OFFSET_METADATA_TOO_LARGE,
            ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }:
            future.fail(JavaError.of(code))
        elif code in {
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            ErrorCode.NOT_COORDINATOR,
            ErrorCode.REQUEST_TIMED_OUT,
        }:
            coordinator.mark_coordinator_unknown(f"error response {code.name}")
            future.fail(JavaError.of(code))
        elif code == ErrorCode.FENCED_INSTANCE_ID and (
            not coordinator.behaviour.rejoins_after_fencing
        ):
            future.fail(self._fenced(code, sent))
        elif code == ErrorCode.REBALANCE_IN_PROGRESS:  # CO-05
            coordinator.request_rejoin("offset commit failed since group is already rebalancing")
            future.fail(JavaError("RebalanceInProgressException", _EXECUTING))
        elif code in _NOT_A_MEMBER:
            future.fail(self._not_a_member(code, sent))
        else:
            future.fail(JavaError.unexpected(f"Unexpected error in commit: {code.message}"))

    def _fenced(self, code: ErrorCode, sent: Generation) -> JavaError:  # CO-06
        if self._coordinator.generation == sent:
            return JavaError.of(code)
        if self._coordinator.state is JoinState.PREPARING_REBALANCE:
            return JavaError("RebalanceInProgressException", _FENCED)
        return JavaError("CommitFailedException", _COMMIT_FAILED)

    def _not_a_member(self, code: ErrorCode, sent: Generation) -> JavaError:  # CO-04
        coordinator = self._coordinator
        self._ctx.log("info", f"OffsetCommit failed with {sent}: {code.message}")
        if coordinator.generation != sent and coordinator.state is JoinState.PREPARING_REBALANCE:
            return JavaError("RebalanceInProgressException", _STALE)
        coordinator.reset_on_response_error("OFFSET_COMMIT", code)
        return JavaError("CommitFailedException", _COMMIT_FAILED)

    def fetched(
        self,
        response: OffsetFetchResponse,
        future: RequestFuture[dict[TopicPartition, int]],
        _sent: Generation,
    ) -> None:
        """Take an OffsetFetch answer (CO-10)."""
        coordinator = self._coordinator
        group = next(g for g in response.groups if g.group_id == coordinator.group_id)
        code = group.error_code
        if code != ErrorCode.NONE:
            if code in {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}:
                coordinator.mark_coordinator_unknown(f"error response {code.name}")
                future.fail(JavaError.of(code))
            elif code == ErrorCode.GROUP_AUTHORIZATION_FAILED:
                future.fail(JavaError.group_authorization(coordinator.group_id))
            elif code.retriable:
                future.fail(JavaError.of(code))
            else:
                future.fail(
                    JavaError.unexpected(
                        f"Unexpected error in fetch offset response: {code.message}"
                    )
                )
            return
        offsets: dict[TopicPartition, int] = {}
        unauthorized: set[str] = set()
        unstable = False
        for topic in group.topics:
            for answer in topic.partitions:
                partition = TopicPartition(topic.name, answer.partition_index)
                code = answer.error_code
                if code == ErrorCode.NONE:
                    offsets[partition] = answer.committed_offset
                elif code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                    unauthorized.add(topic.name)
                elif code == ErrorCode.UNSTABLE_OFFSET_COMMIT:
                    unstable = True
                else:
                    future.fail(JavaError.unexpected(_fetch_problem(partition, code)))
                    return
        if unauthorized:
            future.fail(
                JavaError(
                    "TopicAuthorizationException",
                    f"Not authorized to access topics: {sorted(unauthorized)}",
                )
            )
        elif unstable:
            future.fail(JavaError.of(ErrorCode.UNSTABLE_OFFSET_COMMIT))
        else:
            future.complete(offsets)


def _fetch_problem(partition: TopicPartition, code: ErrorCode) -> str:
    name = f"{partition.topic}-{partition.partition}"
    if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return f"Topic or Partition {name} does not exist"
    return f"Unexpected error in fetch offset response for partition {name}: {code.message}"
