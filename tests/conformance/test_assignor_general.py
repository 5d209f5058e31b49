"""The algorithm for unequal subscriptions (A-60 to A-71), and the anomalies of the real assignors.

Expected lists are what Kafka 4.4.0's own classes return for the same input.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from groupsim.protocol.consumer_protocol import Assignment, Subscription, TopicPartition
from groupsim_clients.assignors import (
    AnomalyError,
    AssignorFailure,
    AssignorLivelock,
    GroupMember,
    StrictAssignor,
    make_assignor,
    without_racks,
)
from groupsim_clients.assignors._board import Board
from groupsim_clients.assignors._general import GeneralBuilder, balance_score
from groupsim_clients.assignors._java_order import JavaOrder, partition_hash, string_hash
from groupsim_clients.assignors._load import LoadOrder
from groupsim_clients.assignors._movements import Movements
from groupsim_clients.assignors._ownership import Claim, Ownership, collect_ownership
from groupsim_clients.assignors._reassign import Reassignment
from groupsim_clients.assignors._sticky_racks import StickyRacks
from tests.conformance.assignors import (
    assigned,
    group,
    member,
    partitions,
    racks,
    sticky_claim,
)
from tests.vectors.cases import leaders_view

COOP = "cooperative-sticky"


def board(topics: Mapping[str, int], members: Mapping[str, tuple[str, str]]) -> Board:
    """A board of members that subscribe to topics and hold partitions: id → (topics, held)."""
    cluster = without_racks(topics)
    group = [
        GroupMember(
            member_id=member_id,
            subscription=Subscription(
                topics=tuple(subscribed.split()),
                owned_partitions=tuple(TopicPartition(t, n) for t, n in partitions(held)),
            ),
        )
        for member_id, (subscribed, held) in members.items()
    ]
    ownership = collect_ownership(group, cluster, lambda s: Claim(s.owned_partitions, 0), 0)
    made = Board(cluster, group, ownership)
    for number in range(len(made.ids)):
        made.load.add(number, len(made.held(number)))
    return made


class TestBoard:
    """Orders T and L."""

    def test_a_60_order_t(self) -> None:
        """A-60: topics with fewest potential members first, then by name, then numbers."""
        made = board({"s": 1, "t": 2, "u": 1}, {"a": ("s t u", ""), "b": ("s t", "")})
        assert made.partitions == [
            TopicPartition(topic, number) for topic, number in partitions("u-0 s-0 t-0 t-1")
        ]
        assert [made.shared(topic) for topic in "stu"] == [True, True, False]

    def test_a_60_order_l(self) -> None:
        """A-60: by current number of partitions, then id; re-evaluated after every change."""
        load = LoadOrder(3)
        for number, size in enumerate((2, 1, 1)):
            load.add(number, size)
        assert list(load) == [1, 2, 0]
        load.change(1, +2)
        assert (list(load), load.least, load.greatest) == ([2, 0, 1], 1, 3)
        assert list(load.below(3)) == [2, 0]
        load.remove(2)
        assert (list(load), load.loads[0]) == ([0, 1], 2)

    def test_a_65_limits(self) -> None:
        """A-65: what a member can get at most, as Java counts it: per entry of its list."""
        made = board({"s": 1, "t": 2}, {"a": ("t", ""), "b": ("t t", ""), "c": ("t t t", "")})
        assert made.limits == [2, 3, 6]  # as many entries as topics counts as all topics


def test_a_61_previous_owner_of_an_older_generation() -> None:
    """A-61, A-67: m2 had t0-2 and t0-3 in generation 4; they come back in the order of its claim."""
    members = [
        member("m1", "t0 t1", gen=5, ud=sticky_claim(5, "t0-0 t0-1 t1-0")),
        member("m2", "t0", gen=4, ud=sticky_claim(4, "t0-2 t0-3")),
        member("m3", "t1", gen=5, ud=sticky_claim(5, "")),
    ]
    assert assigned("sticky", {"t0": 4, "t1": 3}, members) == {
        "m1": "t0-0 t0-1 t1-0",
        "m2": "t0-2 t0-3",
        "m3": "t1-1 t1-2",
    }


def test_a_61_the_higher_generation_and_the_first_of_equals() -> None:
    """A-61: of several old claims the highest generation counts, of equal ones the first."""
    cluster = without_racks({"t": 2, "u": 1})
    claims = {"a": (2, "t-0 t-1"), "b": (3, "t-0"), "c": (2, "t-1"), "d": (9, "u-0")}
    group = [GroupMember(member_id=m, subscription=Subscription(topics=("t",))) for m in claims]
    ownership = Ownership(owned={m: [] for m in claims}, max_generation=9)
    for member_id, (generation_id, claimed) in claims.items():
        pairs = [TopicPartition(t, n) for t, n in partitions(claimed)]
        ownership.claims[member_id] = Claim(pairs, generation_id)
    builder = GeneralBuilder(cluster, group, StickyRacks([], {}), ownership)
    assert builder._previous_owners() == {TopicPartition("t", 0): 1, TopicPartition("t", 1): 0}


def test_a_62_unsubscribed_and_mismatching_partitions_are_dropped() -> None:
    """A-62: m1 no longer subscribes to t1, and is not in the rack of t0-1."""
    topics = {"t0": racks("a", "b", "a"), "t1": racks("a")}
    members = [
        member("m1", "t0", owned="t0-0 t0-1 t1-0", gen=1, rack="a"),
        member("m2", "t0 t1", owned="t0-2", gen=1, rack="b"),
    ]
    assert assigned("sticky", topics, _as_user_data(members)) == {
        "m1": "t0-0 t0-2",
        "m2": "t0-1 t1-0",
    }
    assert assigned(COOP, topics, members) == {"m1": "t0-0", "m2": ""}


def test_a_63_a_64_least_loaded_subscriber_in_order_t() -> None:
    """A-63, A-64: what is not kept goes, in order T, to the first in L that subscribes."""
    members = [
        member("a", "t0 t1", owned="t0-0", gen=1),
        member("b", "t1", gen=1),
        member("c", "t0 t1", gen=1),
    ]
    assert assigned(COOP, {"t0": 3, "t1": 3}, members) == {
        "a": "t0-0 t0-2",
        "b": "t1-0 t1-1",
        "c": "t0-1 t1-2",
    }


def test_a_64_racks_first_and_members_without_rack_qualify() -> None:
    """A-64: t0-0 goes past b, which is in another rack, to c, which has none."""
    topics = {"t0": racks("a", "b"), "t1": racks("a")}
    members = [
        member("a", "t1", rack="a"),
        member("b", "t0", rack="b"),
        member("c", "t0 t1"),
    ]
    assert assigned("sticky", topics, members) == {"a": "t1-0", "b": "t0-1", "c": "t0-0"}
    members[2] = member("c", "t0 t1", rack="b")
    assert assigned("sticky", topics, members) == {"a": "t1-0", "b": "t0-1", "c": "t0-0"}


def test_a_65_what_cannot_move_stays() -> None:
    """A-65: a has all of u, which nobody shares; b and c even out t."""
    members = [
        member("a", "u", owned="u-0 u-1 u-2", gen=1),
        member("b", "t", owned="t-0 t-1 t-2 t-3", gen=1),
        member("c", "t", gen=1),
    ]
    topics = {"t": 4, "u": 3}
    assert assigned("sticky", topics, _as_user_data(members)) == {
        "a": "u-0 u-1 u-2",
        "b": "t-2 t-3",
        "c": "t-0 t-1",
    }


def test_a_65_members_come_back_in_javas_order() -> None:
    """A-65, A-06: those taken out go through a map made for the number of members, then another."""
    ids = [key for key in map(str, range(10_000)) if string_hash(key) & 15 == 5]
    late = next(key for key in ids if string_hash(key) & 31 == 21)
    early = next(key for key in reversed(ids) if string_hash(key) & 31 == 5)
    others = [f"m{number}" for number in range(15)]
    group_of_17 = [
        GroupMember(member_id=m, subscription=Subscription(topics=("t",) if m in others else ()))
        for m in (*others, late, early)
    ]
    ownership = Ownership(owned={m.member_id: [] for m in group_of_17})
    cluster = without_racks({"t": 1})
    builder = GeneralBuilder(cluster, group_of_17, StickyRacks([], {}), ownership)
    for number in range(17):
        builder._board.load.add(number, 0)
    taken_out = [builder._board.ids[number] for number, _ in builder._take_out_members()]
    assert taken_out == [early, late]  # 17 members: 32 buckets, in which they are apart


class _Scripted(Reassignment):
    """A rebalancing that does what the test says and counts its runs."""

    def __init__(self, made: Board, moves: list[tuple[str, str]], *, reports: bool) -> None:
        super().__init__(made, StickyRacks([], {}), {})
        self.runs: list[list[TopicPartition]] = []
        self._moves = moves
        self._reports = reports

    def run(self, partitions: list[TopicPartition]) -> bool:
        """Move what was asked for in the first run."""
        self.runs.append(partitions)
        for name, target in self._moves:
            ((topic, number),) = partitions_of(name)
            self._move(TopicPartition(topic, number), self._board.number[target])
        self._moves = []
        return self._reports


def partitions_of(name: str) -> list[tuple[str, int]]:
    """One partition, as a list of pairs."""
    return [(topic, number) for topic, number in partitions(name)]


class TestRestore:
    """A-66 is not reached by any random group; so the rebalancing is played by the test."""

    @staticmethod
    def built(held: Mapping[str, tuple[str, str]]) -> GeneralBuilder:
        """A builder whose members hold what they are said to."""
        cluster = without_racks({"t": 4, "u": 1})
        group = [
            GroupMember(member_id=m, subscription=Subscription(topics=tuple(topics.split())))
            for m, (topics, _) in held.items()
        ]
        ownership = Ownership()
        for member_id, (_, claimed) in held.items():
            pairs = [TopicPartition(t, n) for t, n in partitions(claimed)]
            ownership.owned[member_id] = pairs
            ownership.claims[member_id] = Claim(pairs, 0)
        return GeneralBuilder(cluster, group, StickyRacks([], {}), ownership)

    def play(
        self, builder: GeneralBuilder, moves: list[tuple[str, str]], *, reports: bool = True
    ) -> tuple[dict[str, str], list[list[TopicPartition]]]:
        """The result, and the partitions of each run."""
        made = builder._board
        script = _Scripted(made, moves, reports=reports)
        kept = builder._keep_owned()
        for number in range(len(made.ids)):
            made.load.add(number, len(made.held(number)))
        unassigned = [p for p in made.partitions if p not in kept]
        builder._balance(unassigned, script)
        plan = {made.ids[n]: " ".join(f"{t}-{i}" for t, i in held) for n, held in made.in_play()}
        return plan, script.runs

    def test_a_66_no_better_balance_is_undone(self) -> None:
        """A-66: three and one is no better than two and two: back to that, fixed members too."""
        held = {"a": ("t", "t-0 t-1"), "b": ("t", "t-2 t-3"), "c": ("u", "u-0")}
        plan, _ = self.play(self.built(held), [("t-2", "a")])
        assert plan == {"a": "t-0 t-1", "b": "t-2 t-3", "c": "u-0"}

    def test_a_66_nothing_is_undone_unless_the_second_run_moved(self) -> None:
        """A-66: the same, but the run reports that nothing moved."""
        held = {"a": ("t", "t-0 t-1"), "b": ("t", "t-2 t-3"), "c": ("u", "u-0")}
        plan, _ = self.play(self.built(held), [("t-2", "a")], reports=False)
        assert plan == {"a": "t-0 t-1 t-2", "b": "t-3", "c": "u-0"}

    def test_a_66_a_new_group_is_never_restored(self) -> None:
        """A-66: nobody had anything, so there is nothing to go back to."""
        held = {"a": ("t", ""), "b": ("t", ""), "c": ("u", "")}
        plan, runs = self.play(self.built(held), [("t-1", "a")])
        assert plan == {"a": "t-0 t-2 t-1", "b": "t-3", "c": "u-0"}
        assert [len(run) for run in runs] == [4, 4]

    def test_a_66_the_first_run_sees_new_partitions_only(self) -> None:
        """A-66: first over what was unassigned, then over all that can move."""
        held = {"a": ("t", "t-0 t-1"), "b": ("t", "t-2"), "c": ("u", "")}
        _, runs = self.play(self.built(held), [])
        assert runs[0] == [TopicPartition("t", 3)]
        assert runs[1] == [TopicPartition("t", number) for number in range(4)]

    def test_a_66_no_first_run_when_something_was_revoked(self) -> None:
        """A-66: c no longer subscribes to what it had."""
        held = {"a": ("t", "t-0 t-1"), "b": ("t", "t-2"), "c": ("u", "t-3")}
        _, runs = self.play(self.built(held), [])
        assert len(runs) == 1

    def test_a_66_score(self) -> None:
        """A-66: sum of the differences of all pairs, in 32 bits."""
        assert balance_score([]) == 0
        assert balance_score([2, 2, 2]) == 0
        assert balance_score([5, 0, 1]) == 5 + 4 + 1
        assert balance_score([2**31, 0]) == -(2**31)


class TestReassignment:
    """A-67 and A-68."""

    def test_a_67_until_a_pass_moves_nothing(self) -> None:
        """A-67: from the heaviest to the lightest; balanced when nobody can take from a heavier."""
        made = board(
            {"t": 5, "u": 1}, {"a": ("t", _row("t", 5)), "b": ("t u", ""), "c": ("u", "u-0")}
        )
        moved = Reassignment(made, StickyRacks([], {}), {}).run(made.partitions)
        assert moved
        assert [len(held) for _, held in made.in_play()] == [3, 2, 1]
        assert not Reassignment(made, StickyRacks([], {}), {}).run(made.partitions)

    def test_a_67_the_previous_owner_is_not_asked_whether_it_subscribes(self) -> None:
        """A-67: c had t-0 in an older generation; it does not subscribe to t now (X2)."""
        made = board(
            {"t": 5, "u": 1}, {"a": ("t", _row("t", 5)), "b": ("t u", ""), "c": ("u", "u-0")}
        )
        previous = {TopicPartition("t", 0): made.number["c"]}
        Reassignment(made, StickyRacks([], {}), previous).run(made.partitions)
        assert made.held(made.number["c"]) == [TopicPartition("u", 0), TopicPartition("t", 0)]

    @pytest.mark.parametrize(
        ("topics", "held", "balanced"),
        [
            ("t3", {"a": ("t", "t-0 t-1"), "b": ("t", "t-2")}, True),
            ("t3", {"a": ("t", "t-0 t-1 t-2"), "b": ("t", "")}, False),
            ("t3 u1", {"a": ("t", "t-0 t-1 t-2"), "b": ("u", "u-0")}, True),
            ("t3 u1", {"a": ("t", "t-0 t-1 t-2"), "b": ("u", ""), "c": ("t u", "u-0")}, False),
            # b has as many as it could get at most, though not of what it subscribes to (X2)
            ("t2 u5", {"a": ("t u", "t-0 t-1 u-2 u-3 u-4"), "b": ("t", "u-0 u-1")}, True),
        ],
    )
    def test_a_68_balanced(
        self, topics: str, held: dict[str, tuple[str, str]], *, balanced: bool
    ) -> None:
        """A-68: the fast answer is the one that looking at everything as Java does gives."""
        made = board({name[0]: int(name[1:]) for name in topics.split()}, held)
        reassignment = Reassignment(made, StickyRacks([], {}), {})
        assert reassignment._is_balanced() is balanced
        if made.load.least < made.load.greatest - 1:
            assert reassignment._consistent
            assert reassignment._is_balanced_in_javas_order() is balanced


def test_a_68_a_member_that_has_become_full_is_no_witness() -> None:
    """A-68: b shows the imbalance until it has as many partitions as it could get at most."""
    made = board(
        {"t": 3, "u": 6, "v": 1},
        {"a": ("t u v", _row("u", 6)), "b": ("t", "t-0 t-1 t-2"), "c": ("v", "v-0")},
    )
    reassignment = Reassignment(made, StickyRacks([], {}), {})
    reassignment._witness = made.number["b"], TopicPartition("u", 0)
    assert not reassignment._witness_holds()
    made.limits[made.number["b"]] = 4
    assert reassignment._witness_holds()


class TestMovements:
    """A-69."""

    A, B, C = 0, 1, 2
    P, Q, R = (TopicPartition("t", number) for number in (2, 1, 0))

    def test_a_69_one_that_went_the_other_way(self) -> None:
        """A-69: instead of p from b to a, the partition of the topic that moved a to b."""
        moved = Movements()
        assert moved.actual_partition(self.P, self.B, self.A) == self.P
        moved.record(self.Q, self.A, self.B)
        assert moved.actual_partition(self.P, self.B, self.A) == self.Q
        assert moved.actual_partition(self.P, self.A, self.B) == self.P
        other_topic = TopicPartition("u", 1)
        assert moved.actual_partition(other_topic, self.B, self.A) == other_topic

    def test_a_69_the_original_source_counts(self) -> None:
        """A-69: p came from b to c; moving it to a looks for a movement from a to b."""
        moved = Movements()
        moved.record(self.P, self.B, self.C)
        moved.record(self.Q, self.A, self.B)
        assert moved.actual_partition(self.P, self.C, self.A) == self.Q

    def test_a_69_the_first_in_hash_set_order(self) -> None:
        """A-69: of several that went the other way, the first as Java's HashSet iterates."""
        moved = Movements()
        several = [TopicPartition("t", number) for number in (9, 5, 7)]
        for partition in several:
            moved.record(partition, self.A, self.B)
        table: JavaOrder[TopicPartition] = JavaOrder(partition_hash)
        for partition in several:
            table.put(partition)
        assert next(iter(table)) != several[0]
        assert moved.actual_partition(self.P, self.B, self.A) == next(iter(table))

    def test_a_69_movements_are_net(self) -> None:
        """A-69: a→b→c is a→c, and coming back to a is no movement."""
        moved = Movements()
        moved.record(self.Q, self.A, self.B)
        moved.record(self.Q, self.B, self.C)
        assert moved.actual_partition(self.P, self.B, self.A) == self.P
        assert moved.actual_partition(self.P, self.C, self.A) == self.Q
        moved.record(self.Q, self.C, self.A)
        assert moved.state() == Movements().state()


