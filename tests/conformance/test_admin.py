"""DescribeGroups, ListGroups, DeleteGroups (D-01 to D-07)."""

from __future__ import annotations

from groupsim.coordinator import Switches, partition_for
from groupsim.coordinator.classic.states import GroupState
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import (
    APIS,
    ApiKey,
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from groupsim.testing.coordinator import Bench, subscription
from tests.conformance.test_offsets import topic, transactional
from tests.conformance.world import Refusing

NONE = ErrorCode.NONE


def described(
    bench: Bench, *groups: str | None, version: int = 6, operations: bool = False
) -> tuple[DescribedGroup, ...]:
    """The answer to a DescribeGroups."""
    request = DescribeGroupsRequest(
        groups=groups,  # type: ignore[arg-type]
        include_authorized_operations=operations,
    )
    return bench.answer(bench.send(request, version), DescribeGroupsResponse).groups


def listed(
    bench: Bench, *states: str, types: tuple[str, ...] = (), version: int = 5
) -> ListGroupsResponse:
    """The answer to a ListGroups."""
    request = ListGroupsRequest(states_filter=states, types_filter=types)
    return bench.answer(bench.send(request, version), ListGroupsResponse)


def deleted(bench: Bench, *groups: str | None) -> dict[str, ErrorCode]:
    """The errors of a DeleteGroups."""
    request = DeleteGroupsRequest(groups_names=groups)  # type: ignore[arg-type]
    answer = bench.answer(bench.send(request, 2), DeleteGroupsResponse)
    return {entry.group_id: entry.error_code for entry in answer.results}


def names(response: ListGroupsResponse) -> set[str]:
    """The listed groups."""
    return {entry.group_id for entry in response.groups}


# -- DescribeGroups --------------------------------------------------------------------------


def test_describe_gate() -> None:
    """D-01: authorization, null id, stopped, partition not here or loading: on each group."""
    bench = Bench(
        {"offsets.topic.num.partitions": 50}, authorizer=Refusing(("DESCRIBE", "GROUP", "h"))
    )
    refused, invalid, fine = described(bench, "h", None, "", version=5)
    assert (refused.group_id, refused.error_code) == ("h", ErrorCode.GROUP_AUTHORIZATION_FAILED)
    assert (invalid.group_id, invalid.error_code) == ("", ErrorCode.INVALID_GROUP_ID)
    assert (fine.group_id, fine.error_code) == ("", NONE)
    bench.unload()
    (entry,) = described(bench, "g")
    assert (entry.error_code, entry.group_state) == (ErrorCode.NOT_COORDINATOR, "")
    bench.carry_out(bench.coordinator.begin_load(partition_for("g", 50), 9, 0))
    (entry,) = described(bench, "g")
    assert entry.error_code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    bench.carry_out(bench.coordinator.stop(0))
    (entry,) = described(bench, "g")
    assert entry.error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_describe_follows_kafkas_order_of_partitions() -> None:
    """D-01: within a partition the order of the request, partitions in map order."""
    bench = Bench({"offsets.topic.num.partitions": 50})
    ids = [f"group-{number}" for number in range(40)]
    order = [entry.group_id for entry in described(bench, *ids)]
    assert sorted(order) == sorted(ids)
    assert order != ids
    same = [name for name in ids if partition_for(name, 50) == partition_for(ids[0], 50)]
    assert [name for name in order if name in same] == same


def test_describe_unknown_groups() -> None:
    """D-02, D-05: an error from version 6 on, Dead without one before; and so for a group whose
    first record is not committed.
    """
    bench = Bench()
    bench.hold = True
    bench.send_commit()
    for name in ("g", "nowhere"):
        assert described(bench, name) == (
            DescribedGroup(
                group_id=name,
                group_state="Dead",
                error_code=ErrorCode.GROUP_ID_NOT_FOUND,
                error_message=f"Group {name} not found.",
            ),
        )
        assert described(bench, name, version=5) == (
            DescribedGroup(group_id=name, group_state="Dead"),
        )
    bench.commit_appends()
    assert described(bench, "g")[0].group_state == "Empty"
    old = Bench(switches=Switches(describe_unknown_as_dead=True))
    assert described(old, "g") == (DescribedGroup(group_id="g", group_state="Dead"),)


def test_describe_stable() -> None:
    """D-03."""
    bench = Bench()
    (member,) = bench.stable_static("i", client_id="app", client_host="/10.0.0.1")
    (group,) = described(bench, "g")
    assert (group.group_state, group.protocol_type, group.protocol_data) == (
        "Stable",
        "consumer",
        "range",
    )
    (entry,) = group.members
    assert (entry.member_id, entry.group_instance_id) == (member, "i")
    assert (entry.client_id, entry.client_host) == ("app", "/10.0.0.1")
    assert entry.member_metadata == subscription("orders")
    assert entry.member_assignment == member.encode()


def test_describe_other_states() -> None:
    """D-04: no protocol, no metadata, but the assignment that is still there; no pending ids."""
    bench = Bench()
    leader, _follower = bench.stable(2)
    bench.new_id()
    bench.join(leader)
    (group,) = described(bench, "g")
    assert (group.group_state, group.protocol_data) == ("PreparingRebalance", "")
    assert len(group.members) == 2
    assert all(entry.member_metadata == b"" for entry in group.members)
    assert all(entry.member_assignment for entry in group.members)
    bench.commit(group="simple")
    (group,) = described(bench, "simple")
    assert (group.group_state, group.protocol_type) == ("Empty", "")


def test_describe_versions_and_operations() -> None:
    """D-05: operations from version 3 on, only when asked for, and only without an error."""
    api = APIS[ApiKey.DESCRIBE_GROUPS]
    assert (api.min_version, api.max_version) == (0, 6)
    bench = Bench(authorizer=Refusing(("DELETE", "GROUP", "g")))
    bench.commit()
    everything = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11
    assert described(bench, "g", operations=True)[0].authorized_operations == everything ^ 1 << 6
    assert described(bench, "g", operations=True, version=2)[0].authorized_operations == -(2**31)
    assert described(bench, "g")[0].authorized_operations == -(2**31)
    assert described(bench, "x", operations=True)[0].authorized_operations == -(2**31)


# -- ListGroups ------------------------------------------------------------------------------


def test_list_groups() -> None:
    """D-06, O-24: committed groups of all partitions, simple ones too."""
    bench = Bench({"offsets.topic.num.partitions": 50})
    bench.stable(1)
    bench.commit(group="simple")
    bench.new_id(group="fresh")
    bench.hold = True
    bench.send_commit(group="uncommitted")
    answer = listed(bench)
    assert names(answer) == {"g", "simple", "fresh"}
    entries = {entry.group_id: entry for entry in answer.groups}
    assert entries["g"] == ListedGroup(
        group_id="g", protocol_type="consumer", group_state="Stable", group_type="classic"
    )
    assert entries["simple"].protocol_type == ""
    old = {entry.group_id: entry for entry in listed(bench, version=3).groups}
    assert old["g"] == ListedGroup(group_id="g", protocol_type="consumer")
    assert APIS[ApiKey.LIST_GROUPS].max_version == 5


def test_list_filters() -> None:
    """D-06: states trimmed and in any case, types in any case, unknown ones match nothing."""
    bench = Bench()
    bench.stable(1)
    bench.commit(group="simple")
    assert names(listed(bench, " STABLE ")) == {"g"}
    assert names(listed(bench, "stable", "Empty")) == {"g", "simple"}
    assert names(listed(bench, "nonsense")) == set()
    assert names(listed(bench, types=("Classic",))) == {"g", "simple"}
    assert names(listed(bench, types=("consumer", "bogus"))) == set()
    assert names(listed(bench, "Stable", types=("classic",))) == {"g"}
    assert names(listed(bench, "Stable", types=("share",))) == set()


def test_list_needs_every_partition() -> None:
    """D-06, C-06: one that loads fails all, one that is not here is left out; stopped fails all."""
    bench = Bench({"offsets.topic.num.partitions": 2})
    bench.commit(group="a")
    bench.commit(group="b")
    assert names(listed(bench)) == {"a", "b"}
    other = partition_for("b", 2)
    assert partition_for("a", 2) != other
    bench.carry_out(bench.coordinator.unload(other, 5, 0))
    assert names(listed(bench)) == {"a"}
    bench.carry_out(bench.coordinator.begin_load(other, 6, 0))
    assert listed(bench) == ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    bench.carry_out(bench.coordinator.fail_load(other, 0))
    assert names(listed(bench)) == {"a"}  # FAILED counts as not here
    bench.carry_out(bench.coordinator.stop(0))
    assert listed(bench) == ListGroupsResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)


