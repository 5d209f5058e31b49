"""The timeline: every verb reaches the simulation, at its time, as the cause of what follows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from groupsim.scenario import Scenario, ScenarioError, parse_scenario, run_scenario
from groupsim.scenario.verbs import Entry
from groupsim.trace.events import Event
from groupsim.trace.reader import TraceReader
from groupsim.trace.writer import TraceWriter

S = 1_000_000
HEAD = """\
groupsim: 1
name: verbs
topics: {a: {partitions: 4, rate: 20}, b: 2}
brokers: {count: 3}
groups:
  g:
    subscribe: a
    config: {session.timeout.ms: 6s, heartbeat.interval.ms: 1s}
    work: {commit: sync, on_error: continue}
    members: [{name: c, count: 3}, {name: late, start: never}]
until: 2m
timeline:
"""

VERBS: dict[str, tuple[str, str]] = {
    # verb: how it is written; the kind of event that follows from it
    "start": ("late", "process"),
    "stop": ("{members: c-1, timeout: 5s}", "process"),
    "crash": ("{leader_of: g, how: machine}", "process"),
    "restart": ("{members: c, one_every: 2s, down: 1s, how: crash}", "process"),
    "pause": ("{members: c-2, for: 3s}", "process"),
    "resume": ("c-2", "process"),
    "subscribe": ("{members: c-1, topics: [a, b]}", "order"),
    "unsubscribe": ("c-1", "order"),
    "enforce_rebalance": ("{members: c-1, reason: because}", "order"),
    "set_work": ("{members: c-1, work: {takes: 10ms}}", "order"),
    "commit": ("c-1", "order"),
    "add_partitions": ("{a: 8}", "topic"),
    "network": ("{latency: {uniform: [1ms, 9ms]}, members: c-1}", "network"),
    "cut": ("{members: c-1, for: 2s}", "network"),
    "heal": ("c-1", "network"),
    "disconnect": ("{members: c-1, broker: 2}", "fault"),
    "drop_next": ("{direction: to_client, api: Heartbeat, members: c-1}", "fault"),
    "crash_broker": ("{coordinator_of: g}", "process"),
    "stop_broker": ("2", "process"),
    "start_broker": ("1", "process"),
    "move_coordinator": ("{group: g, to: 3}", "leadership"),
    "fail_appends": ("{group: g, count: 2}", "fault"),
    "stall_appends": ("g", "fault"),
    "resume_appends": ("g", "fault"),
    "replication_delay": ("{uniform: [1ms, 5ms]}", "fault"),
}
BEFORE = {"resume": "pause: c-2", "start_broker": "crash_broker: 1", "heal": "cut: c-1"}
"""What must happen a second earlier for a verb to mean something."""


class Follower:
    """Keeps all events of a run."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def attach(self, writer: TraceWriter) -> None:
        """Listen to everything."""
        for kind in writer.kinds.all:
            writer.listen(kind.name, self.events.append)


def played(timeline: str, **more: Any) -> list[Event]:
    """All events of a run with this timeline."""
    follower = Follower()
    run_scenario(parse_scenario(HEAD + timeline), observers=[follower], **more)
    return follower.events


def of(events: list[Event], kind: str, **fields: Any) -> list[Event]:
    """The events of one kind with these values."""
    return [
        event
        for event in events
        if event.kind == kind and all(event.fields[name] == value for name, value in fields.items())
    ]


def test_every_verb_is_played() -> None:
    """The table below leaves no verb out."""
    assert set(VERBS) == set(Entry.verbs())


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_is_the_cause_of_what_it_does(verb: str) -> None:
    """Each is an event of the trace, at its time, and what it does names it as cause."""
    written, kind = VERBS[verb]
    before = f"  - {{at: 19s, {BEFORE[verb]}}}\n" if verb in BEFORE else ""
    events = played(f"{before}  - {{at: 20s, {verb}: {written}}}\n")
    (happened,) = of(events, "timeline", action=verb)
    assert happened.time_us == 20 * S
    followed = [event for event in events if event.cause == happened.id]
    assert kind in {event.kind for event in followed}


