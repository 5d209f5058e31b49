"""The timeline: entries of a scenario to calls of the simulation, at their time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import APIS
from groupsim.runtime import Fixed, LogNormal, Simulation, Uniform
from groupsim.scenario.clients import client_factory
from groupsim.scenario.model import Scenario
from groupsim.scenario.selection import select
from groupsim.scenario.specs import Identity, Wanted, work_plain
from groupsim.scenario.verbs import BrokerTargets, Cut, Entry, Restart, Targets
from groupsim.scenario.world import Latency, Spread
from groupsim.trace.writer import TraceWriter
from groupsim_clients.machine import Order

__all__ = ["Timeline", "latency_of"]

_EVERYBODY: Final = ("*",)
_API_KEYS: Final = {api.name: key for key, api in APIS.items()}


def latency_of(spread: Spread | None) -> Fixed | Uniform | LogNormal | None:
    """Return the runtime's value for a time that is fixed or drawn."""
    if spread is None:
        return None
    if spread.fixed is not None:
        return Fixed(us=spread.fixed)
    if spread.uniform is not None:
        return Uniform(low_us=spread.uniform[0], high_us=spread.uniform[1])
    drawn = spread.lognormal
    assert drawn is not None
    return LogNormal.from_p99(median_us=drawn.median, p99_us=drawn.p99, max_us=drawn.max)


