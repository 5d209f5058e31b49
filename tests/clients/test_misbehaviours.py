"""Each misbehaviour has the symptom of the case it comes from, and the same run without it has not."""

from __future__ import annotations

from typing import Any

import pytest

from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    SyncGroupRequest,
)
from groupsim.scenario import (
    Scenario,
    ScenarioError,
    load_scenario,
    parse_scenario,
    run_scenario,
)
from groupsim.testing.client import ClientBench
from groupsim_clients.behaviour import CURRENT
from groupsim_clients.errors import ConfigError
from groupsim_clients.misbehaviour import MISBEHAVIOURS, misbehaving
from tests.clients.story import Story, tell

EAGER = "partition.assignment.strategy: [range], enable.auto.commit: false, "


def changes(story: Story, change: str) -> list[tuple[str, int]]:
    """Who changed so, and in which second (rounded down)."""
    return [
        (event.fields["member_id"].rsplit("-", 5)[0], event.time_us // 1_000_000)
        for event in story.of("member_change", change=change)
    ]


# -- options ---------------------------------------------------------------------------------------


def test_unknown_misbehaviours_are_refused_with_a_near_match() -> None:
    """Names are checked when the client is made; one name may stand without a list."""
    with pytest.raises(ConfigError) as refused:
        ClientBench(options={"misbehave": ["never-sync"]})
    assert refused.value.name == "options.misbehave"
    assert refused.value.near[0] == "never-syncs"
    with pytest.raises(ConfigError, match="misbehave"):
        ClientBench(options={"misbehaves": []})
    with pytest.raises(ConfigError, match="a list of misbehaviours"):
        ClientBench(options={"misbehave": 7})
    ClientBench(options={"misbehave": "never-syncs"})


def test_a_scenario_reports_them_where_they_are_written() -> None:
    """The loader's fault has the line of the options."""
    text = (
        "groupsim: 1\nname: s\ntopics: {t: 1}\nuntil: 1s\ngroups:\n  g:\n    subscribe: t\n"
        "    members:\n      - name: c\n        options: {misbehave: [forgets-member]}\n"
    )
    with pytest.raises(ScenarioError) as refused:
        parse_scenario(text)
    (fault,) = refused.value.faults
    assert (fault.line, fault.path[-1]) == (10, "options")
    assert "forgets-member-id" in str(fault)


def test_each_turns_its_own_switches() -> None:
    """Every misbehaviour changes the current client, each in its own way."""
    changed = {name: misbehaving(CURRENT, [name]) for name in MISBEHAVIOURS}
    assert len(set(changed.values()) | {CURRENT}) == len(MISBEHAVIOURS) + 1


# -- one client against a scripted broker ----------------------------------------------------------


def test_forgotten_id_in_the_next_join() -> None:
    """B-72: after REBALANCE_IN_PROGRESS on a heartbeat the next JoinGroup has an empty id, and only
    that one; the partitions are revoked as usual first.
    """
    ids = {}
    for misbehave in ((), ("forgets-member-id",)):
        bench = ClientBench({"enable.auto.commit": False}, options={"misbehave": misbehave})
        bench.stable()
        bench.auto[HeartbeatRequest] = lambda _request: HeartbeatResponse(
            error_code=ErrorCode.REBALANCE_IN_PROGRESS
        )
        bench.advance(3_000)
        asked = JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="m-2")
        if misbehave:
            bench.answer(bench.take(JoinGroupRequest), asked)
        ids[misbehave] = [request.member_id for _, request in bench.sent(JoinGroupRequest)]
        assert bench.changes()[-1][0] == "revoked"
    assert ids == {(): ["", "m-1"], ("forgets-member-id",): ["", "", "m-2"]}


def test_member_id_required_is_an_error_to_it() -> None:
    """B-02: the answer is thrown at the application, and its id is not used."""
    for misbehave, joins in (((), ["", "m-1"]), (("member-id-required-is-fatal",), ["", ""])):
        bench = ClientBench(options={"misbehave": misbehave}, work={"on_error": "continue"})
        bench.start()
        asked = JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="m-1")
        bench.answer(bench.take(JoinGroupRequest), asked)
        bench.advance(1_500)
        assert [request.member_id for _, request in bench.sent(JoinGroupRequest)] == joins


