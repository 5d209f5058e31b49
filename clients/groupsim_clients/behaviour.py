"""What differs between Java consumers of different age: named switches in one frozen value.

The current client is the default of every field. A profile is ``dataclasses.replace(CURRENT, ...)``
with the few switches that it turns, so that the differences can be read in one place.
"""

from __future__ import annotations

from typing import Any

from groupsim.protocol.messages import ApiKey, message

__all__ = ["CURRENT", "Behaviour", "versions"]


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
        session_timeout_loses_membership: without contact for ``session.timeout.ms`` the member takes
            itself for expelled; otherwise only the coordinator is looked up again (CH-06).

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
    session_timeout_loses_membership: bool = False

    forgets_member_id: bool = False
    member_id_required_is_fatal: bool = False
    heartbeats_only_in_poll: bool = False
    heartbeats_stop_on_rebalance: bool = False
    rebalance_answer_is_contact: bool = True
    rejoins_after_fencing: bool = False
    never_syncs: bool = False
    impatient_join: bool = False


CURRENT = Behaviour()
