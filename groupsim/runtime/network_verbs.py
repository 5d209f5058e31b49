"""The verbs about the network: latencies, cuts, messages that get lost.

What all verbs have in common is told in ``simulation``.
"""

from __future__ import annotations

from groupsim.protocol.messages import ApiKey
from groupsim.runtime.cluster import Cluster
from groupsim.runtime.latency import Latency
from groupsim.runtime.network import Direction, DropHow, Network, Selector
from groupsim.runtime.world import World

__all__ = ["NetworkVerbs"]


class NetworkVerbs:
    """The part of ``Simulation`` that acts on the links between clients and brokers.

    Clients are named by shell patterns, brokers by node id (none: all); a node id that no broker has
    raises UnknownBrokerError.
    """

    world: World
    network: Network
    cluster: Cluster

    def set_link(
        self,
        *,
        to_broker: Latency | None = None,
        to_client: Latency | None = None,
        clients: tuple[str, ...] = ("*",),
        brokers: tuple[int, ...] = (),
        cause: int = 0,
    ) -> int:
        """Change latencies between the clients (shell patterns) and the brokers (none: all)."""
        event = 0
        for latency, direction in (
            (to_broker, Direction.TO_BROKER),
            (to_client, Direction.TO_CLIENT),
        ):
            if latency is not None:
                self.world.cause = cause
                selector = self._selector(clients, brokers, direction)
                event = self.network.set_latency(selector, latency)
        return event

    def cut(
        self,
        clients: tuple[str, ...] = ("*",),
        brokers: tuple[int, ...] = (),
        direction: str = "both",
        *,
        cause: int = 0,
    ) -> int:
        """Let nothing through between these, in one direction or both, until it is healed."""
        self.world.cause = cause
        return self.network.cut(self._selector(clients, brokers, Direction(direction)))

    def heal(
        self,
        clients: tuple[str, ...] = ("*",),
        brokers: tuple[int, ...] = (),
        direction: str = "both",
        *,
        cause: int = 0,
    ) -> int:
        """Undo cuts; what was held back arrives now."""
        self.world.cause = cause
        return self.network.heal(self._selector(clients, brokers, Direction(direction)))

    def drop_next(
        self,
        clients: tuple[str, ...] = ("*",),
        brokers: tuple[int, ...] = (),
        direction: str = "both",
        *,
        api: ApiKey | None = None,
        count: int = 1,
        how: str = "reset",
        cause: int = 0,
    ) -> int:
        """Lose the next messages that fit: "reset" breaks their connection, "black-hole" swallows
        them and all that follow on it.
        """
        self.world.cause = cause
        selector = self._selector(clients, brokers, Direction(direction))
        return self.network.drop(selector, api, count, DropHow(how))

    def _selector(
        self, clients: tuple[str, ...], brokers: tuple[int, ...], direction: Direction
    ) -> Selector:
        for node_id in brokers:
            self.cluster.broker(node_id)
        return Selector(clients=tuple(clients), brokers=tuple(brokers), direction=direction)
