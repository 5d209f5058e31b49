"""The network: links between clients and brokers, with latency, and the faults that they can have.

A *link* is one direction between one client and one broker. It delays every message by its
latency; it can be *cut*, which holds messages back until it is healed, as TCP does by sending
again (what is already on its way arrives). Cuts, latencies and drops are rules with selectors: the last rule
that fits a link holds, also for links that come into being later.

Connections (``groupsim.runtime.connection``) run over a pair of links.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

from groupsim.protocol.messages import ApiKey
from groupsim.runtime.kernel import Action, Kernel
from groupsim.runtime.latency import Fixed, Latency
from groupsim.runtime.randomness import Stream, Streams
from groupsim.runtime.specs import NetworkSpec
from groupsim.runtime.world import World

__all__ = ["Direction", "DropHow", "DropRule", "Lane", "Link", "Network", "Selector"]


class Direction(StrEnum):
    """Which way a fault works."""

    BOTH = "both"
    TO_BROKER = "to_broker"
    TO_CLIENT = "to_client"


class DropHow(StrEnum):
    """What dropping a message of a TCP connection means.

    ``RESET``: the connection breaks, both ends learn of it. ``BLACK_HOLE``: this message and all
    that follow on the connection in this direction vanish without a sign.
    """

    RESET = "reset"
    BLACK_HOLE = "black-hole"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """Which links are meant: client names (shell patterns), broker ids (none: all), direction."""

    clients: tuple[str, ...] = ("*",)
    brokers: tuple[int, ...] = ()
    direction: Direction = Direction.BOTH

    def fits(self, client: str, broker: int, direction: Direction) -> bool:
        """Whether the link of ``client`` and ``broker`` in ``direction`` is meant."""
        return (
            self.direction in (Direction.BOTH, direction)
            and (not self.brokers or broker in self.brokers)
            and any(fnmatchcase(client, pattern) for pattern in self.clients)
        )

    @property
    def everything(self) -> bool:
        """Whether every link is meant."""
        return "*" in self.clients and not self.brokers and self.direction is Direction.BOTH

    def __str__(self) -> str:
        brokers = ",".join(f"b-{number}" for number in self.brokers) or "*"
        arrow = {"both": "<->", "to_broker": "->", "to_client": "<-"}[self.direction]
        return f"{','.join(self.clients)} {arrow} {brokers}"


@dataclass(slots=True, kw_only=True)
class DropRule:
    """Drop the next ``count`` messages that fit (``api`` None: of any kind)."""

    selector: Selector
    api: ApiKey | None
    how: DropHow
    count: int
    cause: int


class Link:
    """One direction between one client and one broker."""

    __slots__ = (
        "_number",
        "_stream",
        "broker",
        "clear",
        "client",
        "cut",
        "direction",
        "drops",
        "fixed_us",
        "lanes",
        "latency",
    )

    def __init__(self, client: str, broker: int, direction: Direction, stream: Stream) -> None:
        self.client = client
        self.broker = broker
        self.direction = direction
        self.cut = False
        self.drops: tuple[DropRule, ...] = ()
        self.clear = True  # neither cut nor about to drop anything
        self.lanes: dict[Lane, None] = {}
        self._stream = stream
        self._number = 0
        self.set_latency(Fixed(us=0))

    def set_latency(self, latency: Latency) -> None:
        """Change the latency of the messages to come."""
        self.latency = latency
        self.fixed_us = latency.us if isinstance(latency, Fixed) else -1
        self.mark()

    def mark(self) -> None:
        """Something about the link has changed: find out whether messages may take the short way."""
        self.clear = not (self.cut or self.drops)

    def delay_us(self) -> int:
        """Return the latency of the next message."""
        if self.fixed_us >= 0:
            return self.fixed_us
        number = self._number
        self._number = number + 1
        return self.latency.draw(self._stream.at(number))


class Lane:
    """One direction of one connection: messages arrive in the order in which they were sent.

    ``last_us`` is when the last one arrives; ``Pulse`` has its own short cut of ``send``.
    """

    __slots__ = ("_closed", "_held", "_kernel", "black", "last_us", "link")

    def __init__(self, kernel: Kernel, link: Link) -> None:
        self._kernel = kernel
        self.link = link
        self.black = False
        self._closed = False
        self.last_us = 0
        self._held: list[tuple[Action, Any]] = []
        link.lanes[self] = None

    def send(self, arrive: Action, message: Any) -> None:
        """Call ``arrive(message)`` when the message gets there; hold it back behind a cut."""
        link = self.link
        if link.cut:
            if not self.black:
                self._held.append((arrive, message))
            return
        kernel = self._kernel
        fixed_us = link.fixed_us
        time_us = kernel.now_us + (fixed_us if fixed_us >= 0 else link.delay_us())
        self.last_us = time_us = max(time_us, self.last_us)
        kernel.push(time_us, arrive, message)

    def release(self) -> None:
        """Send what was held back: the link has healed."""
        held, self._held = self._held, []
        for arrive, message in held:
            self.send(arrive, message)
        if self._closed:
            self.close()

    def swallow(self) -> None:
        """From now on everything sent here vanishes."""
        self.link.lanes.pop(self, None)
        self.link = _BLACK
        self.black = True
        self._held.clear()

    def close(self) -> None:
        """Nothing more will be sent; what is held back still waits for the link."""
        self._closed = True
        if not self._held:
            self.link.lanes.pop(self, None)


@dataclass(frozen=True, slots=True)
class _LatencyRule:
    selector: Selector
    latency: Latency


@dataclass(frozen=True, slots=True)
class _CutRule:
    selector: Selector
    cut: bool


class Network:
    """All links of a simulation and the rules they obey."""

    def __init__(self, world: World, spec: NetworkSpec) -> None:
        self.world = world
        self.spec = spec
        self._links: dict[tuple[str, int], tuple[Link, Link]] = {}
        self._latencies: list[_LatencyRule] = []
        self._cuts: list[_CutRule] = []
        self._drops: list[DropRule] = []

    def links(self, client: str, broker: int) -> tuple[Link, Link]:
        """Return the links (to the broker, to the client) of a pair, made at first need."""
        pair = self._links.get((client, broker))
        if pair is None:
            pair = self._links[client, broker] = (
                self._make(client, broker, Direction.TO_BROKER),
                self._make(client, broker, Direction.TO_CLIENT),
            )
        return pair

    def set_latency(self, selector: Selector, latency: Latency) -> int:
        """Change the latency of all links that fit; return the event's id."""
        event = self.world.event(
            "network", event="link", selector=str(selector), detail=str(latency)
        )
        self._latencies.append(_LatencyRule(selector, latency))
        for link in self._fitting(selector):
            link.set_latency(latency)
        return event

    def cut(self, selector: Selector) -> int:
        """Cut all links that fit, until they are healed; return the event's id."""
        event = self.world.event("network", event="cut", selector=str(selector), detail="")
        self._cuts.append(_CutRule(selector, cut=True))
        for link in self._fitting(selector):
            link.cut = True
            link.mark()
        return event

    def heal(self, selector: Selector) -> int:
        """Heal all links that fit: what was held back is sent now. Return the event's id."""
        event = self.world.event("network", event="healed", selector=str(selector), detail="")
        if selector.everything:
            self._cuts.clear()
        else:
            self._cuts.append(_CutRule(selector, cut=False))
        for link in self._fitting(selector):
            if link.cut:
                link.cut = False
                link.mark()
                for lane in tuple(link.lanes):
                    lane.release()
        return event

    def drop(self, selector: Selector, api: ApiKey | None, count: int, how: DropHow) -> int:
        """Drop the next ``count`` messages that fit; return the event's id."""
        name = "any" if api is None else api.name
        event = self.world.event(
            "fault",
            fault="drop",
            target=str(selector),
            detail={"api": name, "count": count, "how": str(how)},
        )
        self._drops.append(DropRule(selector=selector, api=api, how=how, count=count, cause=event))
        self._spread_drops()
        return event

    def take_drop(self, link: Link, api: ApiKey) -> DropRule | None:
        """Return the rule that drops a message of kind ``api`` on ``link``, and count it."""
        for rule in link.drops:
            if rule.api is None or rule.api == api:
                rule.count -= 1
                if rule.count == 0:
                    self._drops.remove(rule)
                    self._spread_drops()
                return rule
        return None

    def _spread_drops(self) -> None:
        for pair in self._links.values():
            for link in pair:
                link.drops = tuple(r for r in self._drops if _fits(r.selector, link))
                link.mark()

    def _fitting(self, selector: Selector) -> list[Link]:
        return [link for pair in self._links.values() for link in pair if _fits(selector, link)]

    def _make(self, client: str, broker: int, direction: Direction) -> Link:
        ends = (client, f"b-{broker}")
        start, end = ends if direction is Direction.TO_BROKER else ends[::-1]
        stream = self.world.streams.stream(f"link/{start}→{end}/latency")
        link = Link(client, broker, direction, stream)
        to_broker = direction is Direction.TO_BROKER
        link.set_latency(self.spec.to_broker if to_broker else self.spec.to_client)
        for rule in self._latencies:
            if _fits(rule.selector, link):
                link.set_latency(rule.latency)
        for cut in self._cuts:
            if _fits(cut.selector, link):
                link.cut = cut.cut
        link.drops = tuple(r for r in self._drops if _fits(r.selector, link))
        link.mark()
        return link


def _fits(selector: Selector, link: Link) -> bool:
    return selector.fits(link.client, link.broker, link.direction)


_BLACK = Link("", 0, Direction.BOTH, Streams(0).stream(""))
"""What a swallowed lane is attached to: looks cut, leads nowhere."""
_BLACK.cut = True
_BLACK.mark()
