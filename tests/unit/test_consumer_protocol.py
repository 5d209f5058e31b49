"""The consumer protocol's bytes."""

from __future__ import annotations

import pytest

from groupsim.protocol._text import java_sort_key
from groupsim.protocol.consumer_protocol import (
    HIGHEST_VERSION,
    Assignment,
    SchemaError,
    Subscription,
    TopicPartition,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
    read_version,
)

EXAMPLE = bytes.fromhex("0003 00000001 0005 7465737431 00000001 00000000 ffffffff")
FULL = Subscription(
    topics=("b", "a"),
    user_data=b"\x07",
    owned_partitions=(TopicPartition("b", 2), TopicPartition("a", 3), TopicPartition("b", 1)),
    generation_id=5,
    rack_id="r",
)
FULL_V3 = bytes.fromhex(
    "0003 00000002 0001 61 0001 62 00000001 07"
    "00000002 0001 61 00000001 00000003 0001 62 00000002 00000001 00000002"
    "00000005 0001 72"
)


def test_example_of_an_assignment() -> None:
    """W-05: test1-0 without user data, byte for byte."""
    assignment = Assignment(partitions=(TopicPartition("test1", 0),))
    assert encode_assignment(assignment) == EXAMPLE
    assert decode_assignment(EXAMPLE) == assignment


def test_subscription_is_written_sorted_and_grouped() -> None:
    """W-01: version 3 by default; topics and owned partitions sorted, the latter by topic."""
    assert encode_subscription(FULL) == FULL_V3
    assert read_version(FULL_V3) == HIGHEST_VERSION == 3
    decoded = decode_subscription(FULL_V3)
    assert decoded.topics == ("a", "b")
    assert decoded.owned_partitions == (("a", 3), ("b", 1), ("b", 2))
    assert (decoded.user_data, decoded.generation_id, decoded.rack_id) == (b"\x07", 5, "r")


def test_assignment_keeps_the_order_of_first_appearance() -> None:
    """W-01: topics of an assignment in order of first appearance, partitions in list order."""
    partitions = tuple(TopicPartition(t, n) for t, n in (("b", 4), ("a", 1), ("b", 0)))
    data = encode_assignment(Assignment(partitions=partitions, user_data=b""))
    assert data == bytes.fromhex(
        "0003 00000002 0001 62 00000002 00000004 00000000 0001 61 00000001 00000001 00000000"
    )
    assert decode_assignment(data) == Assignment(
        partitions=(TopicPartition("b", 4), TopicPartition("b", 0), TopicPartition("a", 1)),
        user_data=b"",
    )


@pytest.mark.parametrize(
    ("version", "owned", "generation_id", "rack_id"),
    [(0, 0, -1, None), (1, 3, -1, None), (2, 3, 5, None), (3, 3, 5, "r"), (9, 3, 5, "r")],
)
def test_older_versions_lose_the_newer_fields(
    version: int, owned: int, generation_id: int, rack_id: str | None
) -> None:
    """W-03: fields are appended only; what is newer than the version is not on the wire."""
    data = encode_subscription(FULL, version)
    assert read_version(data) == min(version, 3)
    assert FULL_V3[2:].startswith(data[2:])
    decoded = decode_subscription(data)
    assert len(decoded.owned_partitions) == owned
    assert (decoded.generation_id, decoded.rack_id) == (generation_id, rack_id)


def test_an_older_reader_stops_where_its_version_ends() -> None:
    """W-03: with version 0 in front, everything after the user data is ignored."""
    decoded = decode_subscription(b"\x00\x00" + FULL_V3[2:])
    assert decoded == Subscription(topics=("a", "b"), user_data=b"\x07")


def test_newer_versions_read_as_three() -> None:
    """W-02: a version above 3 reads as 3, trailing bytes are ignored."""
    assert decode_subscription(b"\x00\x09" + FULL_V3[2:] + b"new") == decode_subscription(FULL_V3)
    data = encode_assignment(Assignment(partitions=(TopicPartition("t", 1),)))
    assert decode_assignment(b"\x7f\xff" + data[2:] + b"new") == decode_assignment(data)


