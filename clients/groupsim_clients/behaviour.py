"""What differs between clients: named switches in one frozen value.

The current Java client is the default of every field. A profile is ``dataclasses.replace(CURRENT,
...)`` with the switches that it turns, so that the differences can be read in one place.
"""

from __future__ import annotations

import enum
from typing import Any

from groupsim.protocol.messages import ApiKey, message
from groupsim_clients.reactions import Reactions

__all__ = ["CURRENT", "Background", "Behaviour", "SessionTimeout", "SyncTimeout", "versions"]


class Background(enum.Enum):
    """What goes on while the application is busy and does not poll, besides heartbeats."""

    NOTHING = "nothing"
    ANSWERS = "answers"
    """Answers are handled, so a join and its SyncGroup go on; callbacks wait for a poll."""
    EVERYTHING = "everything"
    """The whole membership, callbacks included."""


class SessionTimeout(enum.Enum):
    """What follows ``session.timeout.ms`` without an answer that counts."""

    LOOKUP = "lookup"
    """The coordinator is looked up again, nothing else (CH-06)."""
    EXPELLED = "expelled"
    """The member takes itself for expelled: the id is forgotten, everything is lost."""
    SESSION_FAILS = "session fails"
    """Everything is lost, the member id is kept; the next join comes after a backoff."""


class SyncTimeout(enum.Enum):
    """How long a SyncGroup may take."""

    REQUEST = "request.timeout.ms"
    SESSION = "session.timeout.ms and three seconds"
    REBALANCE = "the rebalance timeout and ten seconds"


def versions(**by_name: int) -> tuple[tuple[ApiKey, int], ...]:
    """Pairs (API, version) from names as in ``ApiKey``: ``versions(JOIN_GROUP=9)``."""
    return tuple((ApiKey[name], version) for name, version in by_name.items())


