"""What a script (an ``async`` function of the user) gets to work with.

    async def script(env: Environment) -> None:
        await env.sleep(5)
        env.simulation.crash("c-1")
        async with await env.connect() as connection:
            response = await connection.request(ListGroupsRequest())

Scripts are trio tasks in the virtual time of the run; plain ``trio.sleep`` works as well. At one
instant a wait of the environment keeps its place among the kernel's actions, while trio's own
deadlines come before all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupsim.runtime.server import FrameChannel, ServerConnection
from groupsim.runtime.waiting import KernelEvent, sleep_until_us, sleep_us

if TYPE_CHECKING:
    from groupsim.runtime.simulation import Simulation

__all__ = ["Environment"]


class Environment:
    """A script's view of its simulation. ``name`` is the script's, as the trace shows it."""

    def __init__(self, simulation: Simulation, name: str) -> None:
        self.simulation = simulation
        self.name = name

    @property
    def now_us(self) -> int:
        """The virtual time in microseconds."""
        return self.simulation.kernel.now_us

    async def sleep(self, seconds: float) -> None:
        """Wait for so many virtual seconds, rounded to the microsecond.

        Raises:
            ValueError: a negative time.

        """
        await self.sleep_us(round(seconds * 1_000_000))

    async def sleep_us(self, duration_us: int) -> None:
        """Wait for so many virtual microseconds.

        Raises:
            ValueError: a negative time.

        """
        await sleep_us(self.simulation.kernel, duration_us)

    async def sleep_until_us(self, time_us: int) -> None:
        """Wait until the virtual time is ``time_us``."""
        await sleep_until_us(self.simulation.kernel, time_us)

    def event(self) -> KernelEvent:
        """Make an event whose waiters are woken one at a time."""
        return KernelEvent(self.simulation.kernel)

    def draw(self, stream: str, bound: int) -> int:
        """Return the next integer in [0, bound) of a random stream that is the script's own."""
        streams = self.simulation.world.streams
        return streams.stream(f"script/{self.name}/{stream}").below(bound)

    def log(self, sentence: str) -> None:
        """Write a sentence to the trace."""
        world = self.simulation.world
        world.cause = 0
        world.event("script", who=self.name, sentence=sentence)

    async def connect(
        self, broker: int | None = None, *, name: str | None = None, client_id: str | None = None
    ) -> ServerConnection:
        """Open a connection to a broker by its node id (None: the first that is up).

        ``name`` is what network rules and the trace call this client, by default the script's
        name; ``client_id`` goes into the requests and defaults to it.

        Raises:
            ConnectionLost: refused, or no answer in time.
            UnknownBrokerError: there is no such broker.

        """
        who = name or self.name
        connection = ServerConnection(self.simulation.world, who, client_id or who, f"/{who}")
        await self._dial(connection, broker)
        return connection

    async def connect_frames(
        self, broker: int | None = None, *, name: str | None = None
    ) -> FrameChannel:
        """As ``connect``, for those who make and read frames themselves."""
        who = name or self.name
        channel = FrameChannel(self.simulation.world, who, who, f"/{who}")
        await self._dial(channel, broker)
        return channel

    async def _dial(self, channel: FrameChannel, broker: int | None) -> None:
        simulation = self.simulation
        node_id = simulation.first_broker_up() if broker is None else broker
        server = simulation.cluster.broker(node_id)
        simulation.world.cause = 0
        await channel.dial(simulation.network, simulation.next_connection_name(), server)
