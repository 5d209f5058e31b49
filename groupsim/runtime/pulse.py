"""The short way of a steady heartbeat: from the process to the broker and back in three frames.

A settled group does nothing but heartbeats, and most of a run is that. Here each of the three hops
of a heartbeat is one method instead of a walk through ``ClientProcess``, ``Connection`` and
``Broker``. A hop first makes sure that the general way would do the same: the connection is whole
and idle, the link is clear, and client (``machine.SteadyHeartbeats``) and coordinator
(``refreshes_session``) have nothing else to do. Otherwise it has done nothing yet and hands over to
the general way. What happens, its order and its trace are the same on both.
"""

from __future__ import annotations

from heapq import heappush
from typing import TYPE_CHECKING, Final

from groupsim.coordinator.membership_requests import HEARTBEAT_OK
from groupsim.runtime.connection import Answered, Arrived, Connection, ConnectionState
from groupsim.runtime.lifecycle import ProcessState
from groupsim_clients.machine import SteadyHeartbeats

if TYPE_CHECKING:
    from groupsim.runtime.process import ClientProcess

__all__ = ["Pulse"]

_OPEN: Final = ConnectionState.OPEN
_PAUSED: Final = ProcessState.PAUSED


class Pulse:
    """The heartbeats of one generation on one open connection.

    It lasts until the client sends another heartbeat or sends it elsewhere; ``fits`` tells. Messages
    on their way keep the pulse that sent them.
    """

    __slots__ = (
        "_beats",
        "_connection",
        "_deliver",
        "_down",
        "_heap",
        "_kernel",
        "_key",
        "_on_answer",
        "_on_arrival",
        "_on_wake",
        "_process",
        "_refreshes",
        "_request",
        "_server",
        "_tick",
        "_trace",
        "_up",
        "_version",
        "_world",
    )

    def __init__(
        self, process: ClientProcess, beats: SteadyHeartbeats, connection: Connection
    ) -> None:
        self._process = process
        self._beats = beats
        self._key = beats.beat_key
        self._version = beats.beat_version
        self._request = beats.beat_request
        self._connection = connection
        self._up, self._down = connection.up, connection.down
        self._server = connection.server
        self._refreshes = connection.server.refreshes
        self._world = world = process.world
        self._kernel = kernel = world.kernel
        self._heap = kernel.heap
        self._tick = kernel.tick
        self._trace = self._deliver = None
        if connection.trace is not None and world.trace is not None:
            self._trace = connection.trace.heartbeats(self._request, HEARTBEAT_OK, self._version)
            self._deliver = world.trace.deliver
        self._on_wake = self.wake  # bound once: they are pushed for every heartbeat
        self._on_arrival = self._arrive
        self._on_answer = self._answer

    def fits(self, beats: SteadyHeartbeats, connection: Connection) -> bool:
        """Whether this is the pulse for what ``beats`` sends now on ``connection``."""
        return (
            self._connection is connection
            and self._beats is beats
            and self._key is beats.beat_key
            and self._request is beats.beat_request
        )

    def wake(self, wake_us: int) -> None:
        """The process is woken: it sends a heartbeat if that is all there is to do."""
        process = self._process
        if wake_us != process.armed_us:
            return
        beats = self._beats
        up = self._up
        link = up.link
        if (
            link.clear
            and self._connection.state is _OPEN
            and process.state is not _PAUSED
            and self._request is beats.beat_request
            and self._key is beats.beat_key
        ):
            correlation_id = beats.beat(wake_us // 1000)
            if correlation_id:
                cause = self._world.cause = process.wake_cause
                sent = 0
                if self._trace is not None:
                    sent = self._trace.sent(wake_us, cause, correlation_id)
                delay_us = link.fixed_us
                if delay_us < 0:
                    delay_us = link.delay_us()
                arrives_us = wake_us + delay_us
                if arrives_us < up.last_us:  # noqa: PLR1730 - max() would cost a call
                    arrives_us = up.last_us
                up.last_us = arrives_us
                heap, tick = self._heap, self._tick
                arrived = (correlation_id, self._version, self._request, sent)
                heappush(heap, (arrives_us, tick(), self._on_arrival, arrived))
                process.armed_us = next_us = beats.next_beat_ms * 1000
                heappush(heap, (next_us, tick(), self._on_wake, next_us))
                return
        process.wake(wake_us)

    def _arrive(self, arrived: Arrived) -> None:
        connection = self._connection
        down = self._down
        link = down.link
        if (
            link.clear
            and connection.accepted
            and not (connection.busy or connection.queue)  # a FIN comes behind all requests
        ):
            now_us = self._kernel.now_us
            refreshes = self._refreshes
            if refreshes is not None and refreshes(self._request, now_us // 1000):
                self._server.requests += 1
                correlation_id, _, _, sent = arrived
                if self._trace is not None:
                    sent = self._trace.served(now_us, sent, correlation_id)
                    self._world.cause = sent - 1
                delay_us = link.fixed_us
                if delay_us < 0:
                    delay_us = link.delay_us()
                arrives_us = now_us + delay_us
                if arrives_us < down.last_us:  # noqa: PLR1730
                    arrives_us = down.last_us
                down.last_us = arrives_us
                answered = (correlation_id, HEARTBEAT_OK, sent)
                heappush(self._heap, (arrives_us, self._tick(), self._on_answer, answered))
                return
        connection.request_arrives(arrived)

    def _answer(self, answer: Answered) -> None:
        if self._connection.state is _OPEN and self._process.state is not _PAUSED:
            correlation_id, response, sent = answer
            now_us = self._kernel.now_us
            if self._beats.beat_answered(correlation_id, response, now_us // 1000):
                if self._deliver is not None:
                    self._world.cause = self._deliver(now_us, sent, sent)
                return
        self._connection.response_arrives(answer)