@message
class Behaviour:
    """The switches of the shared machinery.

    Attributes:
        name: of the profile, for messages.
        api_versions: the version that is sent of each API. OffsetCommit and OffsetFetch stay at 9:
            the classic consumer names topics and 10 knows ids only.
        subscription_version: version of the consumer protocol that is written (W-01).
        defaults: options whose default differs from Kafka's current one.
        merged_rebalancing_state: one state REBALANCING stands for the two middle ones.
        heartbeats_while_syncing: the heartbeat thread is enabled by the JoinGroup answer (1.4);
            otherwise it is switched off when a join starts and on when the member is stable.
        failed_join_unjoins: every failed join or sync ends in UNJOINED (1.2).
        join_reset_needs_same_generation: UNKNOWN_MEMBER_ID on JoinGroup resets only when the
            generation is the one that was sent (CR-03).
        illegal_generation_keeps_member_id: ILLEGAL_GENERATION costs the generation alone (1.5).
        member_id_required_resets: MEMBER_ID_REQUIRED resets the state as well (CR-12).
        join_retries_rebalance_in_progress: REBALANCE_IN_PROGRESS on JoinGroup is retried (CR-13).
        join_timeout_at_least_request_timeout: see CJ-23.
        checks_protocol: protocol type and name of answers are compared (CR-01, CS-20).
        sync_names_protocol: SyncGroup carries protocol type and name (CS-01).
        honours_skip_assignment: KIP-814 (CS-07).
        trusts_cooperative_sticky: the built-in cooperative assignor is not validated (CS-09).
        trusts_builtin_topics: topics outside the subscriptions are looked for only in the plans of
            foreign assignors (CS-10).
        wiped_sync_retries_at_once: a generation wiped while syncing fails the join as
            ILLEGAL_GENERATION (CS-20); otherwise the future succeeds and the join loop notices.
        state_names: names of the four states, in the order of ``JoinState``.
        background: see ``Background``.
        reactions: error codes that are handled in another way than Java's.
        join_interval_ms: the least time between the starts of two joins.
        join_error_delay_ms: how much longer it is after an error on JoinGroup.
        join_backoff_ms: first and greatest backoff of ``Pace.BACKOFF``.
        join_timeout_extra_ms: JoinGroup may take the rebalance timeout and so much more (CJ-23).
        sync_timeout: see ``SyncTimeout``.
        session_timeout: see ``SessionTimeout``.
        lookup_is_contact: finding the coordinator restarts the session timer (CJ-04).
        enforces_poll_interval: leaves when the application does not poll (CH-07, CL-03).
        one_heartbeat_at_a_time: no heartbeat leaves while one is unanswered (CH-04).
        retries_heartbeats: a failed heartbeat is followed by another after a backoff (CH-03);
            otherwise by the next one, an interval after it.
        heartbeat_timer_runs_on: the interval counts from the last heartbeat, also across a join.
        early_heartbeat_ms: a first heartbeat so soon after a COOPERATIVE join; 0: none.
        callbacks_block_heartbeats: heartbeats and answers wait for the end of a callback.
        stable_when_polled: the member is stable when the application polls, not when the SyncGroup
            answer is in.
        reset_repeats_prepare: a reset during a join has the prepare step done again (1.5).
        join_reset_loses: MEMBER_ID_REQUIRED costs a COOPERATIVE member what it still holds.
        static_unsubscribe_leaves: a static member that unsubscribes sends LeaveGroup (CL-02).
        protocol_follows_group: eager or cooperative is what the chosen assignor is, each time.
        existing_topics_only: topics that do not exist are not in the subscription, and there is no
            join before one exists.
        everybody_watches: a follower rejoins as well when its own topics' partitions change (CP-05).
        leader_waits_for_metadata: see CS-05.
        leaves_out_bad_members: members whose subscription cannot be read get nothing (CS-04).
        plans_when_skipped: told to skip, the leader assigns all the same and rejoins if its own part
            has changed (CS-07).
        revokes_before_first_join: the EAGER revoked callback comes before the first join, too.
        revokes_at_session_end: the COOPERATIVE one comes before every rejoin, if empty.
        changes_before_revoking: a COOPERATIVE member changes its assignment, then calls back (CC-05).
        tells_unchanged: the assigned callback comes with nothing new as well (CC-10).
        lost_falls_back_to_revoked: without an on_lost callback on_revoked is called (CC-23).
        cooperative_subscription_version: written with cooperative-sticky, if another.
        assignment_version: of the consumer protocol, written by the leader, if another.
        simple_generation: subscriptions of range and roundrobin carry the generation.

    The switches from ``forgets_member_id`` on belong to no client of today: see ``misbehaviour``.

    """

    name: str = "java"
    api_versions: tuple[tuple[ApiKey, int], ...] = versions(
        METADATA=13,
        FIND_COORDINATOR=6,
        JOIN_GROUP=9,
        SYNC_GROUP=5,
        HEARTBEAT=4,
        LEAVE_GROUP=5,
        OFFSET_COMMIT=9,
        OFFSET_FETCH=9,
    )
    subscription_version: int = 3
    defaults: tuple[tuple[str, Any], ...] = ()
    merged_rebalancing_state: bool = False
    heartbeats_while_syncing: bool = True
    failed_join_unjoins: bool = False
    join_reset_needs_same_generation: bool = True
    illegal_generation_keeps_member_id: bool = True
    member_id_required_resets: bool = False
    join_retries_rebalance_in_progress: bool = True
    join_timeout_at_least_request_timeout: bool = True
    checks_protocol: bool = True
    sync_names_protocol: bool = True
    honours_skip_assignment: bool = True
    trusts_cooperative_sticky: bool = True
    trusts_builtin_topics: bool = True
    wiped_sync_retries_at_once: bool = True

    state_names: tuple[str, ...] = ()
    background: Background = Background.NOTHING
    reactions: Reactions = ()
    join_interval_ms: int = 0
    join_error_delay_ms: int = 0
    join_backoff_ms: tuple[int, int] = (250, 5_000)
    join_timeout_extra_ms: int = 5_000  # AbstractCoordinator.JOIN_GROUP_TIMEOUT_LAPSE
    sync_timeout: SyncTimeout = SyncTimeout.REQUEST
    session_timeout: SessionTimeout = SessionTimeout.LOOKUP
    lookup_is_contact: bool = True
    enforces_poll_interval: bool = True
    one_heartbeat_at_a_time: bool = False
    retries_heartbeats: bool = True
    heartbeat_timer_runs_on: bool = False
    early_heartbeat_ms: int = 0
    callbacks_block_heartbeats: bool = False
    stable_when_polled: bool = False
    reset_repeats_prepare: bool = True
    join_reset_loses: bool = False
    static_unsubscribe_leaves: bool = False
    protocol_follows_group: bool = False
    existing_topics_only: bool = False
    everybody_watches: bool = False
    leader_waits_for_metadata: bool = True
    leaves_out_bad_members: bool = False
    plans_when_skipped: bool = False
    revokes_before_first_join: bool = False
    revokes_at_session_end: bool = False
    changes_before_revoking: bool = False
    tells_unchanged: bool = True
    lost_falls_back_to_revoked: bool = True
    cooperative_subscription_version: int | None = None
    assignment_version: int | None = None
    simple_generation: bool = True

    forgets_member_id: bool = False
    member_id_required_is_fatal: bool = False
    heartbeats_only_in_poll: bool = False
    heartbeats_stop_on_rebalance: bool = False
    rebalance_answer_is_contact: bool = True
    rejoins_after_fencing: bool = False
    never_syncs: bool = False
    impatient_join: bool = False


CURRENT = Behaviour()
