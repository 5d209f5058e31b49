"""Metrics against traces whose numbers can be worked out on paper."""

from __future__ import annotations

import pytest

from groupsim.metrics.ledger import Ledger

from .story import S, Story, first_join, orders


def test_first_join_is_split_into_its_phases() -> None:
    """A row's phases, members and unowned time are those of the story."""
    story = Story()
    first_join(story)
    group = story.group(10 * S)
    (row,) = group.rebalances
    assert (row.started_us, row.ended_us, row.generation) == (1 * S, 4_300_000, 1)
    assert (row.joins_us, row.assigning_us, row.syncing_us) == (3 * S, 100_000, 200_000)
    assert (row.outcome, row.trigger, row.who) == ("completed", "joined", "c-1")
    assert (row.reason, row.members, row.moved) == ("Adding new member m-c-1", 2, 0)
    # four partitions for 3.2 s, two for another 0.1 s
    assert row.unowned_partition_us == 4 * 3_200_000 + 2 * 100_000
    assert group.unavailable_partition_us == group.startup_partition_us == 13 * S
    assert group.first_stable_us == group.stable_since_us == 4_300_000
    assert (group.partitions, group.unowned_partitions, group.members) == (4, 0, 2)
    assert group.member_changes == {"joined": 2}
    assert group.overlap_partition_us == 0


def test_a_crash_counts_from_the_crash_and_is_detected_at_expiry() -> None:
    """Partitions of a crashed member are unowned at once; the row holds only its own part of it."""
    story = Story()
    first_join(story)
    story.process(20 * S, "c-2", "crashed")
    story.change(65 * S, "c-2", "expired")
    story.to(65 * S, "PreparingRebalance", 1, 1, "removing member")
    story.revokes(66 * S, "c-1", orders(0, 1))
    story.joined(66 * S, 2, "c-1")
    story.to(66 * S, "Stable", 2, 1)
    story.owns(66_500_000, "c-1", 2, orders(0, 1, 2, 3))
    group = story.group(100 * S)
    row = group.rebalances[1]
    assert (row.trigger, row.who, row.moved, row.members) == ("expired", "c-2", 2, 1)
    assert row.unowned_partition_us == 2 * S + 4 * 500_000
    after_start = group.unavailable_partition_us - group.startup_partition_us
    assert after_start == 2 * 45 * S + 2 * S + 4 * 500_000
    (detection,) = group.detections
    assert (detection.who, detection.silence, detection.noticed) == ("c-2", "crashed", "expired")
    assert detection.noticed_us - detection.since_us == 45 * S


def test_a_paused_member_still_believes_it_owns() -> None:
    """I1: a paused member and its successor overlap until the pause ends and the loss is noticed."""
    story = Story()
    first_join(story)
    story.process(20 * S, "c-2", "paused")
    story.change(65 * S, "c-2", "expired")
    story.to(65 * S, "PreparingRebalance", 1, 1)
    story.joined(66 * S, 2, "c-1")
    story.to(66 * S, "Stable", 2, 1)
    story.owns(66 * S, "c-1", 2, orders(0, 1, 2, 3))
    story.process(70 * S, "c-2", "resumed")
    story.revokes(71 * S, "c-2", orders(2, 3))
    group = story.group(100 * S)
    assert group.overlap_partition_us == 2 * 5 * S
    assert group.frozen_partition_us == 2 * 46 * S  # until there is an owner who runs
    assert group.unavailable_partition_us == group.startup_partition_us
    assert [(d.silence, d.noticed_us) for d in group.detections] == [("paused", 65 * S)]


def test_a_rebalance_may_be_cut_short_or_still_be_open() -> None:
    """A row that gives way to the next one says so; the last one may have no end."""
    story = Story()
    first_join(story)
    story.change(10 * S, "c-2", "left")
    story.to(10 * S, "PreparingRebalance", 1, 1)
    story.joined(11 * S, 2, "c-1")
    story.change(12 * S, "c-2", "joined")
    story.to(12 * S, "PreparingRebalance", 2, 2)
    group = story.group(15 * S)
    second, third = group.rebalances[1:]
    assert (second.outcome, second.trigger) == ("superseded", "left")
    assert (second.joins_us, second.assigning_us, second.syncing_us) == (1 * S, 1 * S, None)
    assert (third.outcome, third.ended_us, third.joins_us) == ("open", None, 3 * S)
    assert third.assigning_us is None
    assert group.first_stable_us == 4_300_000
    assert group.stable_since_us is None


def test_a_shut_down_group_is_not_unavailable() -> None:
    """Time after the last deliberate stop does not count, unless somebody is started again."""
    story = Story()
    first_join(story)
    for at, who in ((20 * S, "c-1"), (21 * S, "c-2")):
        story.process(at, who, "stopping")
        story.process(at, who, "exited")
    story.to(21 * S, "PreparingRebalance", 1, 0)
    story.to(21 * S, "Empty", 2, 0)
    shut = story.group(100 * S)
    assert shut.unavailable_partition_us == 13 * S + 2 * S
    assert shut.rebalances[-1].outcome == "empty"

    again = Story()
    first_join(again)
    for who in ("c-1", "c-2"):
        again.process(20 * S, who, "stopping")
        again.process(20 * S, who, "exited")
    again.process(30 * S, "c-1", "started")
    assert again.group(30 * S).unavailable_partition_us == 13 * S + 4 * 10 * S

    crashed = Story()
    first_join(crashed)
    for who in ("c-1", "c-2"):
        crashed.process(20 * S, who, "crashed")
    assert crashed.group(30 * S).unavailable_partition_us == 13 * S + 4 * 10 * S


