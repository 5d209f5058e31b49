"""Small stand-ins for the two machines, so that the world around them can be tested alone."""

# ruff: noqa: D102 - the methods are those of the contracts, documented there

from __future__ import annotations

from typing import Any

from groupsim.coordinator.effects import Append, Effect, Reply
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
)
from groupsim.runtime.simulation import Simulation
from groupsim_clients.machine import ClientEnvironment, ClientSpec, Exited, Order, Send

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
LIST = ListGroupsRequest()
JOIN = JoinGroupRequest(
    group_id="g", session_timeout_ms=1, member_id="", protocol_type="consumer", protocols=()
)
COMMIT = OffsetCommitRequest(group_id="g", topics=())


class Parrot:
    """A coordinator: answers heartbeats and listings at once, parks JoinGroups until a listing
    or its timer comes, and writes every OffsetCommit to the log before it answers.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[int, str]] = []
        self.parked: list[int] = []
        self.commits: dict[int, int] = {}
        self.deadline_ms: int | None = None
        self.fired: list[int] = []
        self.loads: list[tuple[int, int, int]] = []
        self.unloads: list[tuple[int, int | None]] = []

    def handle(self, token: int, request: Any, *, now_ms: int, **_: Any) -> list[Effect]:
        self.calls.append((now_ms, type(request).__name__))
        if isinstance(request, JoinGroupRequest):
            self.parked.append(token)
            return []
        if isinstance(request, OffsetCommitRequest):
            append_id = len(self.calls)
            self.commits[append_id] = token
            return [Append(append_id=append_id, partition=0, records=())]
        if isinstance(request, ListGroupsRequest):
            return [*self.release(), Reply(token=token, response=ListGroupsResponse())]
        return [Reply(token=token, response=HeartbeatResponse())]

    def release(self) -> list[Effect]:
        parked, self.parked = self.parked, []
        return [Reply(token=token, response=JoinGroupResponse()) for token in parked]

    def append_completed(self, append_id: int, error: ErrorCode, now_ms: int) -> list[Effect]:
        self.calls.append((now_ms, f"append {error.name}"))
        return [Reply(token=self.commits.pop(append_id), response=OffsetCommitResponse())]

    def next_deadline_ms(self) -> int | None:
        return self.deadline_ms

    def advance(self, now_ms: int) -> list[Effect]:
        self.fired.append(now_ms)
        self.deadline_ms = None
        return self.release()

    def load(self, partition: int, records: Any, epoch: int, now_ms: int) -> list[Effect]:
        self.loads.append((partition, len(records), epoch))
        return []

    def begin_load(self, partition: int, epoch: int, now_ms: int) -> list[Effect]:
        self.loads.append((partition, -1, epoch))
        return []

    def unload(self, partition: int, epoch: int | None, now_ms: int) -> list[Effect]:
        self.unloads.append((partition, epoch))
        return []


class Puppet:
    """A client machine that writes down what happens to it, and does what it is told.

    ``on_start`` are the effects of its start; ``wakes`` are times at which it wants to be woken;
    ``on_wake`` are the effects of each wake.
    """

    def __init__(self, spec: ClientSpec, env: ClientEnvironment) -> None:
        self.spec = spec
        self.env = env
        self.seen: list[tuple[int, str]] = []
        self.on_start: list[Any] = list(spec.options.get("on_start", ()))
        self.wakes: list[int] = list(spec.options.get("wakes", ()))
        self.on_wake: list[Any] = list(spec.options.get("on_wake", ()))
        self.closes_after_ms: int | None = spec.options.get("closes_after_ms", 0)
        self.closing_at: int | None = None

    def start(self, now_ms: int) -> list[Any]:
        self.seen.append((now_ms, "start"))
        return self.on_start

    def respond(self, correlation_id: int, response: Any, now_ms: int) -> list[Any]:
        self.seen.append((now_ms, f"{correlation_id} {type(response).__name__}"))
        return []

    def disconnected(self, node_id: int, channel: str, now_ms: int) -> list[Any]:
        self.seen.append((now_ms, f"lost {node_id} {channel}"))
        return []

    def wake(self, now_ms: int) -> list[Any]:
        self.seen.append((now_ms, "wake"))
        self.wakes = [wake_ms for wake_ms in self.wakes if wake_ms > now_ms]
        if self.closing_at is not None and now_ms >= self.closing_at:
            return [Exited(reason="closed")]
        return self.on_wake

    def next_wake_ms(self) -> int | None:
        times = [*self.wakes, *([] if self.closing_at is None else [self.closing_at])]
        return min(times, default=None)

    def order(self, order: Order, now_ms: int) -> list[Any]:
        self.seen.append((now_ms, f"order {order.name}"))
        if order.name == "send":
            return list(order.arguments["effects"])
        if order.name == "close" and self.closes_after_ms is not None:
            self.closing_at = now_ms + self.closes_after_ms
        return []

    def owned(self) -> tuple[tuple[str, int], ...]:
        return (("t", 0),)


def send(correlation_id: int, request: Any = LIST, node_id: int = 1, channel: str = "x") -> Send:
    """Return a ``Send`` effect."""
    return Send(
        correlation_id=correlation_id,
        node_id=node_id,
        channel=channel,
        api_version=4,
        request=request,
    )


class Stage:
    """A simulation with a parrot on each broker, and puppets."""

    def __init__(self, **arguments: Any) -> None:
        self.parrots: list[Parrot] = []

        def make(_broker: Any) -> Parrot:
            self.parrots.append(Parrot())
            return self.parrots[-1]

        self.sim = Simulation(seed=1, coordinator=make, **arguments)
        self.puppets: dict[str, list[Puppet]] = {}

    def puppet(self, name: str, start: bool = True, **options: Any) -> None:
        """Add a puppet called ``name`` and start it."""
        made = self.puppets.setdefault(name, [])

        def factory(spec: ClientSpec, env: ClientEnvironment) -> Puppet:
            made.append(Puppet(spec, env))
            return made[-1]

        clock = options.pop("clock", None)
        spec = ClientSpec(
            name=name, group_id="g", subscribe=("t",), config={}, work={}, options=options
        )
        self.sim.add_member(name, spec, factory, clock=clock)
        if start:
            self.sim.start(name)

    def seen(self, name: str = "p") -> list[tuple[int, str]]:
        """What the newest incarnation of a puppet has seen."""
        return self.puppets[name][-1].seen

    def send(self, *effects: Any, name: str = "p") -> None:
        """Let a running puppet do something now."""
        self.sim.order(name, Order(name="send", arguments={"effects": effects}))

    def until(self, time_ms: int) -> None:
        """Go on to a time."""
        self.sim.kernel.run_until(time_ms * 1000)
