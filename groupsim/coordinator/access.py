"""What the coordinator asks the world: who may do what, which topics exist, whether a log writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from groupsim.coordinator.effects import Append
from groupsim.coordinator.outbox import Answer
from groupsim.protocol.errors import ErrorCode

__all__ = ["Authorizer", "Call", "LogGate", "Permit", "TopicCatalogue", "TransactionVerifier"]


class Authorizer(Protocol):
    """Kafka's authorizer, as far as groups need it."""

    def allows(self, client_id: str, operation: str, resource: str, name: str) -> bool:
        """Whether a client may do ``operation`` (READ, WRITE, DESCRIBE, DELETE) on the
        ``resource`` (GROUP, TOPIC, TRANSACTIONAL_ID, CLUSTER) called ``name``.
        """


class TopicCatalogue(Protocol):
    """The cluster's topics, as the broker's metadata cache knows them."""

    def partition_count(self, topic: str) -> int | None:
        """Number of partitions; ``None`` when there is no such topic."""

    def topic_id(self, topic: str) -> str:
        """Id of a topic, "" when it is not known."""

    def topic_name(self, topic_id: str) -> str | None:
        """Name of the topic with this id."""


TransactionVerifier: TypeAlias = Callable[[str, int, int, int], ErrorCode]
"""Asks the transaction coordinator about (transactional id, producer id, epoch, API version):
NONE when the transaction is open, else its error (O-11)."""


LogGate: TypeAlias = Callable[[Append], ErrorCode]
"""Asks the broker's own log whether it takes a batch: anything but NONE refuses it, and what waits
for it fails inside the running event, as when Kafka's ``PartitionWriter.append`` throws."""


class Permit:
    """An authorizer bound to one caller; without an authorizer everything is allowed."""

    __slots__ = ("_authorizer", "_client_id")

    def __init__(self, authorizer: Authorizer | None, client_id: str) -> None:
        self._authorizer = authorizer
        self._client_id = client_id

    def allows(self, operation: str, resource: str, name: str) -> bool:
        """Whether the caller may do this."""
        return self._authorizer is None or self._authorizer.allows(
            self._client_id, operation, resource, name
        )


class Call:
    """A request's envelope: where its answer goes, its version, who sent it.

    ``started`` tells whether the component is running (C-03).
    """

    __slots__ = ("answer", "api_version", "client_host", "client_id", "permit", "started")

    def __init__(
        self, answer: Answer, permit: Permit, client_id: str, client_host: str, *, started: bool
    ) -> None:
        self.answer = answer
        self.api_version = answer.api_version
        self.permit = permit
        self.client_id = client_id
        self.client_host = client_host
        self.started = started