class Timeline:
    """Plays a scenario's timeline on a simulation.

    Every occurrence of an entry is an event of the trace, and the cause of all that it does.
    ``wanted`` says what each member is to be at its next start; restarts change it.
    """

    def __init__(
        self,
        scenario: Scenario,
        simulation: Simulation,
        trace: TraceWriter | None,
        wanted: Mapping[str, tuple[Identity, Wanted]],
    ) -> None:
        self._scenario = scenario
        self._simulation = simulation
        self._trace = trace
        self._wanted = dict(wanted)
        self._deployed = {name: now for name, (_, now) in wanted.items()}
        self._members = scenario.members()

    def arm(self) -> None:
        """Schedule every entry's first time; at one moment the file's order decides."""
        for index, entry in enumerate(self._scenario.timeline):
            at_us = entry.at if entry.at is not None else entry.every
            assert at_us is not None
            self._at(at_us, partial(self._happens, index, entry))

    def _at(self, at_us: int, action: Callable[[], object]) -> None:
        self._simulation.schedule(at_us, action)

    def _happens(self, index: int, entry: Entry) -> None:
        now_us = self._simulation.now_us
        if entry.every is not None:
            again_us = now_us + entry.every
            if entry.until is None or again_us <= entry.until:
                self._at(again_us, partial(self._happens, index, entry))
        verb, action = entry.verb, entry.action
        if isinstance(action, Targets):
            names = self._targets(action)
            cause = self._event(index, verb, names, _detail(action))
            handler: Any = getattr(self, f"_{verb}")
            self._each(names, action.one_every, lambda who: handler(who, action, cause))
        elif verb.endswith("_broker"):
            brokers = self._brokers(action)
            cause = self._event(index, verb, [f"b-{number}" for number in brokers], "")
            call = getattr(self._simulation, verb)
            self._each(brokers, action.one_every, lambda number: call(number, cause=cause))
        elif verb == "add_partitions":
            detail = ", ".join(f"{topic}: {total}" for topic, total in action.items())
            cause = self._event(index, verb, tuple(action), detail)
            for topic, total in action.items():
                self._simulation.add_partitions(topic, total, cause=cause)
        else:
            cause = self._event(
                index, verb, getattr(action, "members", None) or (), _detail(action)
            )
            getattr(self, f"_{verb}")(action, cause)

    def _targets(self, action: Targets) -> tuple[str, ...]:
        if action.leader_of is None:
            return select(self._members, action.members)
        leader = self._simulation.leader_of(action.leader_of)
        return () if leader is None else (leader,)

    def _brokers(self, action: BrokerTargets) -> tuple[int, ...]:
        if action.coordinator_of is None:
            return action.brokers or ()
        broker = self._simulation.cluster.coordinator_of(action.coordinator_of)
        return () if broker is None else (broker.node_id,)

    def _each(
        self, names: Sequence[Any], one_every: int | None, call: Callable[[Any], object]
    ) -> None:
        now_us = self._simulation.now_us
        for place, name in enumerate(names):
            if place and one_every:
                self._at(now_us + place * one_every, partial(call, name))
            else:
                call(name)

    def _event(self, index: int, verb: str, targets: Sequence[str], detail: str) -> int:
        if self._trace is None:
            return 0
        return self._trace.event(
            self._simulation.now_us,
            0,
            "timeline",
            index=index,
            action=verb,
            targets=tuple(targets),
            detail=detail,
        )

    # -- members: called for each of the targets ------------------------------------------------

    def _deploy(self, who: str, cause: int) -> None:
        """Let the next start of a member be as it is wanted by now."""
        identity, wanted = self._wanted[who]
        if self._deployed[who] != wanted:
            self._deployed[who] = wanted
            factory = client_factory(wanted.client)
            self._simulation.change_member(
                who, wanted.spec(identity), factory, profile=wanted.client, cause=cause
            )

    def _start(self, who: str, _: Any, cause: int) -> None:
        self._deploy(who, cause)
        self._simulation.start(who, cause=cause)

    def _stop(self, who: str, stop: Any, cause: int) -> None:
        self._simulation.stop(
            who, timeout_ms=_ms(stop.timeout), kill_after_ms=_ms(stop.kill_after), cause=cause
        )

    def _crash(self, who: str, crash: Any, cause: int) -> None:
        self._simulation.crash(who, how=crash.how, cause=cause)

    def _restart(self, who: str, restart: Restart, cause: int) -> None:
        identity, wanted = self._wanted[who]
        changed = wanted.changed(
            client=restart.client,
            subscribe=restart.subscribe,
            config=restart.config,
            work=restart.work,
        )
        self._wanted[who] = identity, changed
        self._deploy(who, cause)
        self._simulation.restart(who, down_us=restart.down, how=restart.how, cause=cause)

    def _pause(self, who: str, pause: Any, cause: int) -> None:
        self._simulation.pause(who, for_us=pause.for_, cause=cause)

    def _resume(self, who: str, _: Any, cause: int) -> None:
        self._simulation.resume(who, cause=cause)

    def _subscribe(self, who: str, subscribe: Any, cause: int) -> None:
        arguments = (
            {"topics": subscribe.topics}
            if subscribe.pattern is None
            else {"pattern": subscribe.pattern}
        )
        self._order(who, "subscribe", arguments, cause)

    def _unsubscribe(self, who: str, _: Any, cause: int) -> None:
        self._order(who, "unsubscribe", {}, cause)

    def _enforce_rebalance(self, who: str, enforce: Any, cause: int) -> None:
        self._order(who, "enforce_rebalance", {"reason": enforce.reason}, cause)

    def _set_work(self, who: str, change: Any, cause: int) -> None:
        identity, wanted = self._wanted[who]
        changed = wanted.changed(work=change.work)
        self._wanted[who] = identity, changed
        self._order(who, "set_work", {"work": work_plain(changed.work)}, cause)

    def _commit(self, who: str, _: Any, cause: int) -> None:
        self._order(who, "commit", {}, cause)

    def _disconnect(self, who: str, disconnect: Any, cause: int) -> None:
        self._simulation.disconnect(who, broker=disconnect.broker, cause=cause)

    def _order(self, who: str, name: str, arguments: Mapping[str, Any], cause: int) -> None:
        self._simulation.order(who, Order(name=name, arguments=arguments), cause=cause)

    # -- the world ------------------------------------------------------------------------------

    def _clients(self, names: Sequence[str] | None) -> tuple[str, ...]:
        return _EVERYBODY if names is None else select(self._members, names)

    def _network(self, change: Any, cause: int) -> None:
        latency: Latency = change.latency
        self._simulation.set_link(
            to_broker=latency_of(latency.to_broker),
            to_client=latency_of(latency.to_client),
            clients=self._clients(change.members),
            brokers=change.brokers or (),
            cause=cause,
        )

    def _cut(self, cut: Cut, cause: int) -> None:
        where: dict[str, Any] = {
            "clients": self._clients(cut.members),
            "brokers": cut.brokers or (),
            "direction": cut.direction,
        }
        self._simulation.cut(**where, cause=cause)
        if cut.for_ is not None:
            heal = self._simulation.heal
            self._at(self._simulation.now_us + cut.for_, lambda: heal(**where, cause=cause))

    def _heal(self, heal: Cut, cause: int) -> None:
        self._simulation.heal(
            clients=self._clients(heal.members),
            brokers=heal.brokers or (),
            direction=heal.direction,
            cause=cause,
        )

    def _drop_next(self, drop: Any, cause: int) -> None:
        self._simulation.drop_next(
            clients=self._clients(drop.members),
            brokers=drop.brokers or (),
            direction=drop.direction,
            api=None if drop.api is None else _API_KEYS[drop.api],
            count=drop.count,
            how=drop.how,
            cause=cause,
        )

    def _move_coordinator(self, move: Any, cause: int) -> None:
        if not self._simulation.cluster.broker(move.to).up:
            return  # nobody can be elected that is down; the timeline's event stands alone
        self._simulation.move_coordinator(
            move.to, group=move.group, partition=move.partition, cause=cause
        )

    def _fail_appends(self, fail: Any, cause: int) -> None:
        self._simulation.fail_appends(
            ErrorCode[fail.error],
            count=1 if fail.count is None and fail.for_ is None else fail.count,
            for_us=fail.for_,
            group=fail.group,
            partition=fail.partition,
            cause=cause,
        )

    def _stall_appends(self, where: Any, cause: int) -> None:
        self._simulation.stall_appends(group=where.group, partition=where.partition, cause=cause)

    def _resume_appends(self, where: Any, cause: int) -> None:
        self._simulation.resume_appends(group=where.group, partition=where.partition, cause=cause)

    def _replication_delay(self, delay: Spread, cause: int) -> None:
        latency = latency_of(delay)
        assert latency is not None
        self._simulation.set_replication_delay(latency, cause=cause)


def _ms(us: int | None) -> int | None:
    return None if us is None else us // 1000


def _detail(action: Any) -> str:
    """Return a verb's arguments besides its targets, as they stand in the file."""
    hidden = {"members", "leader_of"}
    plain = action.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude=hidden)
    return ", ".join(f"{name}: {_plain_text(value)}" for name, value in plain.items())


def _plain_text(value: Any) -> str:
    if isinstance(value, dict):
        inner = ", ".join(f"{key}: {_plain_text(item)}" for key, item in value.items())
        return f"{{{inner}}}"
    if isinstance(value, list):
        return f"[{', '.join(_plain_text(item) for item in value)}]"
    return str(value)
