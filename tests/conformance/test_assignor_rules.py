"""Rules that all assignors share, and those of range and roundrobin (A-01 to A-20).

Expected lists are what Kafka 4.4.0's own classes return for the same input.
"""

from __future__ import annotations

import pytest

from groupsim.protocol.consumer_protocol import Subscription, TopicPartition
from groupsim.protocol.java import java_string_hash, spread
from groupsim_clients.assignors import (
    AssignorFailure,
    GroupMember,
    RebalanceProtocol,
    make_assignor,
    without_racks,
)
from groupsim_clients.assignors._group import rack_aware
from groupsim_clients.assignors._java_order import (
    JavaOrder,
    compute_if_absent_order,
    partition_hash,
    put_order,
    string_hash,
)
from tests.conformance.assignors import assigned, member, racks

COOP = "cooperative-sticky"


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "sticky", COOP])
def test_a_01_only_topics_with_partitions_that_somebody_wants(assignor: str) -> None:
    """A-01: a topic without metadata, without partitions or without subscriber plays no part."""
    topics = {"t": 1, "empty": 0, "other": 3}
    assert assigned(assignor, topics, [member("m", "t gone empty")]) == {"m": "t-0"}


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "sticky", COOP])
def test_a_02_ids_compare_by_utf16_units(assignor: str) -> None:
    """A-02: an id beyond the basic plane comes before one in the private use area."""
    private, beyond = "\ue000", "\U0001f600"
    result = assigned(assignor, {"t": 1}, [member(private, "t"), member(beyond, "t")])
    assert result == {private: "", beyond: "t-0"}


@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
def test_a_03_static_members_come_first(assignor: str) -> None:
    """A-03: by instance id, then dynamic members by member id."""
    members = [member("a", "t"), member("c", "t"), member("b", "t", inst="i2")]
    members.append(member("z", "t", inst="i1"))
    result = assigned(assignor, {"t": 4}, members)
    assert result == {"z": "t-0", "b": "t-1", "a": "t-2", "c": "t-3"}


@pytest.mark.parametrize("assignor", ["sticky", COOP])
def test_a_03_sticky_assignors_ignore_instance_ids(assignor: str) -> None:
    """A-03: sticky assignors order by member id only."""
    members = [member("b", "t", inst="i1"), member("a", "t"), member("c", "t", inst="i0")]
    assert assigned(assignor, {"t": 3}, members) == {"a": "t-0", "b": "t-1", "c": "t-2"}


@pytest.mark.parametrize("assignor", ["range", "sticky"])
def test_a_04_racks_of_all_replicas_count(assignor: str) -> None:
    """A-04: any replica's rack matches, a replica without rack adds none."""
    topics = {"t": racks("-b", "ca", "a-", "cb")}
    members = [member("m1", "t", rack="b"), member("m2", "t", rack="a")]
    assert assigned(assignor, topics, members) == {"m1": "t-0 t-3", "m2": "t-1 t-2"}


def test_a_04_an_empty_rack_is_no_rack() -> None:
    """A-04: with an empty client rack nothing is rack-aware."""
    topics = {"t": racks("a", "b")}
    members = [member("m1", "t", rack=""), member("m2", "t", rack="")]
    assert assigned("range", topics, members) == {"m1": "t-0", "m2": "t-1"}
    members = [member("m1", "t", rack="b"), member("m2", "t", rack="")]
    assert assigned("range", topics, members) == {"m1": "t-1", "m2": "t-0"}


@pytest.mark.parametrize(
    ("consumer_racks", "of_partitions", "aware"),
    [
        ("", ("a", "b"), False),
        ("z", ("a", "b"), False),
        ("a", ("a", "a"), False),
        ("ab", ("ab", "ba"), False),
        ("a", ("a", "b"), True),
        ("az", ("ab", "a"), True),
        ("a", ("a", ""), True),
        ("a", (), False),
    ],
)
def test_a_05_when_racks_matter(
    consumer_racks: str, of_partitions: tuple[str, ...], *, aware: bool
) -> None:
    """A-05: a consumer in a rack with replicas, and partitions that differ in their racks."""
    found = {TopicPartition("t", n): frozenset(word) for n, word in enumerate(of_partitions)}
    assert rack_aware(frozenset(consumer_racks), found) is aware


def test_a_05_range_asks_topic_by_topic_and_sticky_once() -> None:
    """A-05: for range only t1 needs racks; sticky looks at all partitions of all topics."""
    topics = {"t0": racks("a", "a"), "t1": racks("b", "a", "b")}
    members = [member("m1", "t0 t1", rack="b"), member("m2", "t0 t1", rack="a")]
    assert assigned("range", topics, members) == {
        "m1": "t0-0 t1-0 t1-2",
        "m2": "t0-1 t1-1",
    }
    assert assigned("sticky", topics, members) == {
        "m1": "t1-0 t1-2",
        "m2": "t0-0 t0-1 t1-1",
    }


