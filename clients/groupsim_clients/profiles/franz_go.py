"""franz-go 1.21 (kgo), classic protocol: the whole membership runs beside the application.

One loop joins, syncs and holds a *session*; callbacks run in it, so a busy application delays nothing
and no poll interval is enforced. A session ends with REBALANCE_IN_PROGRESS, which is the normal end,
or fails: then everything is lost, the application gets an error record, and after a backoff the loop
joins again with the member id that it had. ``max.poll.interval.ms`` stands for the rebalance timeout
(60 s), which is a setting of its own there; ``rebalance.timeout.ms`` is understood as well. The
functions named below are those of ``pkg/kgo/consumer_group.go`` unless another file is given.

Not modelled: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE and NOT_COORDINATOR are retried
inside the request layer (Java's join loop and heartbeat backoff instead); commits are not held back
between JoinGroup and SyncGroup; the default revoke callback's synchronous commit (the automatic commit
before a rejoin instead); BlockRebalanceOnPoll; callbacks delay the end of processing when both go on
at once; its own sticky algorithm; the guess who leads, which needs JoinGroup below version 9; the text
of reasons.
"""

from __future__ import annotations

import dataclasses

from groupsim.protocol.errors import ErrorCode
from groupsim_clients.assignors.variants import FRANZ_GO as ASSIGNORS
from groupsim_clients.assignors.variants import maker
from groupsim_clients.behaviour import (
    CURRENT,
    Background,
    SessionTimeout,
    SyncTimeout,
)
from groupsim_clients.errors import ConfigError
from groupsim_clients.machine import ClientEnvironment, ClientMachine, ClientSpec
from groupsim_clients.profiles._factory import CONFIG_NAMES, build
from groupsim_clients.reactions import AS_JAVA, Forget, Pace, Reaction, table

__all__ = ["FRANZ_GO", "franz_go"]

_REBALANCE_TIMEOUT = "rebalance.timeout.ms"
_FAILS = Reaction(lost=True, shown=True, pace=Pace.BACKOFF)  # manageFailWait

REACTIONS = table(
    {
        # handleJoinResp
        ("join", ErrorCode.MEMBER_ID_REQUIRED): AS_JAVA,
        ("join", ErrorCode.UNKNOWN_MEMBER_ID): Reaction(forget=Forget.MEMBER_ID),
        ("join", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS): AS_JAVA,
        ("join", ErrorCode.COORDINATOR_NOT_AVAILABLE): AS_JAVA,
        ("join", ErrorCode.NOT_COORDINATOR): AS_JAVA,
        ("join", None): _FAILS,
        # joinAndSync, handleSyncResp
        ("sync", ErrorCode.REBALANCE_IN_PROGRESS): AS_JAVA,
        ("sync", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS): Reaction(pace=Pace.BACKOFF),
        ("sync", ErrorCode.COORDINATOR_NOT_AVAILABLE): AS_JAVA,
        ("sync", ErrorCode.NOT_COORDINATOR): AS_JAVA,
        ("sync", None): _FAILS,
        # heartbeat
        ("heartbeat", ErrorCode.REBALANCE_IN_PROGRESS): AS_JAVA,
        ("heartbeat", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS): AS_JAVA,
        ("heartbeat", ErrorCode.COORDINATOR_NOT_AVAILABLE): AS_JAVA,
        ("heartbeat", ErrorCode.NOT_COORDINATOR): AS_JAVA,
        ("heartbeat", None): _FAILS,
        # commit, commitHasFatalMemberError
        ("commit", ErrorCode.UNKNOWN_MEMBER_ID): Reaction(),
        ("commit", ErrorCode.ILLEGAL_GENERATION): Reaction(),
        ("commit", ErrorCode.REBALANCE_IN_PROGRESS): Reaction(rejoin=False),
        # balanceGroup
        ("assignor", None): _FAILS,
    }
)

FRANZ_GO = dataclasses.replace(
    CURRENT,
    name="franz-go",
    defaults=(  # defaultCfg (config.go)
        ("partition.assignment.strategy", ("cooperative-sticky",)),
        ("max.poll.interval.ms", 60_000),  # rebalanceTimeout
        ("request.timeout.ms", 10_000),  # requestTimeoutOverhead
        ("retry.backoff.ms", 250),
        ("retry.backoff.max.ms", 5_000),
        ("auto.offset.reset", "earliest"),
    ),
    state_names=("between sessions", "joining", "syncing", "in session"),
    background=Background.EVERYTHING,
    reactions=REACTIONS,
    join_backoff_ms=(250, 5_000),  # defaultCfg (config.go)
    join_timeout_extra_ms=10_000,
    join_timeout_at_least_request_timeout=False,
    sync_timeout=SyncTimeout.REBALANCE,
    session_timeout=SessionTimeout.SESSION_FAILS,
    lookup_is_contact=False,
    enforces_poll_interval=False,
    heartbeats_while_syncing=False,
    one_heartbeat_at_a_time=True,
    early_heartbeat_ms=500,  # heartbeat, cooperativeFastCheck
    protocol_follows_group=True,  # handleJoinResp
    existing_topics_only=True,  # findNewAssignments
    plans_when_skipped=True,  # balanceGroup, joinAndSync
    revokes_at_session_end=True,  # revoke
    lost_falls_back_to_revoked=False,  # initGroup
    checks_protocol=False,
)


def franz_go(spec: ClientSpec, env: ClientEnvironment) -> ClientMachine:
    """A group consumer of franz-go.

    Raises:
        ConfigError: options or work that it would refuse.

    """
    config = dict(spec.config)
    if _REBALANCE_TIMEOUT in config:
        if "max.poll.interval.ms" in config:
            raise ConfigError(
                _REBALANCE_TIMEOUT,
                config[_REBALANCE_TIMEOUT],
                "one of rebalance.timeout.ms and max.poll.interval.ms, which mean the same here",
            )
        config["max.poll.interval.ms"] = config.pop(_REBALANCE_TIMEOUT)
        spec = dataclasses.replace(spec, config=config)
    return build(spec, env, FRANZ_GO, maker(ASSIGNORS))


franz_go.config_names = tuple(sorted((*CONFIG_NAMES, _REBALANCE_TIMEOUT)))  # type: ignore[attr-defined]
