"""The gate of OffsetCommit, TxnOffsetCommit, OffsetFetch and OffsetDelete: what ``KafkaApis`` and
``GroupCoordinatorService`` check first, and how the parts of an answer are put together.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from groupsim.coordinator.access import Call, Permit, TopicCatalogue, TransactionVerifier
from groupsim.coordinator.core import Core
from groupsim.coordinator.effects import TransactionEnded
from groupsim.coordinator.failures import operation_error
from groupsim.coordinator.fetch_requests import FetchRequests
from groupsim.coordinator.offsets.cleanup import delete_offsets, delete_topics
from groupsim.coordinator.offsets.commit import commit_offsets, commit_transactional_offsets
from groupsim.coordinator.pipeline import NOTHING, Result
from groupsim.coordinator.records import TransactionMarker
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
    OffsetFetchRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)

__all__ = ["OffsetRequests"]

Topics = tuple[OffsetCommitResponseTopic, ...]


class OffsetRequests:
    """Handlers of the four requests, and of what happens to topics and transactions."""

    def __init__(
        self,
        core: Core,
        topics: TopicCatalogue | None,
        transactions: TransactionVerifier | None,
    ) -> None:
        self._core = core
        self._topics = topics
        self._transactions = transactions
        self._fetches = FetchRequests(core, topics)

    def handlers(self) -> dict[type, Callable[[Any, Call], None]]:
        """Handlers by type of request."""
        return {
            OffsetCommitRequest: self.commit,
            TxnOffsetCommitRequest: self.commit_in_transaction,
            OffsetFetchRequest: self._fetches.fetch,
            OffsetDeleteRequest: self.delete,
        }

    # -- OffsetCommit ------------------------------------------------------------------------

    def commit(
        self,
        request: OffsetCommitRequest,
        call: Call,
    ) -> None:
        """O-01, O-02."""
        uses_ids = call.api_version >= 10
        answer = call.answer

        def reply(*parts: Topics) -> None:
            answer.complete(OffsetCommitResponse(topics=_merged(parts, uses_ids=uses_ids)))

        error = self._commit_gate_error(request, call.permit)
        if error is not ErrorCode.NONE:
            reply(_refused(request.topics, error))
            return
        topics, refused = self._existing(request.topics, call.permit, uses_ids=uses_ids)
        if not topics:  # O-01.4: the coordinator is not asked, no session is refreshed
            reply(refused)
            return
        valid = dataclasses.replace(request, topics=topics)
        error = ErrorCode.NONE if call.started else ErrorCode.COORDINATOR_NOT_AVAILABLE
        if call.started and request.group_id is None:
            error = ErrorCode.INVALID_GROUP_ID  # "" is a group (O-02)
        if error is not ErrorCode.NONE:
            reply(refused, _refused(topics, error))
            return
        shard = self._core.shard_of(request.group_id)
        stored: Topics = ()

        def operation() -> Result:
            nonlocal stored
            result, stored = commit_offsets(shard.context, valid, call.api_version)
            return result

        def respond(error: ErrorCode) -> None:
            failed = error is not ErrorCode.NONE
            reply(refused, _refused(topics, operation_error(error)) if failed else stored)

        shard.write(operation, respond)

    def _commit_gate_error(self, request: OffsetCommitRequest, permit: Permit) -> ErrorCode:
        if not permit.allows("READ", "GROUP", request.group_id or ""):
            return ErrorCode.GROUP_AUTHORIZATION_FAILED
        if (
            request.group_instance_id is not None
            and self._core.config.switches.static_membership_gate
        ):
            return ErrorCode.UNSUPPORTED_VERSION
        return ErrorCode.NONE

    def _existing(
        self, topics: tuple[OffsetCommitRequestTopic, ...], permit: Permit, *, uses_ids: bool
    ) -> tuple[tuple[OffsetCommitRequestTopic, ...], Topics]:
        """O-01.3: what exists and may be written, and the answers for the rest."""
        valid: list[OffsetCommitRequestTopic] = []
        refused: list[OffsetCommitResponseTopic] = []
        for asked in topics:
            topic = self._resolved(asked, uses_ids=uses_ids)
            error = self._topic_error(topic.name, permit)
            if uses_ids and not topic.name:
                error = ErrorCode.UNKNOWN_TOPIC_ID
            if error is not ErrorCode.NONE:
                refused += _refused((topic,), error)
                continue
            count = None if self._topics is None else self._topics.partition_count(topic.name)
            here = tuple(
                partition
                for partition in topic.partitions
                if count is None or 0 <= partition.partition_index < count
            )
            missing = tuple(entry for entry in topic.partitions if entry not in here)
            if here:
                valid.append(dataclasses.replace(topic, partitions=here))
            if missing:
                unknown = dataclasses.replace(topic, partitions=missing)
                refused += _refused((unknown,), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return tuple(valid), tuple(refused)

    def _resolved(
        self, topic: OffsetCommitRequestTopic, *, uses_ids: bool
    ) -> OffsetCommitRequestTopic:
        """The topic with both name and id, as far as they are known."""
        if self._topics is None:
            return topic
        if uses_ids:
            name = self._topics.topic_name(topic.topic_id) or ""
            return dataclasses.replace(topic, name=name)
        return dataclasses.replace(topic, topic_id=self._topics.topic_id(topic.name))

    def _topic_error(self, topic: str, permit: Permit) -> ErrorCode:
        if not permit.allows("READ", "TOPIC", topic):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if self._topics is not None and self._topics.partition_count(topic) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.NONE

    # -- TxnOffsetCommit ---------------------------------------------------------------------

    def commit_in_transaction(
        self,
        request: TxnOffsetCommitRequest,
        call: Call,
    ) -> None:
        """O-10, O-11."""
        uses_ids = call.api_version >= 6
        answer = call.answer

        def reply(*parts: Topics) -> None:
            topics = _merged(parts, uses_ids=uses_ids)
            if call.api_version < 2:  # O-10: old producers do not know that it is loading
                topics = _without_loading(topics)
            answer.complete(TxnOffsetCommitResponse(topics=topics))

        if not call.permit.allows("WRITE", "TRANSACTIONAL_ID", request.transactional_id):
            reply(_refused(request.topics, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
            return
        if not call.permit.allows("READ", "GROUP", request.group_id or ""):
            reply(_refused(request.topics, ErrorCode.GROUP_AUTHORIZATION_FAILED))
            return
        topics, refused = self._existing(request.topics, call.permit, uses_ids=uses_ids)
        if not topics:
            reply(refused)
            return
        error = self._transaction_error(request, call.api_version, call.started)
        if error is not ErrorCode.NONE:
            reply(refused, _refused(topics, error))
            return
        valid = dataclasses.replace(request, topics=topics)
        shard = self._core.shard_of(request.group_id)
        stored: Topics = ()

        def operation() -> Result:
            nonlocal stored
            result, stored = commit_transactional_offsets(shard.context, valid, call.api_version)
            return result

        def respond(error: ErrorCode) -> None:
            failed = error is not ErrorCode.NONE
            reply(refused, _refused(topics, operation_error(error)) if failed else stored)

        shard.write(operation, respond, transactional=True)

    def _transaction_error(
        self, request: TxnOffsetCommitRequest, api_version: int, started: bool
    ) -> ErrorCode:
        """O-11: component, group id, then the transaction coordinator's word."""
        if not started:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID
        if self._transactions is None:
            return ErrorCode.NONE
        return operation_error(
            self._transactions(
                request.transactional_id,
                request.producer_id,
                request.producer_epoch,
                api_version,
            )
        )

    def complete_transaction(
        self, partition: int, marker: TransactionMarker, token: int | None, *, started: bool
    ) -> None:
        """C-18: commit or abort what a producer has pending on a partition."""

        def respond(error: ErrorCode) -> None:
            if token is not None:
                ended = TransactionEnded(token=token, error_code=error)
                self._core.outbox.effects.append(ended)

        if not started:
            respond(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        shard = self._core.shards.get(partition, self._core.absent)
        shard.complete_transaction(marker, respond)

    # -- OffsetDelete ------------------------------------------------------------------------

    def delete(
        self,
        request: OffsetDeleteRequest,
        call: Call,
    ) -> None:
        """O-20, O-21."""
        answer = call.answer
        error = ErrorCode.NONE
        if not call.permit.allows("DELETE", "GROUP", request.group_id or ""):
            error = ErrorCode.GROUP_AUTHORIZATION_FAILED
        elif not call.started:
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        elif not request.group_id:
            error = ErrorCode.INVALID_GROUP_ID
        if error is not ErrorCode.NONE:
            answer.complete(OffsetDeleteResponse(error_code=error))
            return
        topics, refused = self._deletable(request.topics, call.permit)
        valid = dataclasses.replace(request, topics=topics)
        shard = self._core.shard_of(request.group_id)
        deleted: tuple[OffsetDeleteResponseTopic, ...] = ()

        def operation() -> Result:
            nonlocal deleted
            result, deleted = delete_offsets(shard.context, shard.offsets, valid)
            return result

        def respond(error: ErrorCode) -> None:
            if error is not ErrorCode.NONE:
                answer.complete(OffsetDeleteResponse(error_code=operation_error(error)))
            else:
                answer.complete(OffsetDeleteResponse(topics=_merged_deletions(refused, deleted)))

        shard.write(operation, respond)

    def _deletable(
        self, topics: tuple[OffsetDeleteRequestTopic, ...], permit: Permit
    ) -> tuple[tuple[OffsetDeleteRequestTopic, ...], tuple[OffsetDeleteResponseTopic, ...]]:
        """O-20: what exists and may be read, and the answers for the rest."""
        valid: list[OffsetDeleteRequestTopic] = []
        refused: list[OffsetDeleteResponseTopic] = []
        for topic in topics:
            error = self._topic_error(topic.name, permit)
            count = None if self._topics is None else self._topics.partition_count(topic.name)
            here = tuple(
                partition
                for partition in topic.partitions
                if error is ErrorCode.NONE and (count is None or 0 <= partition < count)
            )
            missing = tuple(entry for entry in topic.partitions if entry not in here)
            if here:
                valid.append(OffsetDeleteRequestTopic(name=topic.name, partitions=here))
            if missing:
                shown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if error is ErrorCode.NONE else error
                refused.append(
                    OffsetDeleteResponseTopic(
                        name=topic.name,
                        partitions=tuple(
                            OffsetDeleteResponsePartition(partition_index=index, error_code=shown)
                            for index in missing
                        ),
                    )
                )
        return tuple(valid), tuple(refused)

    # -- topics ------------------------------------------------------------------------------

    def topics_deleted(self, topics: tuple[tuple[str, str], ...]) -> None:
        """O-23, on every partition; then Kafka's second operation, which finds nothing here."""
        for shard in self._core.in_order():
            shard.write(
                lambda shard=shard: delete_topics(shard.context, shard.offsets, topics),  # type: ignore[misc]
                _ignore,
            )
        for shard in self._core.in_order():
            shard.write(lambda: NOTHING, _ignore)


def _ignore(_error: ErrorCode) -> None:
    """Nobody waits for this operation."""


def _refused(topics: tuple[OffsetCommitRequestTopic, ...], error: ErrorCode) -> Topics:
    """One error for every partition asked for."""
    return tuple(
        OffsetCommitResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=tuple(
                OffsetCommitResponsePartition(
                    partition_index=partition.partition_index, error_code=error
                )
                for partition in topic.partitions
            ),
        )
        for topic in topics
    )