def test_a_70_double_assignment() -> None:
    """A-70, X3: a keeps t0-1, which does not exist, and gets t1-0 a second time."""
    members = [member("a", "t0 t1", owned="t0-1 t1-0"), member("b", "")]
    assert assigned(COOP, {"t0": 1, "t1": 1}, members) == {"a": "t0-1 t1-0 t0-0 t1-0", "b": ""}


def test_a_71_added_here_and_revoked_there() -> None:
    """A-71: b gets t-0 next round; u-0, which nobody has to give up, at once."""
    members = [member("a", "t", owned="t-0 t-1", gen=1), member("b", "t u", gen=1)]
    assert assigned(COOP, {"t": 3, "u": 1}, members) == {"a": "t-0 t-1", "b": "u-0 t-2"}
    members[0]["owned"] += [["t", 2]]
    assert assigned(COOP, {"t": 3, "u": 1}, members) == {"a": "t-1 t-2", "b": "u-0"}


Example = tuple[str, dict[str, Any], list[dict[str, Any]]]

X1: Example = ("sticky", {"t0": 1}, [member("a", ""), member("b", "t0")])
X2: Example = (
    COOP,
    {"t0": 2, "t1": 1},
    [
        member("a", "t0 t1", owned="t0-0 t1-0", gen=2),
        member("b", "t0", gen=1),
        member("c", "t1", owned="t0-0", gen=1),
    ],
)
X3: Example = (
    COOP,
    {"t0": 1, "t1": 1},
    [member("a", "t0 t1", owned="t0-1 t1-0"), member("b", "")],
)
X3_FAILS: Example = (COOP, {"t0": 1}, [member("b", "t0", owned="t0-1")])
X4: Example = (
    COOP,
    {"t0": 2},
    [
        member("a", "t0", gen=1),
        member("b", "", owned="t0-0", gen=1),
        member("c", "t0", owned="t0-0 t0-1", gen=2),
    ],
)
X5: Example = (
    COOP,
    {"t0": racks("-", "b", "-", "-", "-", "b", "b"), "t1": 9, "t2": 5},
    [
        member("a", "t1 t2"),
        member("b", "t1"),
        member("c", "t0"),
        member("d", "t0", rack="b"),
        member("e", "t0 t1", rack="z"),
    ],
)