def test_list_authorization() -> None:
    """D-06: without DESCRIBE on the cluster only groups that may be described; never an error."""
    refusing = Refusing(("DESCRIBE", "CLUSTER", "kafka-cluster"), ("DESCRIBE", "GROUP", "h"))
    bench = Bench(authorizer=refusing)
    bench.commit()
    bench.commit(group="h")
    assert names(listed(bench)) == {"g"}


# -- DeleteGroups ----------------------------------------------------------------------------


def test_delete_groups() -> None:
    """D-07: EMPTY ones with all their offsets, pending ones too; others stay."""
    bench = Bench()
    bench.commit({("orders", 0): 1, ("orders", 1): 2}, group="empty")
    transactional(bench, topic("orders", 1), topic("fresh", 0), group="empty")
    bench.stable(1)
    found = deleted(bench, "empty", "g", "nowhere", "empty", None, "")
    assert found == {
        "empty": NONE,
        "g": ErrorCode.NON_EMPTY_GROUP,
        "nowhere": ErrorCode.GROUP_ID_NOT_FOUND,
        None: ErrorCode.INVALID_GROUP_ID,
        "": ErrorCode.GROUP_ID_NOT_FOUND,
    }
    assert len(bench.appends[-1].records) == 4
    assert not bench.has_group("empty")
    bench.group().transition_to(GroupState.DEAD, "forced")
    assert deleted(bench, "g") == {"g": ErrorCode.GROUP_ID_NOT_FOUND}


