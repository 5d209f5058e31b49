"""The consumer protocol: what members and leader put into JoinGroup and SyncGroup as opaque bytes.

Kafka's binary format, versions 0 to 3 (``ConsumerProtocol``, ``ConsumerProtocolSubscription``,
``ConsumerProtocolAssignment``; rules W-01 to W-05). Big-endian; no compact and no tagged fields::

    Subscription = version:int16 topics:[string] userData:bytes?
                   (1+) ownedPartitions:[topic:string partitions:[int32]]
                   (2+) generationId:int32   (3+) rackId:string?
    Assignment   = version:int16 assignedPartitions:[topic:string partitions:[int32]] userData:bytes?

New fields were only ever appended, so an older reader stops where its version ends (W-03).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from groupsim.protocol._base import message
from groupsim.protocol._buffer import Reader, SchemaError, Writer
from groupsim.protocol._text import java_sort_key

__all__ = [
    "HIGHEST_VERSION",
    "LOWEST_VERSION",
    "NO_GENERATION",
    "Assignment",
    "SchemaError",
    "Subscription",
    "TopicPartition",
    "decode_assignment",
    "decode_subscription",
    "encode_assignment",
    "encode_subscription",
    "read_version",
]

LOWEST_VERSION = 0
HIGHEST_VERSION = 3
NO_GENERATION = -1


class TopicPartition(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int


@message
class Subscription:
    """What a member tells the leader.

    ``topics`` are in the order of the wire. ``generation_id`` is −1 when the member has none or
    wrote a version below 2; ``rack_id`` is None when it has none or wrote a version below 3;
    ``owned_partitions`` is empty for version 0. ``user_data`` belongs to the assignor.
    """

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned_partitions: tuple[TopicPartition, ...] = ()
    generation_id: int = NO_GENERATION
    rack_id: str | None = None


@message
class Assignment:
    """What the leader tells a member: its partitions, in the leader's order."""

    partitions: tuple[TopicPartition, ...]
    user_data: bytes | None = None


def read_version(data: bytes) -> int:
    """The version with which ``data`` was written.

    Raises ``SchemaError``: fewer than two bytes (W-02; zero bytes are no encoding at all, W-04).
    """
    return Reader(data).int16()


def encode_subscription(subscription: Subscription, version: int = HIGHEST_VERSION) -> bytes:
    """Kafka's bytes for ``subscription``: topics sorted, owned partitions sorted and grouped (W-01).

    Fields newer than ``version`` are left out, silently as in Kafka; a version above 3 is written
    as 3.

    Raises ``SchemaError``: version below 0, or a value that does not fit.
    """
    version = _known_version(version)
    writer = Writer()
    writer.int16(version)
    topics = sorted(subscription.topics, key=java_sort_key)
    writer.int32(len(topics))
    for topic in topics:
        writer.string(topic)
    writer.nullable_bytes(subscription.user_data)
    if version >= 1:
        owned = sorted(subscription.owned_partitions, key=_topic_then_partition)
        _write_partitions(writer, owned)
    if version >= 2:
        writer.int32(max(subscription.generation_id, NO_GENERATION))
    if version >= 3:
        writer.nullable_string(subscription.rack_id)
    return writer.getvalue()


def decode_subscription(data: bytes) -> Subscription:
    """The subscription in ``data``, read as the version in front of it says (W-02).

    A version above 3 is read as 3 and what follows is ignored. An empty rack reads as none, a
    negative generation as none.

    Raises ``SchemaError``: version below 0, truncated or otherwise malformed.
    """
    reader = Reader(data)
    version = _known_version(reader.int16())
    topics = tuple(reader.string() for _ in range(reader.array_length()))
    user_data = reader.nullable_bytes()
    owned = _read_partitions(reader) if version >= 1 else ()
    generation_id = reader.int32() if version >= 2 else NO_GENERATION
    rack_id = reader.nullable_string() if version >= 3 else None
    return Subscription(
        topics=topics,
        user_data=user_data,
        owned_partitions=owned,
        generation_id=max(generation_id, NO_GENERATION),
        rack_id=rack_id or None,
    )


def encode_assignment(assignment: Assignment, version: int = HIGHEST_VERSION) -> bytes:
    """Kafka's bytes for ``assignment``: topics in order of first appearance (W-01).

    Raises ``SchemaError``: version below 0, or a value that does not fit.
    """
    version = _known_version(version)
    writer = Writer()
    writer.int16(version)
    _write_partitions(writer, assignment.partitions)
    writer.nullable_bytes(assignment.user_data)
    return writer.getvalue()


def decode_assignment(data: bytes) -> Assignment:
    """The assignment in ``data``; versions as in ``decode_subscription``.

    Raises ``SchemaError``: version below 0, truncated or otherwise malformed; also for zero bytes,
    which a broker sends to a member that the leader left out (W-04).
    """
    reader = Reader(data)
    _known_version(reader.int16())
    partitions = _read_partitions(reader)
    return Assignment(partitions=partitions, user_data=reader.nullable_bytes())


def _known_version(version: int) -> int:
    if version < LOWEST_VERSION:
        raise SchemaError(f"unsupported consumer protocol version: {version}")
    return min(version, HIGHEST_VERSION)


def _topic_then_partition(partition: TopicPartition) -> tuple[str, int]:
    return java_sort_key(partition.topic), partition.partition


def _write_partitions(writer: Writer, partitions: Iterable[TopicPartition]) -> None:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    writer.int32(len(by_topic))
    for topic, numbers in by_topic.items():
        writer.string(topic)
        writer.int32_array(numbers)


def _read_partitions(reader: Reader) -> tuple[TopicPartition, ...]:
    partitions: list[TopicPartition] = []
    for _ in range(reader.array_length()):
        topic = reader.string()
        partitions += [TopicPartition(topic, number) for number in reader.int32_array()]
    return tuple(partitions)
