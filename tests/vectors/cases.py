"""The vector format: one case is one assignor object and one or more groups given to it.

See README.md in this directory for the fields.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from groupsim.protocol.consumer_protocol import (
    Assignment,
    Subscription,
    TopicPartition,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from groupsim_clients.assignors import (
    Assignor,
    AssignorFailure,
    GroupMember,
    PartitionInfo,
    make_assignor,
)
from groupsim_clients.assignors.sticky import encode_user_data

__all__ = [
    "VectorError",
    "evaluate",
    "evaluate_round",
    "expected",
    "inputs_of",
    "kind_of",
    "leaders_view",
    "read_cases",
    "write_cases",
]

Case = dict[str, Any]
_ROUND_INPUTS = ("told", "topics", "members")
_ROUND_OUTPUTS = ("result", "sent", "wire")


class VectorError(ValueError):
    """A vector file that cannot be used; the message names file, line and fault."""


def read_cases(path: Path) -> Iterator[Case]:
    """The cases of a ``.jsonl`` or ``.jsonl.gz`` file. Raises ``VectorError``."""
    try:
        lines = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError) as fault:
        raise VectorError(f"{path}: {fault}") from fault
    for number, line in enumerate(lines.splitlines(), 1):
        if not line.strip():
            continue
        try:
            case = json.loads(line)
            _check(case)
        except (ValueError, KeyError, TypeError) as fault:
            raise VectorError(f"{path}, line {number}: not a vector: {fault!r}") from fault
        yield case


def _check(case: Case) -> None:
    """Touch what ``evaluate`` will need. Raises ``KeyError``, ``TypeError`` or ``ValueError``."""
    make_assignor(kind_of(case))
    for one in _rounds(case):
        one["topics"].items(), one["result"].keys()
        for member in one["members"]:
            for field in ("id", "topics", "owned", "gen", "ver"):
                member[field]


def kind_of(case: Case) -> str:
    """Which assignor the case is about."""
    return str(case["kind"])


def _rounds(case: Case) -> list[dict[str, Any]]:
    rounds: list[dict[str, Any]] = case.get("rounds", [case])
    return rounds


def inputs_of(case: Case) -> Case:
    """The case without what came out."""
    rounds = [{key: one[key] for key in _ROUND_INPUTS if key in one} for one in _rounds(case)]
    return {"case": case.get("case"), "kind": kind_of(case), "rounds": rounds}


def expected(case: Case) -> list[dict[str, Any]]:
    """What Java returned, round by round: the output fields that the case has."""
    return [{key: one[key] for key in _ROUND_OUTPUTS if key in one} for one in _rounds(case)]


def evaluate(case: Case) -> list[dict[str, Any]]:
    """What our assignor makes of the case, with the same fields as ``expected``.

    Members of ``result`` keep no particular order, as Java's do not; lists do.
    """
    assignor = make_assignor(kind_of(case))
    outcomes = []
    for one in _rounds(case):
        outcome = evaluate_round(assignor, one)
        outcomes.append({key: outcome[key] for key in _ROUND_OUTPUTS if key in one})
    return outcomes


def evaluate_round(assignor: Assignor, one: Mapping[str, Any]) -> dict[str, Any]:
    """One round given to ``assignor``: ``result``, ``sent`` and ``wire``."""
    told = one.get("told")
    if told is not None:
        partitions = tuple(TopicPartition(topic, number) for topic, number in told["parts"])
        assignor.on_assignment(Assignment(partitions=partitions), told["gen"])
    sent = assignor.subscription_user_data(())
    cluster, members, encoded = leaders_view(assignor.name, one)
    wire = hashlib.sha256(encoded)
    result: dict[str, Any]
    try:
        plan = assignor.assign(cluster, members)
    except AssignorFailure as failure:
        result = {"!": failure.java_exception}
    else:
        result = {member_id: [list(p) for p in plan[member_id]] for member_id in plan}
        for member in members:
            wire.update(encode_assignment(Assignment(partitions=plan[member.member_id])))
    return {
        "result": result,
        "sent": None if sent is None else sent.hex(),
        "wire": wire.hexdigest()[:16],
    }


def leaders_view(
    kind: str, one: Mapping[str, Any]
) -> tuple[dict[str, tuple[PartitionInfo, ...]], list[GroupMember], bytes]:
    """The cluster, the members after their way over the wire, and all bytes on the wire."""
    cluster = {
        topic: tuple(PartitionInfo(racks=tuple(racks)) for racks in partitions)
        for topic, partitions in one["topics"].items()
    }
    members = []
    wire = b""
    for fields in one["members"]:
        data = _encoded(kind, fields)
        wire += data
        member = GroupMember(
            member_id=fields["id"],
            group_instance_id=fields.get("inst"),
            subscription=decode_subscription(data),
        )
        members.append(member)
    return cluster, members, wire


def _encoded(kind: str, fields: Mapping[str, Any]) -> bytes:
    subscription = Subscription(
        topics=tuple(fields["topics"]),
        user_data=_user_data(kind, fields),
        owned_partitions=tuple(TopicPartition(topic, n) for topic, n in fields["owned"]),
        generation_id=fields["gen"],
        rack_id=fields.get("rack"),
    )
    return encode_subscription(subscription, fields["ver"])


def _user_data(kind: str, fields: Mapping[str, Any]) -> bytes | None:
    if "raw" in fields:
        return bytes.fromhex(fields["raw"])
    user_data = fields.get("ud")
    if user_data is None:
        return None
    generation_id: int = user_data["gen"]
    if kind == "cooperative-sticky":
        return generation_id.to_bytes(4, "big", signed=True)
    return encode_user_data([TopicPartition(t, n) for t, n in user_data["parts"]], generation_id)


def write_cases(path: Path, cases: Iterable[Case]) -> None:
    """Write a ``.jsonl.gz`` file whose bytes depend on the cases alone."""
    text = "".join(json.dumps(case, separators=(",", ":")) + "\n" for case in cases)
    path.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))