def _merged(parts: tuple[Topics, ...], *, uses_ids: bool) -> Topics:
    """The parts of an answer, one entry for each topic (``OffsetCommitResponse.Builder``).

    Answers name a topic by its id from version 10 (6 for transactions) on, by its name before.
    """
    merged: dict[str, OffsetCommitResponseTopic] = {}
    for topic in (topic for part in parts for topic in part):
        key = topic.topic_id if uses_ids else topic.name
        known = merged.get(key)
        merged[key] = OffsetCommitResponseTopic(
            name="" if uses_ids else topic.name,
            topic_id=topic.topic_id if uses_ids else "",
            partitions=(known.partitions if known is not None else ()) + topic.partitions,
        )
    return tuple(merged.values())


def _without_loading(topics: Topics) -> Topics:
    return tuple(
        dataclasses.replace(
            topic,
            partitions=tuple(
                dataclasses.replace(
                    partition,
                    error_code=(
                        ErrorCode.COORDINATOR_NOT_AVAILABLE
                        if partition.error_code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
                        else partition.error_code
                    ),
                )
                for partition in topic.partitions
            ),
        )
        for topic in topics
    )


def _merged_deletions(
    *parts: tuple[OffsetDeleteResponseTopic, ...],
) -> tuple[OffsetDeleteResponseTopic, ...]:
    merged: dict[str, OffsetDeleteResponseTopic] = {}
    for topic in (topic for part in parts for topic in part):
        known = merged.get(topic.name)
        merged[topic.name] = OffsetDeleteResponseTopic(
            name=topic.name,
            partitions=(known.partitions if known is not None else ()) + topic.partitions,
        )
    return tuple(merged.values())
