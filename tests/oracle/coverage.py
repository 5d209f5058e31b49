"""Which operations met which states: cells of (where the group stood, what happened to it).

Everything is read from Kafka's own snapshots, so that the figures say what Kafka was asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.oracle.script import Operation
from tests.oracle.world import World

__all__ = ["ACTIONS", "STATES", "Cell", "cells_of", "impossible", "report"]

Cell = tuple[str, str]

STATES = (
    "not here",
    "loading",
    "no group",
    "Empty",
    "Empty, pending ids",
    "PreparingRebalance, initial",
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
)
"""Where a group can stand; "not here": this broker does not serve its partition."""

ACTIONS = (
    "join: unknown id, dynamic, below v4",
    "join: unknown id, dynamic, v4 and later",
    "join: unknown id, new instance",
    "join: unknown id, instance of a member",
    "join: pending id",
    "join: leader",
    "join: follower",
    "join: member whose join is parked",
    "join: member whose sync is parked",
    "join: wrong id",
    "sync: leader",
    "sync: follower",
    "sync: member whose sync is parked",
    "sync: wrong generation",
    "sync: wrong id",
    "heartbeat: member",
    "heartbeat: wrong generation",
    "heartbeat: wrong id",
    "leave: member",
    "leave: instance without id",
    "leave: pending id",
    "leave: several",
    "leave: wrong id",
    "commit: member",
    "commit: wrong generation",
    "commit: wrong id",
    "commit: without ids",
    "txn_commit: member",
    "txn_commit: wrong generation",
    "txn_commit: wrong id",
    "txn_commit: without ids",
    "end_txn: commit",
    "end_txn: abort",
    "fetch: named",
    "fetch: all",
    "fetch: stable",
    "offset_delete",
    "delete",
    "describe",
    "list",
    "topics_deleted",
    "timer: session",
    "timer: new member",
    "timer: pending member",
    "timer: join",
    "timer: pending sync",
    "timer: expiration",
    "timer: write limit",
    "append: fails",
    "append: committed late",
    "unload",
    "load",
    "restart",
)
"""What can happen to a group."""

_ROLES_OF_MEMBERS = ("leader", "follower", "member", "wrong generation", "unknown id, instance of")


def impossible(state: str, action: str) -> bool:
    """Cells that cannot be, because the state excludes what the action needs."""
    kind, _, role = action.partition(": ")
    if kind in ("load", "restart"):
        return False
    if kind == "unload":
        return state == "not here"
    if state in ("not here", "loading"):
        # nobody is a member, nothing is armed, nothing is written, nothing is seen
        return (
            kind in ("timer", "append", "list", "topics_deleted")
            or role == "instance without id"
            or role.startswith(("pending", *_ROLES_OF_MEMBERS))
        )
    if kind == "timer":
        return role in _TIMERS_NOT_ARMED[state]
    if role.startswith("pending"):
        return state in ("no group", "Empty")
    if role == "member whose join is parked":
        # in Stable a static replacement waits for its record with its join parked (J-24)
        return not state.startswith(("Preparing", "Stable"))
    if role == "member whose sync is parked":
        return state != "CompletingRebalance"
    if state == "no group":
        return (
            kind in ("list", "topics_deleted")
            or action == "append: committed late"
            or (role == "instance without id" or role.startswith(_ROLES_OF_MEMBERS))
        )
    if role == "instance without id" or role.startswith(_ROLES_OF_MEMBERS):
        return state in ("Empty", "Empty, pending ids") or (
            # whoever is in an initial rebalance came in by a join, which is parked
            state == "PreparingRebalance, initial"
            and kind == "join"
            and role != "unknown id, instance of a member"
        )
    return False


_TIMERS_NOT_ARMED = {
    "no group": ("new member", "pending member", "write limit"),
    "Empty": ("new member", "pending member"),
    "Empty, pending ids": ("new member",),
    "PreparingRebalance, initial": ("pending sync",),
    "PreparingRebalance": ("pending sync",),
    "CompletingRebalance": ("new member", "join"),
    "Stable": ("new member", "join"),
}
"""Timers that a state never meets. A timer without its group is seen as "session"; one that a
vanished group left behind may meet the next group of that name (J-22)."""


def state_of(world: World, group_id: str) -> str:
    """One of ``STATES`` for a group now."""
    status = world.status(world.partition_of(group_id))
    if status != "ACTIVE":
        return "loading" if status == "LOADING" else "not here"
    group = world.group(group_id)
    if group is None:
        return "no group"
    state: str = group["state"]
    if state == "Empty" and group["pending_join_members"]:
        return "Empty, pending ids"
    if state == "PreparingRebalance" and group["previous_state"] == "Empty":
        return "PreparingRebalance, initial"
    return state


def cells_of(world: World, operation: Operation) -> Iterator[Cell]:
    """The cells a resolved operation is about to reach in ``world``."""
    kind = operation["op"]
    if kind in ("join", "sync", "heartbeat", "commit", "txn_commit"):
        group_id = operation["group"]
        role = _role(world.group(group_id), operation)
        yield state_of(world, group_id), f"{kind}: {role}"
    elif kind == "leave":
        group_id = operation["group"]
        for role in _leavers(world.group(group_id), operation):
            yield state_of(world, group_id), f"leave: {role}"
    elif kind == "fetch":
        for group_id, _, _, topics in operation["groups"]:
            state = state_of(world, group_id)
            yield state, "fetch: all" if topics is None else "fetch: named"
            if operation["stable"]:
                yield state, "fetch: stable"
    elif kind in ("describe", "delete"):
        for group_id in operation["groups"]:
            yield state_of(world, group_id), kind
    elif kind == "offset_delete":
        yield state_of(world, operation["group"]), kind
    elif kind == "end_txn":
        outcome = "commit" if operation["committed"] else "abort"
        yield state_of(world, operation["group"]), f"end_txn: {outcome}"
    elif kind == "restart":
        for partition in operation["load"]:
            yield from _in_partition(world, partition, kind)
    elif kind in ("load", "unload"):
        yield from _in_partition(world, operation["partition"], kind)
    elif kind in ("list", "topics_deleted"):
        for group_id in _groups(world):
            yield state_of(world, group_id), kind
    elif kind == "commit_appends":
        for group_id in _groups(world):
            yield state_of(world, group_id), "append: committed late"
    elif kind == "advance":
        yield from _timers(world, operation["ms"])


def cells_after(states: dict[str, str], result: dict[str, Any]) -> Iterator[Cell]:
    """Cells that only the result shows: appends that failed. ``states``: as they were before."""
    for append in result["appends"]:
        if "error" in append:
            for record in append["records"]:
                group_id = record.get("key", {}).get("group")
                if group_id is not None:
                    yield states.get(group_id, "no group"), "append: fails"


def states_now(world: World) -> dict[str, str]:
    """Group → where it stands."""
    return {group_id: state_of(world, group_id) for group_id in _groups(world)}


def _groups(world: World) -> list[str]:
    return [
        group["group_id"]
        for partition in world.snapshot["partitions"]
        for group in partition.get("groups", ())
    ]


def _in_partition(world: World, number: int, kind: str) -> Iterator[Cell]:
    partition = world.partition(number) or {}
    if partition.get("state") != "ACTIVE":
        yield "loading" if partition.get("state") == "LOADING" else "not here", kind
        return
    groups = [group["group_id"] for group in partition["groups"]]
    for group_id in groups:
        yield state_of(world, group_id), kind
    if not groups:
        yield "no group", kind


def _find(group: dict[str, Any] | None, member_id: str) -> dict[str, Any] | None:
    for member in group["members"] if group else ():
        if member["member_id"] == member_id:
            found: dict[str, Any] = member
            return found
    return None


def _instances(group: dict[str, Any] | None) -> dict[str, str]:
    members = group["members"] if group else ()
    return {
        member["group_instance_id"]: member["member_id"]
        for member in members
        if member["group_instance_id"] is not None
    }


def _role(group: dict[str, Any] | None, operation: Operation) -> str:
    kind, member_id, instance = operation["op"], operation["member"], operation.get("instance")
    instances = _instances(group)
    if kind == "join" and member_id == "":
        if instance is not None:
            known = instance in instances
            return f"unknown id, {'instance of a member' if known else 'new instance'}"
        return f"unknown id, dynamic, {'below v4' if operation['version'] < 4 else 'v4 and later'}"
    if kind in ("commit", "txn_commit") and operation["generation"] < 0 and not member_id:
        return "without ids" if instance is None else "wrong id"
    if kind == "join" and group and member_id in group["pending_join_members"]:
        return "pending id"
    member = _find(group, member_id)
    if member is None or (instance is not None and instances.get(instance) != member_id):
        return "wrong id"
    assert group is not None
    if kind != "join" and operation["generation"] != group["generation_id"]:
        return "wrong generation"
    if kind == "join" and member["awaiting_join"]:
        return "member whose join is parked"
    if kind in ("join", "sync") and member["awaiting_sync"]:
        return "member whose sync is parked"
    if kind in ("join", "sync"):
        return "leader" if group["leader"] == member_id else "follower"
    return "member"


def _leavers(group: dict[str, Any] | None, operation: Operation) -> Iterator[str]:
    instances = _instances(group)
    members = operation["members"]
    if len(members) > 1:
        yield "several"
    for member_id, instance, _ in members:
        if group and member_id in group["pending_join_members"]:
            yield "pending id"
        elif member_id == "" and instance in instances:
            yield "instance without id"
        elif _find(group, member_id) and instance in (None, *instances):
            yield "member"
        else:
            yield "wrong id"


def _timers(world: World, wait_ms: int) -> Iterator[Cell]:
    """Timers of the first instant at which any fires; what later ones meet is not known yet."""
    timers = world.snapshot["timers"]
    due = min((timer["deadline"] for timer in timers), default=None)
    if due is None or due > world.now_ms + wait_ms:
        return
    for timer in timers:
        if timer["deadline"] == due:
            yield from _timer(world, timer)


def _timer(world: World, timer: dict[str, Any]) -> Iterator[Cell]:
    name: str = timer.get("name", "")
    if timer["kind"] == "operation":
        for group in (world.partition(timer["partition"]) or {}).get("groups", ()):
            yield state_of(world, group["group_id"]), "timer: write limit"
    if timer["kind"] != "group" or timer["partition"] is None:
        return
    if name == "expire-group-metadata":
        yield from _in_partition(world, timer["partition"], "timer: expiration")
        return
    kind, _, rest = name.partition("-")
    known = sorted(_groups(world), key=len, reverse=True)
    group_id = next((g for g in known if rest == g or rest.startswith(f"{g}-")), None)
    state = state_of(world, group_id) if group_id is not None else "no group"
    if kind == "join":
        yield state, "timer: join"
    elif kind == "sync":
        yield state, "timer: pending sync"
    elif kind == "heartbeat" and group_id is not None:
        group = world.group(group_id)
        member_id = rest[len(group_id) + 1 :]
        member = _find(group, member_id)
        if group and member_id in group["pending_join_members"]:
            yield state, "timer: pending member"
        elif member is not None and member["is_new"]:
            yield state, "timer: new member"
        else:
            yield state, "timer: session"
    elif kind == "heartbeat":
        yield state, "timer: session"


_LISTED = 60  # a run that leaves out more cells than this is too short to say which matter


def report(cells: Counter[Cell]) -> str:
    """How many cells were reached, and which possible ones were not."""
    possible = [(s, a) for s in STATES for a in ACTIONS if not impossible(s, a)]
    missing = [cell for cell in possible if not cells[cell]]
    surprising = sorted(cell for cell in cells if impossible(*cell))
    lines = [
        f"cells (state × what happened): {len(possible) - len(missing)} of {len(possible)} "
        f"reached; {len(STATES)} states × {len(ACTIONS)} happenings, less "
        f"{len(STATES) * len(ACTIONS) - len(possible)} that cannot be"
    ]
    for state in STATES:
        absent = [action for s, action in missing if s == state]
        if absent and len(missing) <= _LISTED:
            lines.append(f"  not reached in {state}: {'; '.join(absent)}")
    if surprising:
        lines.append(f"  thought impossible, reached: {surprising}")
    return "\n".join(lines)