def test_no_sync_follows_the_join() -> None:
    """B-63: heartbeats go on, SyncGroup never comes."""
    for misbehave, syncs in (((), 1), (("never-syncs",), 0)):
        bench = ClientBench(options={"misbehave": misbehave})
        bench.start()
        bench.answer(bench.take(JoinGroupRequest), bench.joined())
        bench.advance(29_000)
        assert len(bench.sent(SyncGroupRequest)) == syncs
        assert bench.states()[-1] == "COMPLETING_REBALANCE"
        assert len(bench.sent(HeartbeatRequest)) == 9


LESSONS = {
    "forgotten-member-id": "forgets-member-id",
    "heartbeats-between-messages": "heartbeats-between-messages",
    "fenced-and-back": "rejoins-after-fencing",
    "never-syncs": "never-syncs",
    "impatient-join": "impatient-join",
}


@pytest.mark.parametrize("name", LESSONS)
def test_lessons_need_the_misbehaviour(name: str) -> None:
    """The catalogue's scenario about a misbehaviour is met with it (test_catalogue) and not without."""
    plain = load_scenario(name).to_plain()
    options = [
        each.pop("options")
        for group in plain["groups"].values()
        for each in (group, *group["members"])
        if each.get("options")
    ]
    assert options == [{"misbehave": [LESSONS[name]]}]
    result = run_scenario(Scenario.from_plain(plain), seed=0)
    assert result.verdict == "not met"


# -- in a group ------------------------------------------------------------------------------------


def run(group: str, misbehave: str, **how: Any) -> tuple[Story, Story]:
    """The group with the misbehaviour, and without; ``MIS`` in the text is where its options go."""
    return (
        tell(group.replace("MIS", f"options: {{misbehave: [{misbehave}]}}"), **how),
        tell(group.replace("MIS", "options: {}"), **how),
    )


def test_forgotten_ids_hold_the_rebalance_up() -> None:
    """B-72: every member comes back as a new one, and the rebalance waits for the old ids' sessions
    to expire: 11 s instead of 1 s.
    """
    group = (
        f"    config: {{{EAGER}session.timeout.ms: 10s}}\n    MIS\n"
        "    members: [{name: c, count: 2}, {name: late, start: 20s}]"
    )
    wrong, right = run(group, "forgets-member-id", until="60s")
    assert wrong.group.member_changes["joined"] == 5
    assert [second for _, second in changes(wrong, "expired")] == [31, 31]
    assert wrong.group.rebalances[1].joins_us == 11_002_000
    assert right.group.member_changes["joined"] == 3
    assert changes(right, "expired") == []
    assert right.group.rebalances[1].joins_us == 1_004_000


def test_pending_ids_pile_up() -> None:
    """B-02: two attempts a second make two pending ids a second and never a member."""
    group = (
        f"    config: {{{EAGER}session.timeout.ms: 10s}}\n"
        "    work: {on_error: continue, error_pause: 500ms}\n"
        "    members: [{name: a}, {name: b, start: 10s, MIS}]"
    )
    wrong, right = run(group, "member-id-required-is-fatal", until="30s")
    assert wrong.group.member_changes["pending"] == 41
    assert wrong.group.members == 1
    assert right.group.member_changes["pending"] == 2
    assert right.group.members == 2


def test_a_minute_of_work_without_a_heartbeat() -> None:
    """B-15: three members, records that take 60 s, a session of 30 s. All expire at 30 s, all come
    back at 60 s as new members, no commit ever succeeds. A single member has the same trouble, but
    gets its partitions back at once.
    """
    group = (
        "    config: {partition.assignment.strategy: [range], session.timeout.ms: 30s,\n"
        "             auto.offset.reset: earliest, max.poll.records: 1}\n    MIS\n"
        "    work: {takes: 60s, commit: sync, on_error: continue}\n"
        "    members: [{name: c, count: COUNT}]"
    )
    how: dict[str, Any] = {
        "partitions": 3,
        "rate": 1,
        "until": "10m",
        "kinds": ("member_change", "commit"),
    }
    name = "heartbeats-between-messages"
    wrong, right = run(group.replace("COUNT", "3"), name, **how)
    assert sorted(changes(wrong, "expired")[:3]) == [("c-1", 30), ("c-2", 30), ("c-3", 30)]
    assert [second for _, second in changes(wrong, "joined")[3:5]] == [62, 62]
    assert wrong.of("commit", outcome="ok") == []
    assert len(right.of("commit", outcome="ok")) == 27
    assert changes(right, "expired") == []
    alone, _ = run(group.replace("COUNT", "1"), name, **how)
    assert alone.group.unavailable_partition_us < 1_000_000