def test_deletion_and_pending_members() -> None:
    """D-07, J-09, T-3: a pending member does not prevent it, its timer stays; the group starts over
    at generation 0.
    """
    bench = Bench()
    bench.stable(1)
    bench.leave(*bench.group().members)
    pending = bench.new_id()
    assert deleted(bench, "g") == {"g": NONE}
    assert f"heartbeat-g-{pending}" in bench.timers()
    assert bench.joined(bench.join(pending)).error_code is ErrorCode.UNKNOWN_MEMBER_ID
    bench.new_id()
    assert bench.seen().generation_id == 0
    bench.sleep(10_000)


def test_delete_gate() -> None:
    """D-07, C-03, C-05: refused ones last; stopped; partition not here; loading."""
    bench = Bench(authorizer=Refusing(("DELETE", "GROUP", "h")))
    bench.commit()
    request = DeleteGroupsRequest(groups_names=("h", "g"))
    answer = bench.answer(bench.send(request, 2), DeleteGroupsResponse)
    assert answer.results == (
        DeletableGroupResult(group_id="g"),
        DeletableGroupResult(group_id="h", error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED),
    )
    bench.unload()
    assert deleted(bench, "g") == {"g": ErrorCode.NOT_COORDINATOR}
    bench.carry_out(bench.coordinator.begin_load(0, 9, 0))
    assert deleted(bench, "g") == {"g": ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
    bench.carry_out(bench.coordinator.stop(0))
    assert deleted(bench, "g") == {"g": ErrorCode.COORDINATOR_NOT_AVAILABLE}


def test_deletion_waits_for_earlier_writes_and_its_own() -> None:
    """D-07, C-10, C-12, T-8: two operations, one after the other; a failure is mapped."""
    bench = Bench({"offsets.topic.num.partitions": 2})
    bench.commit(group="a")
    bench.commit(group="b")
    bench.hold = True
    bench.send_commit(group="a")
    token = bench.send(DeleteGroupsRequest(groups_names=("a", "b")), 2)
    assert bench.is_parked(token)
    assert bench.has_group("a")
    bench.commit_appends()
    assert bench.is_parked(token)
    assert len(bench.waiting) == 1
    bench.commit_appends(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    answer = bench.answer(token, DeleteGroupsResponse)
    codes = {entry.group_id: entry.error_code for entry in answer.results}
    assert codes["a"] is ErrorCode.NOT_COORDINATOR
    assert bench.has_group("a")
    bench.send_commit(group="a")
    token = bench.send(DeleteGroupsRequest(groups_names=("a",)), 2)
    bench.sleep(5000)
    answer = bench.answer(token, DeleteGroupsResponse)
    assert answer.results[0].error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
