"""A client process: it runs one client machine, and starts, stops, crashes, pauses and restarts.

The machine lives in milliseconds of the process's own clock; this host translates, delivers what
arrives, wakes it when it wants to be woken, and carries out its effects.

A pause (a garbage collection, a stopped container) freezes the whole process: its sockets take in what
arrives, its clock runs on, but nothing is handled. When it resumes, everything due is handled at once:
what arrived in the order in which it came, and wakes between them where they were due.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

from groupsim.runtime.connection import Answered, Connection, ConnectionState
from groupsim.runtime.kernel import Handle
from groupsim.runtime.latency import time_text
from groupsim.runtime.lent import LentEnvironment
from groupsim.runtime.lifecycle import CrashHow, ProcessState
from groupsim.runtime.pulse import Pulse
from groupsim.runtime.specs import ProcessClock
from groupsim.runtime.topics import Topics
from groupsim.runtime.world import World
from groupsim_clients.machine import (
    ANY_NODE,
    ClientFactory,
    ClientMachine,
    ClientSpec,
    Disconnect,
    Exited,
    MemberState,
    Order,
    Send,
    SteadyHeartbeats,
)

__all__ = ["ClientProcess", "Dialer"]

_NEVER = 1 << 62
KILL_GRACE_MS = 1000
"""How much longer than its own close timeout a process has before it is killed."""
CLOSE_TIMEOUT_MS = 30_000
"""Java's default of ``Consumer.close()``."""


class Dialer(Protocol):
    """Who opens connections for a process."""

    def dial(self, client: ClientProcess, node_id: int, channel: tuple[int, str]) -> Connection:
        """Begin to open a connection to a broker."""
        ...

    def broker_count(self) -> int:
        """How many brokers there are; their node ids count from 1."""
        ...


