"""The in-process server: brokers that users' own trio clients talk to.

``ServerConnection`` is the comfortable end: ``await connection.request(JoinGroupRequest(...))``. Below it is
``FrameChannel``, a trio channel of msgpack frames (``groupsim.runtime.frames``), for those who want to bring
their own encoding and their own bookkeeping of correlation ids. Either way the messages go over the
simulated network, with its latency and its faults, and stand in the trace like any others.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import trio

from groupsim.protocol.messages import API_OF_REQUEST, Request
from groupsim.runtime.connection import Answered, Connection, ConnectionState, Server
from groupsim.runtime.frames import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from groupsim.runtime.network import Network
from groupsim.runtime.world import World

__all__ = ["ConnectionLost", "FrameChannel", "ServerConnection"]


class ConnectionLost(Exception):  # noqa: N818 - a condition of the network, not a mistake
    """The connection is gone: closed, refused, reset, or never opened. ``reason`` says which."""

    def __init__(self, connection: str, reason: str) -> None:
        self.connection = connection
        self.reason = reason
        super().__init__(f"connection {connection} is gone: {reason}")


class FrameChannel(trio.abc.Channel[bytes]):
    """A client's end of a connection, as a channel of frames. Made by ``env.connect_frames``."""

    def __init__(self, world: World, name: str, client_id: str, host: str) -> None:
        self.name = name
        self.client_id = client_id
        self.host = host
        self._world = world
        self._connection: Connection | None = None
        self._inbound, self._arrived = trio.open_memory_channel[bytes](math.inf)
        self._opened = trio.Event()
        self._reason = ""

    async def dial(self, network: Network, connection_name: str, server: Server) -> None:
        """Open the connection.

        Raises:
            ConnectionLost: it was refused, or not answered in time.

        """
        self._connection = Connection(network, connection_name, self, server)
        try:
            await self._opened.wait()
        except trio.Cancelled:
            self._close("given up")
            raise
        if self._reason:
            raise ConnectionLost(connection_name, self._reason)

    @property
    def gone(self) -> ConnectionLost:
        """The error that says why the connection is gone."""
        name = "" if self._connection is None else self._connection.name
        return ConnectionLost(name, self._reason or "not opened")

    def post(self, frame: bytes) -> None:
        """Send a frame without waiting (the network takes any number).

        Raises:
            FrameError: the frame is not a request; nothing was sent.
            ConnectionLost: the connection is gone.

        """
        read = decode_request(frame)
        connection = self._connection
        if connection is None or connection.state is not ConnectionState.OPEN:
            raise self.gone
        self._world.cause = 0
        self.client_id = read.client_id
        connection.request(read.correlation_id, read.api_version, read.request)

    async def send(self, value: bytes) -> None:
        """Send a frame; see ``post`` for what it raises."""
        self.post(value)
        await trio.lowlevel.checkpoint()

    async def receive(self) -> bytes:
        """Return the next frame that the broker sent.

        Raises:
            ConnectionLost: there is none and will be none.

        """
        try:
            return await self._arrived.receive()
        except trio.EndOfChannel:
            raise self.gone from None

    async def aclose(self) -> None:
        """Close the connection."""
        self._close("closed by the client")
        await trio.lowlevel.checkpoint()

    def _close(self, reason: str) -> None:
        if self._connection is not None and self._connection.state is not ConnectionState.CLOSED:
            self._world.cause = 0
            self._connection.close(reason)
            self._ended(reason)

    def _ended(self, reason: str) -> None:
        self._reason = self._reason or reason
        self._inbound.close()
        self._opened.set()
        self._world.kernel.wake()

    def _frame(self, _correlation_id: int, frame: bytes) -> None:
        self._inbound.send_nowait(frame)
        self._world.kernel.wake()

    # called by the network

    def opened(self, connection: Connection) -> None:
        """See ``ClientEnd``."""
        connection.flush()
        self._opened.set()
        self._world.kernel.wake()

    def answered(self, _connection: Connection, answer: Answered) -> None:
        """See ``ClientEnd``."""
        correlation_id, response, sent = answer
        world = self._world
        if world.trace is not None:
            world.cause = world.trace.deliver(world.kernel.now_us, sent, sent)
        self._frame(correlation_id, encode_response(correlation_id, response))

    def lost(self, connection: Connection) -> None:
        """See ``ClientEnd``."""
        self._ended(connection.reason)


class ServerConnection(FrameChannel):
    """A connection to a broker that matches answers to requests. Made by ``env.connect``.

    Several tasks may have requests on one connection at a time; the broker handles them in order,
    so a parked JoinGroup holds back what is sent behind it. Use it as an async context manager, or
    call ``aclose``.
    """

    def __init__(self, world: World, name: str, client_id: str, host: str) -> None:
        super().__init__(world, name, client_id, host)
        self._next_id = 0
        self._waiting: dict[int, trio.MemorySendChannel[bytes]] = {}

    async def request(self, request: Request, api_version: int | None = None) -> Any:
        """Send a request and wait for its response (``api_version`` None: the newest).

        The result is the response's value, such as ``JoinGroupResponse`` for a
        ``JoinGroupRequest``. When the wait is cancelled, the request stays sent and its answer is
        thrown away.

        Raises:
            FrameError: the request or its version is none that the server knows.
            ConnectionLost: the connection went before the answer came.

        """
        api = API_OF_REQUEST[type(request)]
        correlation_id = self._next_id
        self._next_id += 1
        version = api.max_version if api_version is None else api_version
        self.post(
            encode_request(
                request,
                api_version=version,
                correlation_id=correlation_id,
                client_id=self.client_id,
            )
        )
        answer, arrived = trio.open_memory_channel[bytes](1)
        self._waiting[correlation_id] = answer
        try:
            return decode_response(await arrived.receive(), api.key)[1]
        except trio.EndOfChannel:
            raise self.gone from None
        finally:
            self._waiting.pop(correlation_id, None)

    def _frame(self, correlation_id: int, frame: bytes) -> None:
        answer = self._waiting.pop(correlation_id, None)
        if answer is not None:
            answer.send_nowait(frame)
            self._world.kernel.wake()

    def _ended(self, reason: str) -> None:
        super()._ended(reason)
        for answer in self._waiting.values():  # one task at a time learns of it, in order
            self._world.kernel.after(0, partial(self._give_up, answer))
        self._waiting.clear()

    def _give_up(self, answer: trio.MemorySendChannel[bytes]) -> None:
        answer.close()
        self._world.kernel.wake()