def test_empty_rack_and_negative_generation_read_as_none() -> None:
    """W-02: an empty rack is no rack, a negative generation no generation."""
    data = FULL_V3[:-7] + bytes.fromhex("fffffff0 0000")
    decoded = decode_subscription(data)
    assert (decoded.generation_id, decoded.rack_id) == (-1, None)
    assert encode_subscription(decoded)[-6:] == bytes.fromhex("ffffffff ffff")


@pytest.mark.parametrize("length", range(len(FULL_V3)))
def test_truncated_subscription(length: int) -> None:
    """W-02: whatever is cut off, it is a schema error and nothing else."""
    with pytest.raises(SchemaError):
        decode_subscription(FULL_V3[:length])


@pytest.mark.parametrize("length", range(len(EXAMPLE)))
def test_truncated_assignment(length: int) -> None:
    """W-02, W-04: also zero bytes, which a broker sends to a member that got nothing."""
    with pytest.raises(SchemaError):
        decode_assignment(EXAMPLE[:length])


@pytest.mark.parametrize("version", [-1, -32768])
def test_versions_below_zero(version: int) -> None:
    """W-02: a version below 0 is a schema error, for readers and writers."""
    data = version.to_bytes(2, "big", signed=True) + FULL_V3[2:]
    assert read_version(data) == version
    for call in (
        lambda: decode_subscription(data),
        lambda: decode_assignment(data),
        lambda: encode_subscription(FULL, version),
        lambda: encode_assignment(Assignment(partitions=()), version),
    ):
        with pytest.raises(SchemaError, match="version") as caught:
            call()
        assert caught.value.java_exception == "SchemaException"


@pytest.mark.parametrize(
    ("data", "java_exception"),
    [
        ("0003 ffffffff", "RuntimeException"),  # null for an array
        ("0003 00000001 ffff", "RuntimeException"),  # more elements than could follow
        ("0003 00000001 ffff 0000", "RuntimeException"),  # null for a string
        ("0003 00000001 0005 6161", "RuntimeException"),  # string cut off
        ("0003 00000000 00000005 61", "IllegalArgumentException"),  # bytes cut off
        ("0003 00000000 0000", "SchemaException"),  # number cut off
        ("0003 00000000 ffffffff 00000001 0001 61 00000002 00000000", "SchemaException"),
    ],
)
def test_malformed_input_names_javas_exception(data: str, java_exception: str) -> None:
    """W-02: what Java's reader throws, which is not always a SchemaException."""
    with pytest.raises(SchemaError) as caught:
        decode_subscription(bytes.fromhex(data))
    assert caught.value.java_exception == java_exception


@pytest.mark.parametrize(
    "subscription",
    [
        Subscription(topics=("t" * 32_768,)),
        Subscription(topics=(), generation_id=2**31),
        Subscription(topics=(), owned_partitions=(TopicPartition("t", 2**31),)),
    ],
    ids=["long topic", "generation", "partition"],
)
def test_values_that_do_not_fit(subscription: Subscription) -> None:
    """Values beyond their field's width are refused, not wrapped."""
    with pytest.raises(SchemaError):
        encode_subscription(subscription)


def test_strings_compare_by_utf16_units() -> None:
    """A-02, W-01: beyond the basic plane Java's order is not Python's."""
    private, beyond = "\ue000", "\U0001f600"
    assert private < beyond
    assert java_sort_key(beyond) < java_sort_key(private)
    topics = decode_subscription(encode_subscription(Subscription(topics=(private, beyond)))).topics
    assert topics == (beyond, private)


def test_against_kio() -> None:
    """W-01: an independent implementation of Kafka's schemas reads our bytes and writes the same."""
    from io import BytesIO

    from kio.schema.consumer_protocol_assignment.v3 import data as assignment_schema
    from kio.schema.consumer_protocol_subscription.v3 import data as subscription_schema
    from kio.serial import entity_reader, entity_writer

    for schema, name, ours in (
        (subscription_schema, "ConsumerProtocolSubscription", FULL_V3),
        (
            assignment_schema,
            "ConsumerProtocolAssignment",
            encode_assignment(Assignment(partitions=FULL.owned_partitions, user_data=b"x")),
        ),
    ):
        entity = getattr(schema, name)
        value, size = entity_reader(entity)(ours[2:], 0)
        assert size == len(ours) - 2
        written = BytesIO()
        entity_writer(entity)(written, value)
        assert written.getvalue() == ours[2:]
