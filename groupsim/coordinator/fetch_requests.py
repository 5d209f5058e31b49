"""OffsetFetch before and after the coordinator: groups, topics, versions (O-15, O-16, O-19)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from groupsim.coordinator.access import Call, Permit, TopicCatalogue
from groupsim.coordinator.core import Core
from groupsim.coordinator.failures import CoordinatorError, operation_error
from groupsim.coordinator.offsets.fetch import fetch_offsets, missing_offset
from groupsim.coordinator.outbox import Answer
from groupsim.coordinator.pipeline import NOTHING, Result
from groupsim.coordinator.timeline import LATEST
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponseTopic,
)

__all__ = ["FetchRequests"]

Group = OffsetFetchResponseGroup
_Done = Callable[[Group], None]

# O-18: in a require-stable fetch these three mean that another broker is to be asked.
_ELSEWHERE = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.REQUEST_TIMED_OUT,
)


class FetchRequests:
    """The handler of OffsetFetch."""

    def __init__(self, core: Core, topics: TopicCatalogue | None) -> None:
        self._core = core
        self._topics = topics

    def fetch(
        self,
        request: OffsetFetchRequest,
        call: Call,
    ) -> None:
        """O-15 to O-19: every group on its own, the answer when all are there."""
        fetch = _Fetch(call.answer, len(request.groups))
        for index, group in enumerate(request.groups):
            asked, refused = self._describable(group, call.permit, uses_ids=call.api_version >= 10)

            def done(
                found: Group,
                index: int = index,
                everything: bool = group.topics is None,
                refused: tuple[OffsetFetchResponseTopic, ...] = refused,
            ) -> None:
                if found.error_code is not ErrorCode.NONE:
                    fetch.done(index, found)
                    return
                topics = found.topics
                if everything:
                    topics = self._visible(topics, call.permit, uses_ids=call.api_version >= 10)
                elif call.api_version >= 10:
                    topics = tuple(dataclasses.replace(topic, name="") for topic in topics)
                fetch.done(index, dataclasses.replace(found, topics=topics + refused))

            error = self._gate_error(group, call.permit, call.started)
            if error is not ErrorCode.NONE:
                fetch.done(index, self._failed(group, error, call.api_version))
            elif request.require_stable and call.api_version >= 7:
                self._fetch_stable(group, asked, call.api_version, done)
            else:
                done(self._fetch_committed(group, asked, call.api_version))

    @staticmethod
    def _gate_error(group: OffsetFetchRequestGroup, permit: Permit, started: bool) -> ErrorCode:
        if not permit.allows("DESCRIBE", "GROUP", group.group_id or ""):
            return ErrorCode.GROUP_AUTHORIZATION_FAILED
        if not started:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return ErrorCode.INVALID_GROUP_ID if group.group_id is None else ErrorCode.NONE

    def _failed(self, group: OffsetFetchRequestGroup, error: ErrorCode, api_version: int) -> Group:
        """O-19: version 1 has no place for a group's error but the partitions."""
        if api_version >= 2:
            return Group(group_id=group.group_id, error_code=error)
        if self._core.config.switches.offset_fetch_v1_errors_lost:
            return Group(group_id=group.group_id)
        return Group(
            group_id=group.group_id,
            topics=tuple(_refused(topic, error) for topic in group.topics or ()),
        )

    # -- the coordinator ---------------------------------------------------------------------

    def _fetch_committed(
        self,
        group: OffsetFetchRequestGroup,
        asked: OffsetFetchRequestGroup,
        api_version: int,
    ) -> Group:
        """A read operation: what is below the high watermark."""
        shard = self._core.shard_of(group.group_id)
        try:
            shard.check_active()
            return fetch_offsets(shard.context, shard.offsets, asked, shard.pipeline.last_committed)
        except CoordinatorError as failure:  # passed on as it is, not mapped by C-10
            return self._failed(group, failure.code, api_version)

    def _fetch_stable(
        self,
        group: OffsetFetchRequestGroup,
        asked: OffsetFetchRequestGroup,
        api_version: int,
        done: _Done,
    ) -> None:
        """O-18: a write operation, so that it waits for what is being written."""
        shard = self._core.shard_of(group.group_id)
        found = Group(group_id=group.group_id)

        def operation() -> Result:
            nonlocal found
            found = fetch_offsets(shard.context, shard.offsets, asked, LATEST)
            return NOTHING

        def respond(error: ErrorCode) -> None:
            if error in _ELSEWHERE:
                done(self._failed(group, ErrorCode.NOT_COORDINATOR, api_version))
            elif error is not ErrorCode.NONE:
                done(self._failed(group, operation_error(error), api_version))
            else:
                done(found)

        shard.write(operation, respond)

    # -- topics ------------------------------------------------------------------------------

    def _describable(
        self, group: OffsetFetchRequestGroup, permit: Permit, *, uses_ids: bool
    ) -> tuple[OffsetFetchRequestGroup, tuple[OffsetFetchResponseTopic, ...]]:
        """What may be asked for, and the answers for the rest."""
        if group.topics is None:
            return group, ()
        asked: list[OffsetFetchRequestTopic] = []
        refused: list[OffsetFetchResponseTopic] = []
        for given in group.topics:
            topic = given
            if uses_ids and self._topics is not None:
                name = self._topics.topic_name(given.topic_id) or ""
                topic = dataclasses.replace(given, name=name)
            if uses_ids and not topic.name:
                refused.append(_refused(topic, ErrorCode.UNKNOWN_TOPIC_ID))
            elif not permit.allows("DESCRIBE", "TOPIC", topic.name):
                shown = dataclasses.replace(topic, name="") if uses_ids else topic
                refused.append(_refused(shown, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            else:
                asked.append(topic)
        return dataclasses.replace(group, topics=tuple(asked)), tuple(refused)

    def _visible(
        self, topics: tuple[OffsetFetchResponseTopic, ...], permit: Permit, *, uses_ids: bool
    ) -> tuple[OffsetFetchResponseTopic, ...]:
        """A fetch of all: topics that may be described, from version 10 on those with an id."""
        visible = [topic for topic in topics if permit.allows("DESCRIBE", "TOPIC", topic.name)]
        if not uses_ids:
            return tuple(visible)
        named = [
            (self._topics.topic_id(topic.name) if self._topics is not None else "", topic)
            for topic in visible
        ]
        return tuple(
            dataclasses.replace(topic, name="", topic_id=topic_id)
            for topic_id, topic in named
            if topic_id
        )


class _Fetch:
    """An OffsetFetch under way: every group's part in its place."""

    def __init__(self, answer: Answer, groups: int) -> None:
        self._answer = answer
        self._parts: dict[int, Group] = {}
        self._groups = groups
        if not groups:
            answer.complete(OffsetFetchResponse())

    def done(self, index: int, found: Group) -> None:
        self._parts[index] = found
        if len(self._parts) == self._groups:
            groups = tuple(self._parts[index] for index in range(self._groups))
            self._answer.complete(OffsetFetchResponse(groups=groups))


def _refused(topic: OffsetFetchRequestTopic, error: ErrorCode) -> OffsetFetchResponseTopic:
    return OffsetFetchResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=tuple(missing_offset(index, error) for index in topic.partition_indexes),
    )
