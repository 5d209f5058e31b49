"""What sticky assignors know, and the algorithm for equal subscriptions (A-30 to A-56).

Expected lists are what Kafka 4.4.0's own classes return for the same input.
"""

from __future__ import annotations

from typing import Any

import pytest

from groupsim.protocol.consumer_protocol import Assignment, Subscription, TopicPartition
from groupsim_clients.assignors import (
    AssignorFailure,
    CooperativeStickyAssignor,
    StickyAssignor,
    sticky,
    without_racks,
)
from groupsim_clients.assignors._constrained import ConstrainedBuilder
from groupsim_clients.assignors._merge import not_kept
from groupsim_clients.assignors._ownership import Claim, Ownership
from groupsim_clients.assignors._sticky_racks import StickyRacks
from groupsim_clients.assignors.sticky import decode_user_data, encode_user_data
from tests.conformance.assignors import assigned, member, partitions, racks, sticky_claim

COOP = "cooperative-sticky"
SPLIT = {"a": "t-0", "b": "t-1"}


class TestUserData:
    """What a member sends, and what a leader reads."""

    def test_sticky_sends_its_last_assignment_for_ever(self) -> None:
        """A-31, A-32 (3.5): nothing at first; then assignment and generation, never cleared."""
        assignor = StickyAssignor()
        assert assignor.subscription_user_data(("t",)) is None
        held = tuple(TopicPartition(topic, n) for topic, n in partitions("t-1 s-0 t-0"))
        assignor.on_assignment(Assignment(partitions=held), 7)
        sent = assignor.subscription_user_data(())
        assert sent == bytes.fromhex(
            "00000002 0001 73 00000001 00000000 0001 74 00000002 00000001 00000000 00000007"
        )
        assert decode_user_data(sent) == Claim([held[1], held[0], held[2]], 7)
        assert StickyAssignor().read_claim(Subscription(topics=(), user_data=sent)).generation == 7

    def test_cooperative_sends_its_last_generation(self) -> None:
        """A-31 (3.5): int32, −1 at first."""
        assignor = CooperativeStickyAssignor()
        assert assignor.subscription_user_data(("t",)) == b"\xff\xff\xff\xff"
        assignor.on_assignment(Assignment(partitions=()), 7)
        assert assignor.subscription_user_data(()) == b"\0\0\0\7"

    @pytest.mark.parametrize(
        ("user_data", "claimed", "generation_id"),
        [
            (None, "", -1),
            ("", "", -1),
            ("00000001 0001 74 00000001 00000003 00000009", "t-3", 9),
            ("00000001 0001 74 00000001 00000003", "t-3", -1),  # version 0
            ("00000001 0001 74 00000001 00000003 000000", "t-3", -1),
            ("00000001 0001 74 00000001 00000003 00000009 ff", "t-3", 9),
            ("00000001 0001 74 00000001 0000", "", -1),
            ("00000001 ffff", "", -1),
            ("ffffffff 00000009", "", -1),
        ],
    )
    def test_sticky_reads(self, user_data: str | None, claimed: str, generation_id: int) -> None:
        """A-30 (3.5): version 1, else version 0 without generation, else nothing."""
        data = None if user_data is None else bytes.fromhex(user_data)
        owned = (TopicPartition("t", 5),)
        subscription = Subscription(
            topics=("t",), user_data=data, owned_partitions=owned, generation_id=4
        )
        claim = StickyAssignor().read_claim(subscription)
        assert [list(partition) for partition in claim.partitions] == partitions(claimed)
        assert claim.generation == generation_id

    @pytest.mark.parametrize(
        ("field", "user_data", "generation_id"),
        [
            (4, b"\0\0\0\7", 4),
            (0, None, 0),
            (-1, b"\0\0\0\7", 7),
            (-1, b"\0\0\0\7more", 7),
            (-1, b"\0\0\0", -1),
            (-1, b"", -1),
            (-1, None, -1),
        ],
    )
    def test_cooperative_reads(
        self, field: int, user_data: bytes | None, generation_id: int
    ) -> None:
        """A-31 (3.5): the field if there is one, else the user data, else none."""
        owned = (TopicPartition("t", 5),)
        subscription = Subscription(
            topics=("t",), user_data=user_data, owned_partitions=owned, generation_id=field
        )
        claim = CooperativeStickyAssignor().read_claim(subscription)
        assert (claim.partitions, claim.generation) == (owned, generation_id)