def test_new_partitions_are_unowned_until_somebody_takes_them() -> None:
    """Growing a subscribed topic makes partitions without an owner; another topic does not."""
    story = Story()
    first_join(story)
    story.writer.event(10 * S, 0, "topic", topic="orders", partitions=6)
    story.writer.event(10 * S, 0, "topic", topic="unrelated", partitions=100)
    story.owns(15 * S, "c-1", 1, orders(0, 1, 4, 5))
    group = story.group(20 * S)
    assert group.partitions == 6
    assert group.unavailable_partition_us == 13 * S + 2 * 5 * S
    assert group.startup_partition_us == 13 * S


def test_orders_change_what_a_group_is_to_serve() -> None:
    """A subscription by order, or by pattern, counts from then on."""
    story = Story(clients=("c-1",))
    story.process(0, "c-1", "started")
    story.owns(0, "c-1", 1, orders(0, 1, 2, 3))
    order = {"who": "c-1", "name": "subscribe", "arguments": {"topics": ["orders", "unrelated"]}}
    story.writer.event(1 * S, 0, "order", **order)
    order["arguments"] = {"pattern": "ord.*"}
    story.writer.event(2 * S, 0, "order", **order)
    story.writer.event(3 * S, 0, "order", who="c-1", name="unsubscribe", arguments={})
    assert story.group(9 * S).unavailable_partition_us == 50 * S


def test_clients_that_say_nothing_are_done_when_the_broker_has_synced_them() -> None:
    """A script's member has no notes of its own: its sync ends its wait."""
    story = Story(clients=())
    story.change(0, "x", "joined")
    story.to(0, "PreparingRebalance", 0, 1)
    story.joined(3 * S, 1, "x")
    story.to(4 * S, "Stable", 1, 1)
    story.change(4 * S, "x", "synced")
    (row,) = story.group(5 * S).rebalances
    assert (row.outcome, row.who, row.syncing_us) == ("completed", "id-x", 0)


def test_nobody_waits_for_a_member_that_died_before_it_synced() -> None:
    """A crash between join and sync does not keep a row open."""
    story = Story()
    for who in ("c-1", "c-2"):
        story.process(0, who, "started")
    story.to(0, "PreparingRebalance", 0, 2)
    story.joined(3 * S, 1, "c-1", "c-2")
    story.knows(3 * S, "c-1", 1)
    story.knows(3 * S, "c-2", 1)
    story.to(4 * S, "Stable", 1, 2)
    story.owns(5 * S, "c-1", 1, orders(0, 1))
    story.process(6 * S, "c-2", "crashed")
    (row,) = story.group(9 * S).rebalances
    assert (row.outcome, row.syncing_us) == ("completed", 2 * S)


def test_unknown_groups_are_a_key_error() -> None:
    """Summary.group names groups that exist."""
    with pytest.raises(KeyError, match="nobody"):
        Story().finish(0).group("nobody")


def test_metrics_can_tell_a_planted_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger that forgets to count what a crash leaves behind is caught by the crash story."""

    def forgets(self: Ledger, who: str, *, on_purpose: bool) -> None:
        del self, who, on_purpose

    monkeypatch.setattr(Ledger, "gone", forgets)
    with pytest.raises(AssertionError):
        test_a_crash_counts_from_the_crash_and_is_detected_at_expiry()


def test_frozen_partitions_have_only_paused_owners() -> None:
    """A partition given to a paused member, taken from it, or left with it alone; and the end of a
    pause by a crash.
    """
    ledger = Ledger({"orders": 2})
    ledger.started("a")
    ledger.started("b")
    ledger.subscribe("a", ("orders",), None)
    ledger.advance(10 * S)
    ledger.owns("a", [("orders", 0)])
    ledger.paused("a")
    ledger.advance(11 * S)
    assert ledger.frozen_partition_us == S
    ledger.owns("b", [("orders", 0), ("orders", 1)])  # two owners, one of them runs
    ledger.advance(13 * S)
    assert ledger.frozen_partition_us == S
    ledger.owns("b", [("orders", 1)])  # left with the paused one
    ledger.paused("b")
    ledger.advance(14 * S)
    assert ledger.frozen_partition_us == 3 * S
    ledger.resumed("a")
    ledger.owns("a", [])
    ledger.advance(15 * S)
    assert ledger.frozen_partition_us == 4 * S
    ledger.gone("b", on_purpose=False)
    ledger.started("b")
    ledger.owns("b", [("orders", 1)])
    ledger.advance(20 * S)
    assert ledger.frozen_partition_us == 4 * S