class ClientProcess:
    """The host of one member's client machine."""

    __slots__ = (
        "_beats",
        "_before_pause",
        "_bootstrap",
        "_change",
        "_comeback_us",
        "_connections",
        "_dialer",
        "_inbox",
        "_kill",
        "_on_wake",
        "_plain",
        "_pulse",
        "_resumes",
        "_topics",
        "armed_us",
        "client_id",
        "clock",
        "ended",
        "factory",
        "host",
        "incarnation",
        "machine",
        "member_id",
        "name",
        "on_end",
        "spec",
        "state",
        "wake_cause",
        "world",
    )

    def __init__(
        self,
        world: World,
        dialer: Dialer,
        topics: Topics,
        *,
        name: str,
        spec: ClientSpec,
        factory: ClientFactory,
        client_id: str,
        host: str,
        clock: ProcessClock,
    ) -> None:
        self.world = world
        self.name = name
        self.spec = spec
        self.factory = factory
        self.client_id = client_id
        self.host = host
        self.clock = clock
        self.state = ProcessState.DOWN
        self.incarnation = 0
        self.machine: ClientMachine | None = None
        self._beats: SteadyHeartbeats | None = None
        self.member_id = ""
        """The member id that the client last reported, for those who look for the leader."""
        self.ended = ""
        """How the last incarnation ended: exited, killed or crashed; empty before."""
        self.on_end: Callable[[], None] | None = None
        """Called after an incarnation has ended, for tasks that wait for something of it."""
        self._dialer = dialer
        self._topics = topics
        self._connections: dict[tuple[int, str], Connection] = {}
        self._bootstrap = 0
        self._plain = clock.rate_ppm == 0 and clock.offset_ms == 0
        self.armed_us = _NEVER
        self.wake_cause = 0
        self._inbox: deque[tuple[int, Callable[..., None], tuple[Any, ...]]] = deque()
        self._resumes: Handle | None = None
        self._before_pause = ProcessState.RUNNING
        self._kill: Handle | None = None
        self._comeback_us: int | None = None
        self._on_wake = self.wake
        self._pulse: Pulse | None = None
        self._change: Callable[[], None] | None = None

    # the life of the process; each returns the id of its event, or None when it means nothing now

    def start(self) -> int | None:
        """Start a new incarnation."""
        if self.state is not ProcessState.DOWN:
            return None
        change, self._change = self._change, None
        if change is not None:
            change()
        self.incarnation += 1
        self.state = ProcessState.RUNNING
        self.member_id = ""
        again = f"incarnation {self.incarnation}" if self.incarnation > 1 else ""
        event = self._event("started", again)
        name = f"{self.name}/{self.incarnation}"
        lent = LentEnvironment(name, self.world.streams, self._topics, self.clock)
        self.machine = machine = self.factory(self.spec, lent)
        if self._plain and hasattr(machine, "beat"):
            self._beats = cast(SteadyHeartbeats, machine)
        self._run(event, machine.start(self.now_ms()))
        return event

    def change(self, change: Callable[[], None]) -> None:
        """Call ``change`` before the next incarnation starts: now, if none is running."""
        if self.state is ProcessState.DOWN:
            change()
        else:
            self._change = change

    def stop(self, timeout_ms: int | None, kill_after_ms: int | None) -> int | None:
        """Ask the process to close, and kill it when it takes too long."""
        if self.state in (ProcessState.DOWN, ProcessState.STOPPING) or self._kill is not None:
            return None
        limit = "" if timeout_ms is None else f"within {timeout_ms} ms"
        event = self._event("stopping", limit)
        if kill_after_ms is None:
            limit_ms = CLOSE_TIMEOUT_MS if timeout_ms is None else timeout_ms
            kill_after_ms = limit_ms + KILL_GRACE_MS
        self._kill = self.world.kernel.after(kill_after_ms * 1000, lambda: self._killed(event))
        if self.state is ProcessState.PAUSED:
            self._before_pause = ProcessState.STOPPING
        else:
            self.state = ProcessState.STOPPING
        arguments = {} if timeout_ms is None else {"timeout_ms": timeout_ms}
        self.order(Order(name="close", arguments=arguments), event)
        return event

    def come_back(self, down_us: int) -> None:
        """Start again ``down_us`` after the running incarnation has ended, however it ends."""
        self._comeback_us = down_us

    def crash(self, how: CrashHow) -> int | None:
        """Kill the process without a warning."""
        if self.state is ProcessState.DOWN:
            return None
        event = self._event("crashed", f"the {how} is gone")
        self._end("crashed", event, vanish=how is CrashHow.MACHINE)
        return event

    def pause(self, for_us: int | None) -> int | None:
        """Freeze the process, for some time or until it is resumed."""
        if self.state in (ProcessState.DOWN, ProcessState.PAUSED):
            return None
        detail = "until resumed" if for_us is None else f"for {time_text(for_us)}"
        event = self._event("paused", detail)
        self._before_pause = self.state
        self.state = ProcessState.PAUSED
        if for_us is not None:
            self._resumes = self.world.kernel.after(for_us, lambda: self._resume_after(event))
        return event

    def resume(self) -> int | None:
        """Let a paused process run again and catch up."""
        if self.state is not ProcessState.PAUSED:
            return None
        if self._resumes is not None:
            self._resumes.cancel()
            self._resumes = None
        waiting = f"messages that waited: {len(self._inbox)}" if self._inbox else ""
        event = self._event("resumed", waiting)
        self.state = self._before_pause
        while self._inbox and self.machine is not None:
            arrived_us, handle, arguments = self._inbox[0]
            if self._due_us() < arrived_us:
                self._call_wake(event)
            else:
                self._inbox.popleft()
                self.world.cause = event
                handle(*arguments)
        self._inbox.clear()
        if self.machine is not None:
            if self._due_us() <= self.world.kernel.now_us:
                self._call_wake(event)
            self._rearm()
        return event

    def order(self, order: Order, cause: int) -> None:
        """Hand the client an order; a process that is down does not hear it.

        Raises:
            ValueError: the client does not know the order.

        """
        if self.state is ProcessState.PAUSED:
            self._later(self.order, order, cause)
        elif self.machine is not None:
            self._run(cause, self.machine.order(order, self.now_ms()))

    def disconnect(self, node_id: int | None, reason: str) -> int:
        """Break the connections to a broker (None: to all); return how many there were."""
        broken = [
            connection
            for connection in self._connections.values()
            if node_id in (None, connection.server.node_id)
        ]
        for connection in broken:
            connection.reset(reason)
        return len(broken)

    def now_ms(self) -> int:
        """What the process's clock reads."""
        if self._plain:
            return self.world.kernel.now_us // 1000
        return self.clock.read_ms(self.world.kernel.now_us)

    @property
    def connection_count(self) -> int:
        """How many connections it has, those being opened included."""
        return len(self._connections)

    def owned(self) -> tuple[tuple[str, int], ...]:
        """What the application believes it owns; nothing while it is down."""
        return () if self.machine is None else self.machine.owned()

    # the client's end of its connections

    def opened(self, connection: Connection) -> None:
        """See ``ClientEnd``."""
        if self.state is ProcessState.PAUSED:
            self._later(self.opened, connection)
        else:
            connection.flush()

    def answered(self, connection: Connection, answer: Answered) -> None:
        """See ``ClientEnd``."""
        if self.state is ProcessState.PAUSED:
            self._later(self._answered_late, connection, answer)
            return
        machine = self.machine
        assert machine is not None, f"{self.name} is down and has an open connection"
        correlation_id, response, sent = answer
        trace = self.world.trace
        cause = 0 if trace is None else trace.deliver(self.world.kernel.now_us, sent, sent)
        self._run(cause, machine.respond(correlation_id, response, self.now_ms()))

    def _answered_late(self, connection: Connection, answer: Answered) -> None:
        if connection.state is ConnectionState.CLOSED:
            connection.discard(answer)  # closed by what was handled before it after a pause
        else:
            self.answered(connection, answer)

    def lost(self, connection: Connection) -> None:
        """See ``ClientEnd``."""
        if self.state is ProcessState.PAUSED:
            self._later(self.lost, connection)
            return
        key: tuple[int, str] = connection.channel
        if self._connections.get(key) is not connection:
            return
        del self._connections[key]
        if key[0] == ANY_NODE:
            self._bootstrap += 1  # the next attempt tries the next broker
        if self.machine is not None:
            effects = self.machine.disconnected(key[0], key[1], self.now_ms())
            self._run(self.world.cause, effects)

    # inside

    def _run(self, cause: int, effects: Sequence[Any]) -> None:
        self.world.cause = cause
        self._carry_out(effects)
        self._rearm()

    def _carry_out(self, effects: Sequence[Any]) -> None:
        for effect in effects:
            kind = type(effect)
            if kind is Send:
                key = (effect.node_id, effect.channel)
                connection = self._connections.get(key)
                if connection is None:
                    connection = self._connections[key] = self._dial(key)
                connection.request(effect.correlation_id, effect.api_version, effect.request)
            elif kind is Disconnect:
                connection = self._connections.pop((effect.node_id, effect.channel), None)
                if connection is not None:
                    connection.close("closed by the client")
            elif kind is Exited:
                self._exited(effect.reason)
            else:
                if kind is MemberState:
                    self.member_id = effect.member_id
                self.world.note(self.name, effect)

    def _dial(self, key: tuple[int, str]) -> Connection:
        node_id = key[0]
        if node_id == ANY_NODE:
            count = self._dialer.broker_count()
            if not self._bootstrap:
                stream = self.world.streams.stream(f"client/{self.name}/bootstrap")
                self._bootstrap = 1 + stream.below(count)
            node_id = 1 + (self._bootstrap - 1) % count
        return self._dialer.dial(self, node_id, key)

    def _rearm(self) -> None:
        """Have the machine woken when it wants to be; only its last word counts."""
        machine = self.machine
        if machine is None:
            return
        wake_ms = machine.next_wake_ms()
        if wake_ms is None:
            self.armed_us = _NEVER
            return
        wake_us = wake_ms * 1000 if self._plain else self.clock.reaches_us(wake_ms)
        if wake_us != self.armed_us:
            kernel = self.world.kernel
            self.armed_us = wake_us = max(wake_us, kernel.now_us)
            self.wake_cause = self.world.cause
            kernel.push(wake_us, self._on_wake, wake_us)

    def wake(self, wake_us: int) -> None:
        """The time for which it was armed has come; ``wake_us`` tells which."""
        if wake_us != self.armed_us or self.state is ProcessState.PAUSED:
            return
        machine = self.machine
        assert machine is not None, f"{self.name} is down and has a wake"
        self.armed_us = _NEVER
        self.world.cause = self.wake_cause
        self._carry_out(machine.wake(self.now_ms()))
        if self._beats is not None:
            self._find_pulse(self._beats)
        self._rearm()

    def _find_pulse(self, beats: SteadyHeartbeats) -> None:
        """Have the next wake take the short way of steady heartbeats, as far as it goes."""
        connection = self._connections.get(beats.beat_key)
        if connection is None or connection.state is not ConnectionState.OPEN:
            return
        if self._pulse is None or not self._pulse.fits(beats, connection):
            self._pulse = Pulse(self, beats, connection)
            self._on_wake = self._pulse.wake

    def _call_wake(self, cause: int) -> None:
        machine = self.machine
        if machine is not None:
            self.armed_us = _NEVER
            self._run(cause, machine.wake(self.now_ms()))

    def _due_us(self) -> int:
        """When the machine wants to be woken; far away when it does not."""
        wake_ms = None if self.machine is None else self.machine.next_wake_ms()
        return _NEVER if wake_ms is None else self.clock.reaches_us(wake_ms)

    def _later(self, handle: Callable[..., None], *arguments: Any) -> None:
        self._inbox.append((self.world.kernel.now_us, handle, arguments))

    def _resume_after(self, pause: int) -> None:
        self._resumes = None
        self.world.cause = pause
        self.resume()

    def _exited(self, reason: str) -> None:
        self._end("exited", self._event("exited", reason), vanish=False)

    def _killed(self, stopping: int) -> None:
        self._kill = None
        self.world.cause = stopping
        self._end("killed", self._event("killed", "its time to close ran out"), vanish=False)

    def _end(self, how: str, event: int, *, vanish: bool) -> None:
        self.state = ProcessState.DOWN
        self.ended = how
        self.machine = self._beats = self._pulse = None
        self._on_wake = self.wake
        self.armed_us = _NEVER
        self._inbox.clear()
        for handle in (self._kill, self._resumes):
            if handle is not None:
                handle.cancel()
        self._kill = self._resumes = None
        self.world.cause = event
        connections, self._connections = self._connections, {}
        for connection in connections.values():
            if vanish:
                connection.vanish()
            else:
                connection.close(how)
        if self._comeback_us is not None:
            self.world.kernel.after(self._comeback_us, lambda: self._come_back(event))
            self._comeback_us = None
        if self.on_end is not None:
            self.on_end()

    def _come_back(self, cause: int) -> None:
        self.world.cause = cause
        self.start()

    def _event(self, event: str, detail: str) -> int:
        return self.world.event("process", who=self.name, role="client", event=event, detail=detail)