def test_heartbeats_end_with_the_news() -> None:
    """B-22: the member that is busy for 25 s hears of the rebalance at 33 s and is silent from then:
    expelled after its session (10 s), although it had 60 s to join again.
    """
    group = (
        f"    config: {{{EAGER}session.timeout.ms: 10s, max.poll.interval.ms: 60s,"
        " auto.offset.reset: earliest}\n"
        "    members: [{name: a, MIS, work: {takes: 25s}}, {name: b, start: 31s}]"
    )
    wrong, right = run(group, "heartbeats-stop-on-rebalance", until="90s", rate=1)
    assert changes(wrong, "expired") == [("a", 43)]
    assert changes(right, "expired") == []
    assert changes(right, "rejoined") == [("a", 51)]


def test_an_error_answer_is_contact() -> None:
    """B-25: a cooperative member is busy with one record for 30 s while others rebalance. Every
    heartbeat is answered, with REBALANCE_IN_PROGRESS; the member takes its session for expired and
    loses everything, and comes back as a new member beside its own ghost.
    """
    group = (
        "    config: {partition.assignment.strategy: [cooperative-sticky], session.timeout.ms: 10s,\n"
        "             auto.offset.reset: earliest, enable.auto.commit: false}\n"
        "    members: [{name: b, start: 36s},\n"
        "              {name: a, MIS, work: {poison: {topic: orders, partition: 0, offset: 30, takes: 30s}}}]"
    )
    kinds = ("member_change", "ownership")
    wrong, right = run(group, "only-success-is-contact", until="90s", rate=1, kinds=kinds)
    assert [e.fields["who"] for e in wrong.of("ownership", change="lost")] == ["a"]
    assert wrong.group.member_changes["joined"] == 3
    assert right.of("ownership", change="lost") == []
    assert right.group.member_changes["joined"] == 2


def test_two_that_fence_each_other() -> None:
    """B-46: with one instance id, the two replace each other at every heartbeat, 40 times a minute,
    and no rebalance shows it; a fenced client that stays away ends it after one.
    """
    group = (
        f"    config: {{{EAGER}group.instance.id: same}}\n    MIS\n"
        "    members: [{name: a}, {name: b, start: 10s}]"
    )
    wrong, right = run(group, "rejoins-after-fencing", until="70s")
    assert wrong.group.member_changes["replaced"] == 40
    assert len(wrong.group.rebalances) == 1
    assert wrong.group.overlap_partition_us > 200_000_000
    assert wrong.of("exception") == []
    assert right.group.member_changes["replaced"] == 1
    assert [e.fields["exception"] for e in right.of("exception")] == ["FencedInstanceIdException"]


def test_the_group_waits_for_the_sync_that_never_comes() -> None:
    """B-63: the leader takes its JoinGroup answer and goes silent on SyncGroup, but not on heartbeats.
    The first rebalance takes the join and the whole rebalance timeout (60 s), then the leader is
    removed and the other one has everything.
    """
    group = (
        f"    config: {{{EAGER}max.poll.interval.ms: 60s, session.timeout.ms: 90s,"
        " request.timeout.ms: 2m}\n"
        "    members: [{name: a, MIS}, {name: b}]"
    )
    wrong, right = run(group, "never-syncs", until="3m")
    first = wrong.group.rebalances[0]
    assert first.outcome == "superseded"
    assert (first.ended_us or 0) - first.started_us - first.joins_us == 60_000_000
    assert changes(wrong, "removed") == [("a", 60)]
    assert (wrong.group.members, wrong.group.generation) == (1, 2)
    assert right.group.rebalances[0].outcome == "completed"
    assert right.group.members == 2


def test_a_join_that_gives_up_too_early() -> None:
    """B-07: the incumbent is busy for 50 s; the newcomer's JoinGroup is given up after 10 s and sent
    again as a new member. Four ghosts later the rebalance ends, with them in the generation, and
    has to be repeated when they expire.
    """
    group = (
        "    config: {partition.assignment.strategy: [range], enable.auto.commit: false,\n"
        "             max.poll.interval.ms: 60s, request.timeout.ms: 10s, session.timeout.ms: 9s,\n"
        "             auto.offset.reset: earliest}\n"
        "    members: [{name: a, work: {takes: 50s}}, {name: b, start: 1s, MIS}]"
    )
    wrong, right = run(group, "impatient-join", until="100s", rate=1)
    assert sum(who == "b" for who, _ in changes(wrong, "joined")) == 8
    assert len(wrong.group.rebalances) == 3
    assert {who for who, _ in changes(wrong, "expired")} == {"b"}
    assert changes(right, "joined") == [("a", 0), ("b", 1)]
    assert len(right.group.rebalances) == 2