@pytest.mark.parametrize(
    ("anomaly", "expected"),
    [
        (X1, {"a": "t0-0", "b": ""}),
        (X2, {"a": "t1-0", "b": "t0-1", "c": "t0-0"}),
        (X3, {"a": "t0-1 t1-0 t0-0 t1-0", "b": ""}),
        (X3_FAILS, {"!": "IllegalStateException"}),
        (X4, {"!": "NullPointerException"}),
        (X5, {"!": "(never returns)"}),
    ],
    ids=["X1", "X2", "X3", "X3 fails", "X4", "X5"],
)
def test_anomalies_are_imitated(anomaly: Example, expected: dict[str, str]) -> None:
    """X1, X2, X3, X4, and X5, which the random groups found: what Kafka's classes do."""
    assert assigned(*anomaly) == expected


@pytest.mark.parametrize(
    ("anomaly", "found"),
    [
        (X1, [("X1", "a", "t0-0")]),
        (X2, [("X2", "c", "t0-0")]),
        (X3, [("X3", "a", "t0-1"), ("X3", "a", "t1-0")]),
        (X3_FAILS, [("X3", None, None)]),
        (X4, [("X4", None, None)]),
        (X5, [("X5", None, None)]),
    ],
    ids=["X1", "X2", "X3", "X3 fails", "X4", "X5"],
)
def test_strict_mode_reports_anomalies(
    anomaly: Example, found: list[tuple[str, str | None, str | None]]
) -> None:
    """X1, X2, X3, X4, X5: the strict mode raises what it found, with the plan if there is one."""
    name, topics, members = anomaly
    strict = StrictAssignor(make_assignor(name))
    cluster, view, _ = leaders_view(name, group(topics, members))
    with pytest.raises(AnomalyError) as caught:
        strict.assign(cluster, view)
    error = caught.value
    assert [
        (one.rule, one.member_id, one.partition and "-".join(map(str, one.partition)))
        for one in error.anomalies
    ] == found
    assert (error.plan is None) == (found[0][1] is None)
    assert found[0][0] in str(error)


def test_strict_mode_is_silent_otherwise() -> None:
    """X1–X5: a sound plan passes through, as do user data and what the client is told."""
    strict = StrictAssignor(make_assignor(COOP))
    assert (strict.name, len(strict.supported_protocols)) == (COOP, 2)
    members = [member("a", "t u"), member("b", "t")]
    assert assigned(strict, {"t": 1, "u": 1}, members) == {"a": "u-0", "b": "t-0"}
    strict.on_assignment(Assignment(partitions=()), 3)
    assert strict.subscription_user_data(()) == b"\0\0\0\3"
    with pytest.raises(AssignorFailure, match="without members"):
        strict.assign({}, [])


def test_x_5_is_a_failure_of_its_own() -> None:
    """X5: a type of its own, since Java throws nothing there."""
    assert issubclass(AssignorLivelock, AssignorFailure)
    assert AssignorLivelock().java_exception == "(never returns)"


def _row(topic: str, count: int) -> str:
    return " ".join(f"{topic}-{number}" for number in range(count))


def _as_user_data(members: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same claims for the eager assignor."""
    return [{**m, "owned": [], "ud": {"gen": m["gen"], "parts": m["owned"]}} for m in members]
