"""The protocol ring: messages, error codes, effects, Java's map order."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import ClassVar

import pytest

from groupsim.protocol import messages
from groupsim.protocol.effects import NOTE_KINDS, Note, note
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.java import JavaHashMap, java_string_hash, spread
from groupsim.protocol.messages import API_OF_REQUEST, APIS, ApiKey, HeartbeatRequest

HASH_MAPS = json.loads(Path(__file__).with_name("data").joinpath("java_hashmap.json").read_text())


def test_messages_are_immutable_values() -> None:
    """Messages compare by content, hash, and refuse assignment."""
    one = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    assert one == HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    assert hash(one) == hash(dataclasses.replace(one))
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.generation_id = 2  # type: ignore[misc]
    assert not hasattr(one, "__dict__")


def test_every_message_is_keyword_only_and_frozen() -> None:
    """House rule: all message classes are frozen, slotted and keyword-only."""
    classes = [c for c in vars(messages).values() if dataclasses.is_dataclass(c)]
    assert len(classes) > 50
    for cls in classes:
        assert cls.__dataclass_params__.frozen, cls
        assert all(field.kw_only for field in dataclasses.fields(cls)), cls


@pytest.mark.parametrize(
    ("key", "versions"),
    [
        (ApiKey.JOIN_GROUP, (0, 9)),
        (ApiKey.SYNC_GROUP, (0, 5)),
        (ApiKey.HEARTBEAT, (0, 4)),
        (ApiKey.LEAVE_GROUP, (0, 5)),
        (ApiKey.OFFSET_COMMIT, (2, 10)),
        (ApiKey.OFFSET_FETCH, (1, 10)),
        (ApiKey.FIND_COORDINATOR, (0, 6)),
    ],
)
def test_api_versions(key: ApiKey, versions: tuple[int, int]) -> None:
    """The version ranges are those of Apache Kafka 4.4."""
    api = APIS[key]
    assert (api.min_version, api.max_version) == versions
    assert API_OF_REQUEST[api.request] is api


@pytest.mark.parametrize(
    ("number", "name", "retriable"),
    [
        (-1, "UNKNOWN_SERVER_ERROR", False),
        (14, "COORDINATOR_LOAD_IN_PROGRESS", True),
        (15, "COORDINATOR_NOT_AVAILABLE", True),
        (16, "NOT_COORDINATOR", True),
        (22, "ILLEGAL_GENERATION", False),
        (25, "UNKNOWN_MEMBER_ID", False),
        (27, "REBALANCE_IN_PROGRESS", False),
        (79, "MEMBER_ID_REQUIRED", False),
        (82, "FENCED_INSTANCE_ID", False),
        (88, "UNSTABLE_OFFSET_COMMIT", True),
    ],
)
def test_error_codes(number: int, name: str, retriable: bool) -> None:
    """Numbers, names and retriability are Kafka's; each code but NONE has a message and a class."""
    code = ErrorCode(number)
    assert (code.name, code.retriable) == (name, retriable)
    assert code.message
    assert code.exception.endswith("Exception")


def test_error_codes_are_gapless() -> None:
    """Kafka numbers its errors from −1 without gaps; 4.4 has 138 of them."""
    assert [int(code) for code in ErrorCode] == list(range(-1, 137))


@pytest.mark.parametrize("case", HASH_MAPS, ids=range(len(HASH_MAPS)))
def test_java_hash_map_order(case: dict[str, str]) -> None:
    """A-06: insertions, removals and growth iterate as java.util.HashMap did on a JVM."""
    table: JavaHashMap[int] = JavaHashMap()
    for number, operation in enumerate(case["operations"].split(" ")):
        if operation.startswith("+"):
            table[operation[1:]] = number
        else:
            table.discard(operation[1:])
    expected = case["order"].split(" ")
    assert list(table) == table.keys() == [key for key, _ in table.items()] == expected
    assert table.first() == expected[0]
    assert table.values() == [table[key] for key in expected]


def test_java_string_hash() -> None:
    """String.hashCode works on UTF-16 units and wraps at 32 bits."""
    assert java_string_hash("") == 0
    assert java_string_hash("checkout") == 1536904518
    assert java_string_hash("\U0001f600") == 1772899
    assert spread(-1) == 0xFFFF0000


def test_java_hash_map_refuses_what_it_does_not_follow() -> None:
    """Methods of dict that would bypass the emulated order are refused."""
    table: JavaHashMap[int] = JavaHashMap()
    with pytest.raises(TypeError, match="JavaHashMap"):
        table.update({"a": 1})


def test_note_kinds_are_unique() -> None:
    """A note class needs a kind of its own: the trace's schema is keyed by it."""
    for kind, cls in NOTE_KINDS.items():
        assert cls.kind == kind
    with pytest.raises(ValueError, match="missing or taken"):

        @note
        class Nameless(Note):
            kind: ClassVar[str] = ""
