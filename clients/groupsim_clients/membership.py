"""What a member knows of its own membership, and how that changes (rule book 1.1 to 1.6).

The second layer of ``AbstractCoordinator``, on ``coordinator_lookup``: state and generation, resets, and
the wish to join again with its reason.
"""

from __future__ import annotations

from groupsim.protocol.errors import ErrorCode
from groupsim_clients.coordinator_lookup import CoordinatorLookup
from groupsim_clients.errors import JavaError
from groupsim_clients.generation import NO_GENERATION, Generation, JoinState
from groupsim_clients.machine import MemberState

__all__ = ["MAX_REASON_LENGTH", "Membership"]

MAX_REASON_LENGTH = 255  # JoinGroupRequest.maybeTruncateReason


class Membership(CoordinatorLookup):
    """One member's view of itself.

    Attributes:
        state, generation: change through ``set_state`` only.
        rejoin_needed: a join is wanted; ``rejoin_reason`` goes into its JoinGroup.
        needs_join_prepare: the next join begins with the prepare step (CJ-11).
        join_not_before_ms: no JoinGroup before this time; always past for clients that do not pace
            joins.
        loses_all: what is held is lost, although generation and member id may be kept.
        dead: the fatal error after which the member never joins again.

    """

    state = JoinState.UNJOINED
    generation = NO_GENERATION
    rejoin_needed = True
    rejoin_reason = ""
    needs_join_prepare = True
    join_not_before_ms = 0
    loses_all = False
    dead: JavaError | None = None

    @property
    def is_stable(self) -> bool:
        """Whether the member has its assignment."""
        return self.state is JoinState.STABLE

    @property
    def heartbeats_wanted(self) -> bool:
        """Whether the state is one in which heartbeats go out (1.1)."""
        if self.behaviour.heartbeats_while_syncing:
            return self.state is JoinState.STABLE or self.state is JoinState.COMPLETING_REBALANCE
        return self.state is JoinState.STABLE

    def shown_state(self, state: JoinState) -> str:
        """The state's name in this client."""
        if self.behaviour.state_names:
            return self.behaviour.state_names[list(JoinState).index(state)]
        if self.behaviour.merged_rebalancing_state and state.rebalancing:
            return "REBALANCING"
        return state.value

    def set_state(
        self, state: JoinState, reason: str, generation: Generation | None = None
    ) -> None:
        """The one door for changes of state and generation; tells the trace."""
        new = self.generation if generation is None else generation
        if state is self.state and new == self.generation:
            return
        self.state = state
        self.generation = new
        self.ctx.note(
            MemberState(
                state=self.shown_state(state),
                generation_id=new.generation_id,
                member_id=new.member_id,
                reason=reason,
            )
        )

    def reset_on_response_error(self, api: str, code: ErrorCode) -> None:
        """The answer says that we are no member, or not of this generation (1.5)."""
        keep = (
            code == ErrorCode.ILLEGAL_GENERATION
            and self.behaviour.illegal_generation_keeps_member_id
        )
        self._reset_and_rejoin(f"encountered {code.name} from {api} response", keep_member_id=keep)

    def _reset_and_rejoin(self, reason: str, *, keep_member_id: bool = False) -> None:
        what = "" if keep_member_id else "and member id "
        self.ctx.log("info", f"Resetting generation {what}due to: {reason}")
        member_id = self.generation.member_id if keep_member_id else ""
        self.set_state(JoinState.UNJOINED, reason, Generation(-1, member_id, None))
        self.request_rejoin(reason)
        if self.behaviour.reset_repeats_prepare:
            self.needs_join_prepare = True

    def request_rejoin(self, reason: str, full_reason: str | None = None) -> None:
        """Want to join again; ``reason`` goes into the JoinGroup (1.6)."""
        self.ctx.log("info", f"Request joining group due to: {full_reason or reason}")
        self.rejoin_reason = reason
        self.rejoin_needed = True

    def request_rejoin_if_necessary(self, reason: str, full_reason: str) -> None:
        """The same unless a rejoin is wanted already (1.6)."""
        if not self.rejoin_needed:
            self.request_rejoin(reason, full_reason)