class TestOwnership:
    """Who owned what."""

    @pytest.mark.parametrize("generation", [{}, {"ud": {"gen": -1}}, {"ud": {"gen": 2}}])
    def test_a_30_absent_is_minus_one(self, generation: dict[str, Any]) -> None:
        """A-30: without user data as with generation −1 both lose the partition."""
        members = [member("a", "t", owned="t-0 t-1"), member("b", "t", owned="t-1", **generation)]
        wins = generation.get("ud", {}).get("gen", -1) > -1
        expected = {"a": "t-0", "b": "t-1"} if wins else {"a": "t-0", "b": ""}
        assert assigned(COOP, {"t": 2}, members) == expected

    def test_a_31_judged_by_the_old_generation(self) -> None:
        """A-31: field −1 after a reset; the user data's generation 8 beats the other's 7."""
        members = [
            member("a", "t", owned="t-0 t-1", gen=7),
            member("b", "t", owned="t-1", ud={"gen": 8}),
        ]
        assert assigned(COOP, {"t": 2}, members) == SPLIT
        members[1]["ud"] = {"gen": 6}
        assert assigned(COOP, {"t": 2}, members) == {"a": "t-0", "b": ""}

    def test_a_32_the_highest_generation_is_remembered(self) -> None:
        """A-32: after a round with generation 9, claims of generation 5 are old ones (A-61)."""
        topics = {"t0": 1, "t1": 1}
        group = [
            member("a", "t0", ud=sticky_claim(5, "t1-0")),
            member("b", "t0 t1", ud=sticky_claim(5, "t1-0")),
            member("c", "t0 t1", ud=sticky_claim(5, "t0-0 t1-0")),
        ]
        assert assigned("sticky", topics, group) == {"a": "", "b": "t1-0", "c": "t0-0"}
        assignor = StickyAssignor()
        assigned(assignor, {"x": 1}, [member("x", "x", ud=sticky_claim(9, ""))])
        assert assignor.max_generation == 9
        assert assigned(assignor, topics, group) == {"a": "t1-0", "b": "", "c": "t0-0"}
        assert assignor.max_generation == 9

    def test_a_40_first_claim_owns(self) -> None:
        """A-40: an uncontested claim is kept, in a topic that takes part."""
        members = [member("a", "t", owned="t-1 gone-0"), member("b", "t", owned="t-0")]
        assert assigned(COOP, {"t": 2}, members) == {"a": "t-1", "b": "t-0"}

    @pytest.mark.parametrize(
        ("generation_id", "expected"),
        [
            (7, {"a": "t-0", "b": ""}),  # equal: nobody's, so it waits
            (8, {"a": "t-0", "b": "t-1"}),  # higher: takes it over
            (6, {"a": "t-0", "b": ""}),  # lower: ignored, a keeps both and gives one up
        ],
    )
    def test_a_41_competing_claims(self, generation_id: int, expected: dict[str, str]) -> None:
        """A-41: the later member's generation against the earlier one's field."""
        members = [
            member("a", "t", owned="t-0 t-1", gen=7),
            member("b", "t", owned="t-1", gen=generation_id),
        ]
        assert assigned(COOP, {"t": 2}, members) == expected

    def test_a_42_three_claimants_depend_on_map_order(self) -> None:
        """A-42: equal claims of a and b move the pointer to b, so c is compared with b alone."""
        claims = {"a": 7, "b": 7, "c": 8}
        members = [member(m, "t", owned="t-0", gen=gen) for m, gen in claims.items()]
        assert assigned(COOP, {"t": 1}, members) == {"a": "", "b": "", "c": ""}
        members[0]["gen"], members[2]["gen"] = 8, 7
        assert assigned(COOP, {"t": 1}, members) == {"a": "t-0", "b": "", "c": ""}

    def test_a_43_a_stale_claim_counts_when_nobody_objects(self) -> None:
        """A-43: generation 2 keeps t-1 although the group is at 9."""
        members = [member("a", "t", owned="t-1", gen=2), member("b", "t", gen=9)]
        assert assigned(COOP, {"t": 2}, members) == {"a": "t-1", "b": "t-0"}

    @pytest.mark.parametrize(
        ("lists", "equal"),
        [
            (("s t", "t s"), True),
            (("s t", "s"), False),
            (("s t", "s r"), False),
            (("s", "s s"), False),
            (("", "s"), True),  # met before the yardstick (X1)
            (("s", ""), False),
        ],
    )
    def test_a_44_a_45_which_algorithm(
        self, monkeypatch: pytest.MonkeyPatch, lists: tuple[str, str], *, equal: bool
    ) -> None:
        """A-44, A-45: the first list that is not empty is the yardstick; unequal → general."""
        used = []
        for name in ("ConstrainedBuilder", "GeneralBuilder"):
            real = getattr(sticky, name)

            def spy(*args: Any, real: Any = real, name: str = name) -> Any:
                used.append(name)
                return real(*args)

            monkeypatch.setattr(sticky, name, spy)
        members = [member(m, topics) for m, topics in zip("ab", lists, strict=True)]
        assigned("sticky", {"r": 1, "s": 1, "t": 1}, members)
        assert used == ["ConstrainedBuilder" if equal else "GeneralBuilder"]