class TestMapOrder:
    """A-06: how java.util.HashMap iterates."""

    def test_example(self) -> None:
        """A-06: consumer-1-aaaa, consumer-2-bbbb, consumer-3-cccc iterate as 2, 3, 1."""
        ids = ["consumer-1-aaaa", "consumer-2-bbbb", "consumer-3-cccc"]
        assert put_order(ids, string_hash) == [ids[1], ids[2], ids[0]]

    def test_ties_in_insertion_order(self) -> None:
        """A-06: keys of one bucket keep the order in which they came; removal forgets it."""
        twins = ["BB", "Aa"]
        assert string_hash("BB") == string_hash("Aa")
        assert put_order(twins, string_hash) == twins
        table = JavaOrder(string_hash)
        for key in (*twins, "BB"):
            table.put(key)
        assert (list(table), table.first()) == (twins, "BB")
        table.discard("BB")
        table.discard("absent")
        table.put("BB")
        assert (list(table), table.first(), len(table)) == (["Aa", "BB"], "Aa", 2)

    def test_growth(self) -> None:
        """A-06: a table doubles above three quarters, keeps that, and may start at another size."""
        keys = [f"m{number}" for number in range(13)]
        by_32 = sorted(keys, key=lambda key: string_hash(key) & 31)
        by_16 = sorted(keys[:12], key=lambda key: string_hash(key) & 15)
        assert put_order(keys, string_hash) == by_32
        assert put_order(keys[:12], string_hash) == by_16
        table = JavaOrder(string_hash)
        for key in keys:
            table.put(key)
        table.clear()
        for key in keys[:12]:
            table.put(key)
        assert list(table) == [key for key in by_32 if key in keys[:12]]
        by_4 = sorted(keys[:3], key=lambda key: string_hash(key) & 3)
        assert put_order(keys[:3], string_hash, initial_capacity=3) == by_4

    def test_a_crowded_bucket_doubles_a_small_table(self) -> None:
        """A-06, exception ii: the ninth key of a bucket doubles a table below 64."""
        crowd = [key for key in map(str, range(10_000)) if string_hash(key) & 15 == 5]
        crowd = crowd[:9]
        assert len({string_hash(key) & 31 for key in crowd}) > 1
        assert put_order(crowd[:8], string_hash) == crowd[:8]
        assert put_order(crowd, string_hash) == sorted(crowd, key=lambda k: string_hash(k) & 31)

    def test_compute_if_absent(self) -> None:
        """A-06, exception i: to the front of the bucket, growth is checked first, on every call."""
        assert compute_if_absent_order(["BB", "Aa"], string_hash) == ["Aa", "BB"]
        keys = [f"m{number}" for number in range(13)]
        newest_first = [f"m{number}" for number in reversed(range(13))]
        by_16 = sorted(newest_first, key=lambda key: string_hash(key) & 15)
        by_32 = sorted(newest_first, key=lambda key: string_hash(key) & 31)
        assert compute_if_absent_order(keys, string_hash) == by_16
        assert compute_if_absent_order([*keys, keys[0]], string_hash) == by_32
        crowd = [key for key in map(str, range(10_000)) if string_hash(key) & 15 == 5]
        by_32 = sorted(crowd[7::-1], key=lambda key: string_hash(key) & 31)
        assert compute_if_absent_order(crowd[:8], string_hash) == by_32 != crowd[7::-1]

    def test_hash_of_a_partition(self) -> None:
        """A-06: 31·(31+partition)+hash(topic), wrapped to 32 bits and spread."""
        assert partition_hash(TopicPartition("", 1)) == 31 * 32
        topic = "a-long-name-that-overflows"
        expected = spread((31 * (31 + 7) + java_string_hash(topic)) & 0xFFFFFFFF)
        assert partition_hash(TopicPartition(topic, 7)) == expected

    def test_small_topic_map_after_a_big_topic_set(self) -> None:
        """A-06, A-14: topics go through a set of all names and a map of the known ones."""
        low, high = "t9", "t30"  # buckets 5 and 16 of 32, so 5 and 0 of 16
        assert [string_hash(topic) & 31 for topic in (low, high)] == [5, 16]
        gone = " ".join(f"gone{number}" for number in range(12))
        result = assigned("range", {low: 1, high: 1}, [member("m", f"{low} {high} {gone}")])
        assert result == {"m": f"{high}-0 {low}-0"}


def test_a_10_extras_go_to_the_first() -> None:
    """A-10: ⌊n/c⌋ each, one more for the first n mod c."""
    members = [member(m, "t") for m in "abcd"]
    result = assigned("range", {"t": 7}, members)
    assert result == {"a": "t-0 t-1", "b": "t-2 t-3", "c": "t-4 t-5", "d": "t-6"}


