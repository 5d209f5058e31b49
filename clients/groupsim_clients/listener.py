"""Calling the application's rebalance listener (``ConsumerRebalanceListenerInvoker``).

A listener is a generator function, so a callback can take time; the heartbeat thread goes on
meanwhile. What it raises is handed back to the caller, except wakeups, which fly on (CJ-17).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from groupsim.protocol.consumer_protocol import TopicPartition
from groupsim_clients.errors import JavaError, WakeupError
from groupsim_clients.machine import CallbackNote, Ownership
from groupsim_clients.subscription_state import SubscriptionState, partitions_text
from groupsim_clients.timing import Context, Steps

__all__ = ["ListenerInvoker", "RebalanceListener"]

Partitions = tuple[TopicPartition, ...]

_SENTENCES = {
    "assigned": "Adding newly assigned partitions: ",
    "revoked": "Revoke previously assigned partitions ",
    "lost": "Lost previously assigned partitions ",
}


class RebalanceListener(Protocol):
    """The application's side of a rebalance. ``callback`` is assigned, revoked or lost."""

    def call(self, callback: str, partitions: Partitions) -> Steps[None]:
        """Run the callback; may take time and raise ``JavaError``."""
        ...


class ListenerInvoker:
    """Runs callbacks and tells the trace about them and about ownership."""

    def __init__(
        self,
        ctx: Context,
        subscriptions: SubscriptionState,
        generation_id: Callable[[], int],
    ) -> None:
        self._ctx = ctx
        self._subscriptions = subscriptions
        self._generation_id = generation_id
        self.listener: RebalanceListener | None = None
        self.blocks_heartbeats = 0
        """1 when nothing else of the client runs during a callback (``Context.lock_depth``)."""

    def invoke(self, callback: str, partitions: Partitions) -> Steps[JavaError | None]:
        """Call the listener; returns what it raised.

        Raises:
            WakeupError: the callback was woken; nothing after it happens.

        """
        self._ctx.log("info", _SENTENCES[callback] + partitions_text(partitions))
        if callback != "assigned":
            paused = [p for p in partitions if self._is_paused(p)]
            if paused:
                why = "revocation" if callback == "revoked" else "partition lost"
                self._ctx.log(
                    "info",
                    f"The pause flag in partitions {partitions_text(paused)} will be removed due to {why}.",
                )
        self._ctx.note(CallbackNote(callback=callback, phase="started", partitions=partitions))
        if callback == "assigned":  # in place before the callback, CC-09
            self._ownership(callback, partitions, self._subscriptions.assigned())
        error = None
        if self.listener is not None:
            self._ctx.lock_depth += self.blocks_heartbeats
            try:
                yield from self.listener.call(callback, partitions)
            except WakeupError:
                self._ctx.note(
                    CallbackNote(callback=callback, phase="raised", partitions=partitions)
                )
                raise
            except JavaError as raised:
                error = raised
                self._ctx.log(
                    "error",
                    f"User provided listener failed on invocation of onPartitions"
                    f"{callback.capitalize()} for partitions {partitions_text(partitions)}",
                )
            finally:
                self._ctx.lock_depth -= self.blocks_heartbeats
        phase = "finished" if error is None else "raised"
        self._ctx.note(CallbackNote(callback=callback, phase=phase, partitions=partitions))
        return error

    def unchanged(self) -> None:
        """Tell the trace that a rebalance is over for a member whose application is not told."""
        self._ownership("assigned", (), self._subscriptions.assigned())

    def gave_up(self, callback: str, partitions: Partitions) -> None:
        """Tell the trace that partitions left the assignment, after they did."""
        self._ownership(callback, partitions, self._subscriptions.assigned())

    def _ownership(self, change: str, partitions: Partitions, owned: Partitions) -> None:
        self._ctx.note(
            Ownership(
                change=change,
                partitions=partitions,
                owned=owned,
                generation_id=self._generation_id(),
            )
        )

    def _is_paused(self, partition: TopicPartition) -> bool:
        state = self._subscriptions.assignment.get(partition)
        return state is not None and state.paused
