"""DescribeGroups, ListGroups and DeleteGroups (family D): one request, several partitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from groupsim.coordinator.access import Call, Permit
from groupsim.coordinator.classic.group import ClassicGroup
from groupsim.coordinator.classic.states import GroupState
from groupsim.coordinator.core import Core
from groupsim.coordinator.failures import CoordinatorError, operation_error
from groupsim.coordinator.java_order import hash_map_order
from groupsim.coordinator.offsets.cleanup import delete_groups
from groupsim.coordinator.outbox import Answer
from groupsim.coordinator.pipeline import NOTHING, Result
from groupsim.coordinator.shard import Shard
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.java import JavaHashMap
from groupsim.protocol.messages import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)

__all__ = ["GroupRequests"]

_CLASSIC = "classic"
_CLUSTER = "kafka-cluster"
# READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS and ALTER_CONFIGS (AclEntry.supportedOperations)
_OPERATIONS: Final = {
    "READ": 3,
    "DELETE": 6,
    "DESCRIBE": 8,
    "DESCRIBE_CONFIGS": 10,
    "ALTER_CONFIGS": 11,
}


class GroupRequests:
    """Handlers of the three requests."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def handlers(self) -> dict[type, Callable[[Any, Call], None]]:
        """Handlers by type of request."""
        return {
            DescribeGroupsRequest: self.describe,
            ListGroupsRequest: self.list,
            DeleteGroupsRequest: self.delete,
        }

    def _by_partition(self, group_ids: Sequence[str]) -> list[tuple[Shard, list[str]]]:
        """Groups by partition, in the order of Kafka's map of partitions."""
        found: dict[int, list[str]] = {}
        for group_id in group_ids:
            found.setdefault(self._core.partition_of(group_id), []).append(group_id)
        return [
            (self._core.shards.get(partition, self._core.absent), found[partition])
            for partition in hash_map_order(list(found))
        ]

    # -- DescribeGroups ----------------------------------------------------------------------

    def describe(
        self,
        request: DescribeGroupsRequest,
        call: Call,
    ) -> None:
        """D-01 to D-05."""
        allowed = [
            name for name in request.groups if call.permit.allows("DESCRIBE", "GROUP", name or "")
        ]
        refused = [name for name in request.groups if name not in allowed]
        described = [
            DescribedGroup(group_id=name, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
            for name in refused
        ]
        if call.started:
            described += self._describe(allowed, call.api_version)
        else:
            described += [
                DescribedGroup(group_id=name, error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
                for name in allowed
            ]
        if request.include_authorized_operations and call.api_version >= 3:
            described = [_with_operations(entry, call.permit) for entry in described]
        call.answer.complete(DescribeGroupsResponse(groups=tuple(described)))

    def _describe(self, group_ids: list[str], api_version: int) -> list[DescribedGroup]:
        answers = [
            DescribedGroup(group_id="", error_code=ErrorCode.INVALID_GROUP_ID)
            for name in group_ids
            if name is None
        ]
        for shard, names in self._by_partition([name for name in group_ids if name is not None]):
            try:
                answers += self._described(shard, names, api_version)
            except CoordinatorError as failure:
                answers += [
                    DescribedGroup(group_id=name, error_code=failure.code) for name in names
                ]
        return answers

    def _described(self, shard: Shard, names: list[str], api_version: int) -> list[DescribedGroup]:
        shard.check_active()
        found = [
            (name, shard.context.groups.get_at(name, shard.pipeline.last_committed))
            for name in names
        ]
        return [
            self._unknown(name, api_version) if group is None else _described(group)
            for name, group in found
        ]

    def _unknown(self, group_id: str, api_version: int) -> DescribedGroup:
        """D-02."""
        if api_version < 6 or self._core.config.switches.describe_unknown_as_dead:
            return DescribedGroup(group_id=group_id, group_state=GroupState.DEAD.label)
        return DescribedGroup(
            error_code=ErrorCode.GROUP_ID_NOT_FOUND,
            error_message=f"Group {group_id} not found.",
            group_id=group_id,
            group_state=GroupState.DEAD.label,
        )

    # -- ListGroups --------------------------------------------------------------------------

    def list(
        self,
        request: ListGroupsRequest,
        call: Call,
    ) -> None:
        """D-06."""
        answer = call.answer
        if not call.started:
            answer.complete(ListGroupsResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE))
            return
        states = {state.lower().strip() for state in request.states_filter}
        types = {kind.lower() for kind in request.types_filter}
        listed: list[ListedGroup] = []
        for shard in self._core.in_order():
            try:
                shard.check_active()
                groups = shard.context.groups.values(shard.pipeline.last_committed)
            except CoordinatorError as failure:
                if failure.code is ErrorCode.NOT_COORDINATOR:
                    continue
                answer.complete(ListGroupsResponse(error_code=failure.code))
                return
            listed += [
                _listed(group, call.api_version)
                for group in groups
                if (not states or group.state.label.lower() in states)
                and (not types or _CLASSIC in types)
            ]
        if not call.permit.allows("DESCRIBE", "CLUSTER", _CLUSTER):
            listed = [
                entry for entry in listed if call.permit.allows("DESCRIBE", "GROUP", entry.group_id)
            ]
        answer.complete(ListGroupsResponse(groups=tuple(listed)))

    # -- DeleteGroups ------------------------------------------------------------------------

    def delete(
        self,
        request: DeleteGroupsRequest,
        call: Call,
    ) -> None:
        """D-07."""
        answer = call.answer
        names = list(dict.fromkeys(request.groups_names))
        allowed = [name for name in names if call.permit.allows("DELETE", "GROUP", name or "")]
        refused = [
            DeletableGroupResult(group_id=name, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
            for name in names
            if name not in allowed
        ]
        if not call.started:
            down = _all_failed(allowed, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            answer.complete(DeleteGroupsResponse(results=(*down, *refused)))
            return
        first = [
            DeletableGroupResult(group_id=name, error_code=ErrorCode.INVALID_GROUP_ID)
            for name in allowed
            if name is None
        ]
        parts = self._by_partition([name for name in allowed if name is not None])
        deletion = _Deletion(self._core, answer, first, len(parts), refused)
        for index, (shard, group_ids) in enumerate(parts):
            deletion.start(index, shard, group_ids)
        deletion.finish_if_done()


class _Deletion:
    """A DeleteGroups under way: every partition's part in its place.

    Kafka first runs a write operation that looks for share groups; it makes no records here, but
    waits for earlier writes like any other. The deletion proper is queued when it is over.
    """

    def __init__(
        self,
        core: Core,
        answer: Answer,
        first: list[DeletableGroupResult],
        parts: int,
        last: list[DeletableGroupResult],
    ) -> None:
        self._core = core
        self._answer = answer
        self._first = first
        self._last = last
        self._parts: list[tuple[DeletableGroupResult, ...] | None] = [None] * parts

    def start(self, index: int, shard: Shard, group_ids: list[str]) -> None:
        ordered = JavaHashMap[None](capacity_for=len(group_ids))  # new HashSet<>(groupList)
        for group_id in group_ids:
            ordered[group_id] = None

        def respond(error: ErrorCode) -> None:
            if error is not ErrorCode.NONE:
                errors = JavaHashMap[None]()
                for group_id in group_ids:
                    errors[group_id] = None
                self._part_done(index, _all_failed(list(errors), operation_error(error)))
            else:
                self._core.enqueue(lambda: self._delete(index, shard, list(ordered)))

        shard.write(lambda: NOTHING, respond)

    def _delete(self, index: int, shard: Shard, group_ids: list[str]) -> None:
        results: tuple[DeletableGroupResult, ...] = ()

        def operation() -> Result:
            nonlocal results
            result, results = delete_groups(shard.context, shard.offsets, group_ids)
            return result

        def respond(error: ErrorCode) -> None:
            done = results
            if error is not ErrorCode.NONE:
                done = tuple(_all_failed(group_ids, operation_error(error)))
            self._part_done(index, done)

        shard.write(operation, respond)

    def _part_done(self, index: int, results: Sequence[DeletableGroupResult]) -> None:
        self._parts[index] = tuple(results)
        self.finish_if_done()

    def finish_if_done(self) -> None:
        done = list(self._first)
        for part in self._parts:
            if part is None:
                return
            done += part
        self._answer.complete(DeleteGroupsResponse(results=(*done, *self._last)))


def _all_failed(group_ids: list[str], error: ErrorCode) -> list[DeletableGroupResult]:
    return [DeletableGroupResult(group_id=name, error_code=error) for name in group_ids]


def _described(group: ClassicGroup) -> DescribedGroup:
    """D-03, D-04."""
    stable = group.state is GroupState.STABLE
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.label,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol_name or "") if stable else "",
        members=tuple(
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(group.protocol_name) if stable else b"",
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ),
    )


def _with_operations(entry: DescribedGroup, permit: Permit) -> DescribedGroup:
    """D-05: what the caller may do with the group, as a bit field."""
    if entry.error_code is not ErrorCode.NONE:
        return entry
    bits = sum(
        1 << bit
        for operation, bit in _OPERATIONS.items()
        if permit.allows(operation, "GROUP", entry.group_id)
    )
    return DescribedGroup(
        group_id=entry.group_id,
        group_state=entry.group_state,
        protocol_type=entry.protocol_type,
        protocol_data=entry.protocol_data,
        members=entry.members,
        authorized_operations=bits,
    )


def _listed(group: ClassicGroup, api_version: int) -> ListedGroup:
    return ListedGroup(
        group_id=group.group_id,
        protocol_type=group.protocol_type or "",
        group_state=group.state.label if api_version >= 4 else "",
        group_type=_CLASSIC if api_version >= 5 else "",
    )