def test_a_11_lowest_unassigned_until_none_is_left() -> None:
    """A-11: in member order; who comes after the last partition gets nothing."""
    members = [member(m, "t") for m in "cab"]
    assert assigned("range", {"t": 2}, members) == {"a": "t-0", "b": "t-1", "c": ""}


def test_a_12_a_member_without_rack_takes_any() -> None:
    """A-12: in the rack pass of one topic it takes the lowest, whatever their racks."""
    topics = {"t": racks("b", "a", "b", "a")}
    members = [member("m1", "t"), member("m2", "t", rack="b")]
    assert assigned("range", topics, members) == {"m1": "t-0 t-1", "m2": "t-2 t-3"}
    members = [member("m1", "t", rack="a"), member("m2", "t")]
    assert assigned("range", topics, members) == {"m1": "t-1 t-3", "m2": "t-0 t-2"}


def test_a_12_lists_are_sorted_when_racks_matter() -> None:
    """A-12: after both passes each list is sorted by topic and partition."""
    topics = {"t4": racks("b", "a"), "t0": racks("a", "b", "a")}
    members = [member("m1", "t0 t4", rack="b"), member("m2", "t0 t4", rack="a")]
    assert assigned("range", topics, members) == {"m1": "t0-1 t4-0", "m2": "t0-0 t0-2 t4-1"}


def test_a_12_groups_of_topics_need_not_need_racks() -> None:
    """A-12: t1 alone would not mind racks, but goes along with t2; t3 has another count."""
    topics = {"t1": racks("ab", "ab"), "t2": racks("b", "a"), "t3": racks("a")}
    members = [member("m1", "t1 t2 t3", rack="a"), member("m2", "t1 t2 t3", rack="b")]
    assert assigned("range", topics, members) == {"m1": "t1-1 t2-1 t3-0", "m2": "t1-0 t2-0"}


def test_a_13_co_partitioning_outranks_racks() -> None:
    """A-13: no partition number matches in both topics, so they stay together without racks."""
    topics = {"t1": racks("a", "b"), "t2": racks("b", "a")}
    members = [member("m1", "t1 t2", rack="b"), member("m2", "t1 t2", rack="a")]
    assert assigned("range", topics, members) == {"m1": "t1-0 t2-0", "m2": "t1-1 t2-1"}


def test_a_14_topics_stand_in_map_order_without_racks() -> None:
    """A-14: t4 is in an earlier bucket than t0."""
    result = assigned("range", {"t0": 2, "t4": 2}, [member("a", "t0 t4"), member("b", "t4 t0")])
    assert result == {"a": "t4-0 t0-0", "b": "t4-1 t0-1"}


def test_a_20_the_pointer_is_never_reset() -> None:
    """A-20: the next topic starts behind the member that got the last partition."""
    members = [member("a", "t0 t1"), member("b", "t0 t1"), member("c", "t1")]
    result = assigned("roundrobin", {"t0": 1, "t1": 3}, members)
    assert result == {"a": "t0-0 t1-2", "b": "t1-0", "c": "t1-1"}


@pytest.mark.parametrize("topics", [{"t": racks("a", "b")}, {"t": 2}])
def test_a_20_roundrobin_minds_no_racks(topics: dict[str, int]) -> None:
    """A-20: the same with and without racks."""
    members = [member("m1", "t", rack="b"), member("m2", "t", rack="a")]
    assert assigned("roundrobin", topics, members) == {"m1": "t-0", "m2": "t-1"}


@pytest.mark.parametrize(
    ("name", "exception"),
    [
        ("roundrobin", "IllegalArgumentException"),
        ("sticky", "ArithmeticException"),
        (COOP, "ArithmeticException"),
    ],
)
def test_a_group_without_members(name: str, exception: str) -> None:
    """A-01: Java's assignors fail on an empty group, each in its way; range returns nothing."""
    with pytest.raises(AssignorFailure, match=r"no members|without members") as caught:
        make_assignor(name).assign(without_racks({"t": 1}), [])
    assert caught.value.java_exception == exception
    assert make_assignor("range").assign(without_racks({"t": 1}), []) == {}


def test_protocols_and_user_data_of_the_eager_ones() -> None:
    """A-20: range and roundrobin are EAGER and send no user data."""
    for name in ("range", "roundrobin"):
        assignor = make_assignor(name)
        assert assignor.supported_protocols == (RebalanceProtocol.EAGER,)
        assert assignor.subscription_user_data(("t",)) is None
    both = make_assignor(COOP).supported_protocols
    assert both == (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)


def test_a_member_that_is_listed_twice() -> None:
    """A-06: the leader's map keeps the last entry of an id."""
    twice = [
        GroupMember(member_id="m", subscription=Subscription(topics=topics))
        for topics in (("t0",), ("t1",))
    ]
    plan = make_assignor("range").assign(without_racks({"t0": 1, "t1": 1}), twice)
    assert plan == {"m": (TopicPartition("t1", 0),)}
