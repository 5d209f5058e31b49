"""What a scenario says of a member, put together for its client: configuration, work, identity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from groupsim.scenario.configs import filled, kafka_values
from groupsim.scenario.members import Group, Member, Subscription, Work
from groupsim.scenario.world import Spread
from groupsim_clients.machine import ClientSpec

__all__ = ["DEFAULT_CLIENT", "Identity", "Wanted", "spread_plain", "wanted_of", "work_plain"]

DEFAULT_CLIENT: Final = "java"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who a copy of a member is: its name, its number (1 without a count), its group."""

    name: str
    number: int
    group_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is wanted of a member's process when it starts next; changes make new values."""

    client: str
    subscribe: Subscription
    config: Mapping[str, Any]
    options: Mapping[str, Any]
    work: Work
    host: str | None

    def changed(
        self,
        *,
        client: str | None = None,
        subscribe: Subscription | None = None,
        config: Mapping[str, Any] | None = None,
        work: Work | None = None,
    ) -> Wanted:
        """Return what is wanted after a deploy; None and empty mean as before."""
        return replace(
            self,
            client=client or self.client,
            subscribe=subscribe or self.subscribe,
            config={**self.config, **(config or {})},
            work=merged_work(self.work, work),
        )

    def spec(self, who: Identity) -> ClientSpec:
        """Return what the client machine is given."""
        return ClientSpec(
            name=who.name,
            group_id=who.group_id,
            subscribe=self.subscribe.topics or (),
            subscribe_pattern=self.subscribe.pattern,
            config=filled(kafka_values(self.config), who.name, who.number),
            work=work_plain(self.work),
            options=dict(self.options),
        )


def wanted_of(group: Group, member: Member, who: Identity) -> Wanted:
    """Return what the scenario wants of one member at its first start.

    What the member says comes before what the group says; configurations and work are merged.
    """
    config: dict[str, Any] = {**group.config, **member.config}
    static = group.static if member.static is None else member.static
    if static:
        config.setdefault("group.instance.id", "{name}")
    if member.rack:
        config.setdefault("client.rack", member.rack[(who.number - 1) % len(member.rack)])
    subscribe = member.subscribe or group.subscribe
    assert subscribe is not None, f"member {who.name} subscribes to nothing"
    return Wanted(
        client=member.client or group.client or DEFAULT_CLIENT,
        subscribe=subscribe,
        config=config,
        options={**group.options, **member.options},
        work=merged_work(group.work or Work(), member.work),
        host=None if member.host is None else member.host.replace("{n}", str(who.number)),
    )


def merged_work(first: Work, then: Work | None) -> Work:
    """Return ``first`` with everything that ``then`` says."""
    if then is None:
        return first
    given = {name: getattr(then, name) for name in Work.model_fields}
    return first.model_copy(update={k: v for k, v in given.items() if v is not None})


def work_plain(work: Work) -> dict[str, Any]:
    """Return the work as plain data for the client: times in ms, names as in ``ClientSpec.work``."""
    times = {
        "poll_interval_ms": work.poll_every,
        "processing_ms": work.takes,
        "on_assigned_ms": work.on_assigned,
        "on_revoked_ms": work.on_revoked,
        "on_lost_ms": work.on_lost,
    }
    made: dict[str, Any] = {
        name: spread_plain(spread) for name, spread in times.items() if spread is not None
    }
    if work.poison is not None:
        made["poison"] = tuple(
            {
                "topic": poison.topic,
                "partition": poison.partition,
                "offset": poison.offset,
                "processing_ms": spread_plain(poison.takes),
            }
            for poison in work.poison
        )
    if work.raises is not None:
        made["raises"] = {
            place: {"exception": raised.exception, "nth": raised.nth or 0}
            for place, raised in work.raises.items()
        }
    others = {
        "commit": work.commit,
        "on_error": work.on_error,
        "max_records": work.max_records,
        "poll_timeout_ms": _whole_ms(work.poll_timeout),
        "error_pause_ms": _whole_ms(work.error_pause),
        "close_timeout_ms": _whole_ms(work.close_timeout),
    }
    made.update({name: value for name, value in others.items() if value is not None})
    return made


def spread_plain(spread: Spread) -> Any:
    """Return a time for a client: an integer of ms, or a mapping that says how it is drawn."""
    if spread.fixed is not None:
        return spread.fixed // 1000
    if spread.uniform is not None:
        return {"uniform": _ms(spread.uniform)}
    assert spread.lognormal is not None
    drawn = spread.lognormal
    made = {"median_ms": drawn.median // 1000, "p99_ms": drawn.p99 // 1000}
    if drawn.max is not None:
        made["max_ms"] = drawn.max // 1000
    return {"lognormal": made}


def _whole_ms(us: int | None) -> int | None:
    return None if us is None else us // 1000


def _ms(times_us: Sequence[int]) -> tuple[int, ...]:
    return tuple(us // 1000 for us in times_us)