def test_one_every() -> None:
    """Targets come one after the other, in the order of their declaration."""
    events = played("  - {at: 20s, crash: {members: [c-3, c-1], one_every: 2s}}\n")
    crashes = of(events, "process", event="crashed")
    assert [(e.time_us // S, e.fields["who"]) for e in crashes] == [(20, "c-3"), (22, "c-1")]


def test_every_until() -> None:
    """An entry is repeated from ``at`` to ``until``, both included."""
    events = played("  - {at: 10s, every: 5s, until: 25s, commit: c-1}\n")
    assert [event.time_us // S for event in of(events, "timeline")] == [10, 15, 20, 25]
    events = played("  - {every: 50s, commit: c-1}\n")
    assert [event.time_us // S for event in of(events, "timeline")] == [50, 100]


def test_entries_of_one_moment_happen_in_the_order_of_the_file() -> None:
    """The file decides, after the starts of that moment."""
    events = played("  - {at: 0s, crash: c-1}\n  - {at: 0s, start: c-1}\n")
    life = [e.fields["event"] for e in of(events, "process", who="c-1") if e.time_us == 0]
    assert life == ["started", "crashed", "started"]


def test_a_restart_can_change_everything() -> None:
    """Client, subscription, configuration and work hold from the new start on, and stay."""
    change = "client: java-2.4, subscribe: [a, b], config: {client.id: other}, work: {takes: 1s}"
    events = played(
        f"  - {{at: 20s, restart: {{members: c-1, down: 3s, {change}}}}}\n  - {{at: 40s, restart: c-1}}\n"
    )
    first, second = of(events, "client", who="c-1")
    assert (first.fields["profile"], second.fields["profile"]) == ("java", "java-2.4")
    assert second.fields["subscribe"] == ("a", "b")
    started = of(events, "process", who="c-1", event="started")[1]
    assert (second.time_us, second.id) == (started.time_us, started.id - 1)  # not when ordered
    assert second.time_us > 23 * S
    assert second.cause == of(events, "timeline", action="restart")[0].id
    sent = [
        event.fields["api_version"]
        for event in of(events, "send", api="JoinGroup", direction="request")
        if event.fields["from"] == "c-1"
    ]
    assert sent[0] > sent[-1] == 6  # what java-2.4 speaks, after the second restart too


def test_a_member_that_is_down_is_told_nothing() -> None:
    """The trace does not say that somebody was told who was not there to hear it."""
    events = played("  - {at: 10s, crash: c-1}\n  - {at: 20s, unsubscribe: c}\n")
    assert [event.fields["who"] for event in of(events, "order")] == ["c-2", "c-3"]


def test_progress_counts_the_events_of_the_trace() -> None:
    """Events, not the kernel's actions: every event that was written had been told of by then."""
    follower = Follower()
    told: list[tuple[int, int, int]] = []
    run_scenario(
        parse_scenario(HEAD.removesuffix("timeline:\n")),
        observers=[follower],
        on_progress=lambda now_us, events: told.append((now_us, events, len(follower.events))),
        until=600 * S,
    )
    assert told
    assert all(events == written and 0 < now_us < 600 * S for now_us, events, written in told)


def test_work_that_is_set_stays_after_a_restart() -> None:
    """``set_work`` changes what it says and keeps the rest, for later starts as well."""
    events = played(
        "  - {at: 20s, set_work: {members: c-1, work: {takes: 3s}}}\n  - {at: 40s, restart: c-1}\n"
    )
    finished = of(events, "application", who="c-1", event="processing_finished")
    assert {event.fields["duration_ms"] for event in finished} == {3000}
    assert min(event.time_us for event in finished) > 20 * S
    assert max(event.time_us for event in finished) > 60 * S
    assert {event.fields["mode"] for event in of(events, "commit", who="c-1")} == {"sync"}


def test_numbers_and_names_fill_configuration() -> None:
    """``{n}`` and ``{name}``, ``static`` and ``rack`` make each copy's own configuration."""
    text = HEAD.replace("members: [{name: c, count: 3}, {name: late, start: never}]", "members:")
    members = """\
      - {name: s, count: 2, static: true, host: "/10.0.0.{n}", rack: [east, west]}
      - {name: w, count: 2, config: {group.instance.id: "worker-{n}", client.id: "{name}-app"}}
"""
    text = text.replace("members:\n", f"members:\n{members}").replace("timeline:\n", "")
    follower = Follower()
    run_scenario(parse_scenario(text), observers=[follower])
    clients = {event.fields["who"]: event.fields for event in of(follower.events, "client")}
    instances = {who: fields["group_instance_id"] for who, fields in clients.items()}
    assert instances == {"s-1": "s-1", "s-2": "s-2", "w-1": "worker-1", "w-2": "worker-2"}
    assert clients["s-2"]["client_host"] == "/10.0.0.2"
    assert clients["w-2"]["client_id"] == "w-2-app"


def test_an_earlier_end_leaves_things_undecided(tmp_path: Path) -> None:
    """``until`` breaks a run off; its trace says so, and a replay of it judges alike."""
    scenario = parse_scenario(f"{HEAD}  - {{at: 90s, crash: c-1}}\nexpect: {{stable_by: 60s}}\n")
    path = tmp_path / "run.trace"
    result = run_scenario(scenario, until=30 * S, trace_path=path)
    assert (result.verdict, result.end_us) == ("undecided", 30 * S)
    recorded = Scenario.from_plain(TraceReader(path).header.scenario)
    again = run_scenario(recorded, seed=result.seed)
    assert again.trace_sha256 == result.trace_sha256
    assert again.expectations == result.expectations


def test_a_recorded_run_with_scripts_wants_them_again() -> None:
    """Without the scripts that took part, a run would be another one: it is refused."""

    async def script(env: Any) -> None:
        await env.sleep(1)
        env.log("hello")

    scenario = parse_scenario(f"{HEAD}  - {{at: 90s, crash: c-1}}\n")
    result = run_scenario(scenario, scripts=[script])
    recorded = Scenario.from_plain(result.scenario.to_plain())
    assert run_scenario(recorded, scripts=[script]).trace_sha256 == result.trace_sha256
    with pytest.raises(ScenarioError, match="this run had scripts"):
        run_scenario(recorded)


def test_a_run_that_fails_says_so_in_its_trace(tmp_path: Path) -> None:
    """An exception of a script ends the run; the trace is closed and readable."""

    async def script(env: Any) -> None:
        await env.sleep(1)
        raise RuntimeError("no more")

    path = tmp_path / "run.trace"
    with pytest.raises(RuntimeError, match="no more"):
        run_scenario(
            parse_scenario(f"{HEAD}  - {{at: 90s, crash: c-1}}\n"),
            trace_path=path,
            scripts=[script],
        )
    reader = TraceReader(path)
    assert sum(1 for _ in reader) > 10
    assert not reader.finished


def test_the_seed_of_a_scenario() -> None:
    """A scenario's own seed is used where no other is given; without one it is 0."""
    text = f"{HEAD}  - {{at: 90s, crash: c-1}}\n"
    plain, seeded = parse_scenario(text), parse_scenario(f"{text}seed: 9\n")
    assert run_scenario(plain).seed == 0
    assert run_scenario(seeded).seed == 9
    assert run_scenario(seeded, seed=3).seed == 3
