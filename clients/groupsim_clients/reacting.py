"""Doing what a profile's table of ``reactions`` says; Java's own table is empty.

The third layer of ``AbstractCoordinator``, on ``membership``.
"""

from __future__ import annotations

import abc

from groupsim.protocol.errors import ErrorCode
from groupsim_clients.behaviour import Behaviour
from groupsim_clients.config import ConsumerConfig
from groupsim_clients.errors import JavaError
from groupsim_clients.futures import RequestFuture
from groupsim_clients.generation import NO_GENERATION, Generation, JoinState
from groupsim_clients.machine import AppRaised
from groupsim_clients.membership import Membership
from groupsim_clients.network_client import NetworkClient
from groupsim_clients.reactions import Forget, Pace, Reaction
from groupsim_clients.timing import Context, ExponentialBackoff

__all__ = ["Reacting"]


class Reacting(Membership, abc.ABC):
    """A member whose membership follows such a table."""

    def __init__(
        self,
        ctx: Context,
        config: ConsumerConfig,
        behaviour: Behaviour,
        client: NetworkClient,
    ) -> None:
        super().__init__(ctx, config, behaviour, client)
        self._reactions = dict(behaviour.reactions)
        self._join_reacted = False
        self._failed_sessions = 0
        first_ms, most_ms = behaviour.join_backoff_ms
        self._join_backoff = ExponentialBackoff(ctx, first_ms, most_ms, "join-backoff")

    @property
    @abc.abstractmethod
    def cooperative(self) -> bool:
        """Whether partitions are kept over a rebalance."""

    def reacts(self, api: str, failure: ErrorCode | JavaError) -> bool:
        """Do what the profile's table says of this failure; False: it says nothing."""
        reactions = self._reactions
        if not reactions:
            return False
        code = failure if isinstance(failure, ErrorCode) else None
        reaction = reactions.get((api, code), reactions.get((api, None)))
        if reaction is None:
            return False
        if reaction.unless_rebalancing and self.state is not JoinState.STABLE:
            return True
        error = failure if isinstance(failure, JavaError) else JavaError.of(failure)
        self._react(reaction, error, f"{error.exception} from {api}")
        if api == "join" and reaction.pace is Pace.PACED:
            self.join_not_before_ms += self.behaviour.join_error_delay_ms
        return True

    def told_as(self, api: str, code: ErrorCode) -> JavaError:
        """The error under the name that the application of this client sees."""
        reaction = self._reactions.get((api, code))
        if reaction is None or not reaction.exception:
            return JavaError.of(code)
        return JavaError(reaction.exception, code.message)

    def join_reacts(
        self, api: str, failure: ErrorCode | JavaError, future: RequestFuture[bytes]
    ) -> bool:
        """The same for what fails a join; the join ends with it."""
        if not self.reacts(api, failure):
            return False
        self._join_reacted = True
        future.fail(failure if isinstance(failure, JavaError) else JavaError.of(failure))
        return True

    def _react(self, reaction: Reaction, error: JavaError, reason: str) -> None:
        if reaction.shown:
            self.ctx.note(AppRaised(call="poll", exception=error.exception, detail=error.detail))
        if reaction.unknown_coordinator:
            self.mark_coordinator_unknown(reason)
        if reaction.stops_heartbeats:
            if self.heartbeat_thread is not None:
                self.heartbeat_thread.enabled = False
            return
        if reaction.fatal:
            self.dead = error
        generation = self.generation
        if reaction.forget is Forget.MEMBER_ID:
            generation = NO_GENERATION
        elif reaction.forget is Forget.GENERATION:
            generation = Generation(-1, generation.member_id, None)
        state = self.state
        if reaction.lost or (reaction.lost_if_cooperative and self.cooperative):
            self.loses_all = self.needs_join_prepare = True
            state = JoinState.UNJOINED
        self.set_state(state, reason, generation)
        if reaction.rejoin:
            self.request_rejoin(reason)
        if reaction.pace is Pace.AT_ONCE:
            self.join_not_before_ms = 0
        elif reaction.pace is Pace.BACKOFF:
            wait_ms = self._join_backoff.backoff(self._failed_sessions)
            self.join_not_before_ms = self.ctx.now_ms + wait_ms
            self._failed_sessions += 1