class TestConstrained:
    """Equal subscriptions."""

    def test_a_50_kept_by_number_then_topic(self) -> None:
        """A-50: a keeps lo of what it had, lowest numbers first, across topics."""
        members = [
            member("a", "t0 t1", owned="t0-0 t0-1 t0-2 t1-0 t1-1", gen=1),
            member("b", "t0 t1", gen=1),
        ]
        topics = {"t0": 3, "t1": 3}
        assert assigned(COOP, topics, members) == {"a": "t0-0 t1-0 t0-1", "b": "t1-2"}

    def test_a_50_map_order_decides_who_keeps_hi(self) -> None:
        """A-50: b and c both have hi; c, in an earlier bucket only by its id, is not asked first."""
        members = [
            member("a", "t", gen=1),
            member("c", "t", owned="t-3 t-4", gen=1),
            member("b", "t", owned="t-0 t-1 t-2", gen=1),
        ]
        assert assigned(COOP, {"t": 5}, members) == {"a": "", "b": "t-0 t-1", "c": "t-3 t-4"}

    def test_a_50_multiply_claimed_partitions_are_dropped(self) -> None:
        """A-50: claimed three times in one generation, it is nobody's even if c was alone then."""
        members = [member(m, "t", owned="t-0", gen=3) for m in "abc"]
        assert assigned(COOP, {"t": 3}, members) == {"a": "", "b": "t-1", "c": "t-2"}

    def test_a_51_rarest_partitions_first(self) -> None:
        """A-51: t-1 can be had in rack by one member, the others by two."""
        topics = {"t": racks("a", "b", "a")}
        members = [member("m1", "t", rack="a"), member("m2", "t", rack="a")]
        members.append(member("m3", "t", rack="b"))
        assert assigned("sticky", topics, members) == {"m1": "t-0", "m2": "t-2", "m3": "t-1"}
        racks_of_group = StickyRacks([], {})
        order = [TopicPartition("t", 1), TopicPartition("t", 0)]
        assert racks_of_group.rarest_first(order) == order

    def test_a_53_in_racks_in_turn(self) -> None:
        """A-53: the search goes on behind the last taker; members without rack never match."""
        topics = {"t": racks("a", "a", "a", "b", "b")}
        members = [member("m1", "t", rack="a"), member("m2", "t"), member("m3", "t", rack="a")]
        assert assigned("sticky", topics, members) == {
            "m1": "t-0 t-2",
            "m2": "t-3",
            "m3": "t-1 t-4",
        }

    def test_a_53_members_at_lo_are_asked_after_those_under_it(self) -> None:
        """A-53: t-2 goes to m1, which sits at lo, since m2 is in another rack."""
        topics = {"t": racks("a", "b", "a")}
        members = [member("m1", "t", rack="a"), member("m2", "t", rack="b")]
        assert assigned("sticky", topics, members) == {"m1": "t-0 t-2", "m2": "t-1"}

    def test_a_54_extras_go_to_those_who_sat_at_lo_first(self) -> None:
        """A-54: z had lo already and takes the extra before a, which was filled up to it."""
        members = [member("a", "t"), member("z", "t", ud=sticky_claim(1, "t-0"))]
        assert assigned("sticky", {"t": 3}, members) == {"a": "t-1", "z": "t-0 t-2"}

    def test_a_55_transferring_partitions_wait(self) -> None:
        """A-55: cooperative leaves out what a must give up, sticky assigns it at once."""
        topics = {"t": 2}
        coop = [member("a", "t", owned="t-0 t-1", gen=1), member("b", "t", gen=1)]
        assert assigned(COOP, topics, coop) == {"a": "t-0", "b": ""}
        eager = [member("a", "t", ud=sticky_claim(1, "t-0 t-1")), member("b", "t")]
        assert assigned("sticky", topics, eager) == SPLIT

    def test_a_55_back_to_the_same_member_is_no_transfer(self) -> None:
        """A-55: the rack-mismatching t-1 is taken from m1 and comes back to it."""
        topics = {"t": racks("a", "b", "a", "b")}
        members = [
            member("m1", "t", owned="t-0 t-1", gen=1, rack="a"),
            member("m2", "t", owned="t-2 t-3", gen=1, rack="a"),
        ]
        assert assigned(COOP, topics, members) == {"m1": "t-0 t-1", "m2": "t-2 t-3"}

    def test_a_56_nobody_left(self) -> None:
        """A-56: a partition that does not exist fills the only member up."""
        members = [member("b", "t0", owned="t0-1", gen=1)]
        assert assigned(COOP, {"t0": 1}, members) == {"!": "IllegalStateException"}

    @pytest.mark.parametrize(
        ("have", "detail"), [(0, "0 of 1 members"), (1, "a does not reach 1 partitions")]
    )
    def test_a_56_somebody_below_lo(self, have: int, detail: str) -> None:
        """A-56: the check at the end, which no input is known to fail."""
        builder = ConstrainedBuilder(
            without_racks({"t": 3}), StickyRacks([], {}), Ownership(owned={"a": [], "b": []})
        )
        builder._under_lo.append("a")
        builder._have = have
        with pytest.raises(AssignorFailure, match=detail) as caught:
            builder._verify()
        assert caught.value.java_exception == "IllegalStateException"


def test_a_70_the_merge_walk_waits() -> None:
    """A-70: a kept partition that does not exist blocks the walk."""
    everything = [TopicPartition("t", number) for number in range(4)]
    kept = [TopicPartition("t", 1), TopicPartition("t", 2)]
    assert not_kept(everything, kept) == [everything[0], everything[3]]
    assert not_kept(everything, []) == everything
    phantom = TopicPartition("a", 9)
    assert not_kept(everything, [phantom, *kept]) == everything
    assert not_kept(everything, [*kept, TopicPartition("t", 9)]) == [everything[0], everything[3]]


def test_user_data_groups_topics_in_map_order() -> None:
    """A-06: topics of the sticky user data stand in the order of a computeIfAbsent map."""
    data = encode_user_data([TopicPartition("BB", 0), TopicPartition("Aa", 0)], 1)
    claim = decode_user_data(data)
    assert claim.partitions == [TopicPartition("Aa", 0), TopicPartition("BB", 0)]
