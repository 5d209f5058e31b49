"""librdkafka 2.15 and what is built on it (confluent-kafka for Python, Go, .NET), classic protocol.

Two state machines run in a thread of the library's own: joins are paced, answers are handled while
the application works, and only the rebalance callback waits for the application to poll. The
functions named below are those of ``src/rdkafka_cgrp.c`` unless another file is given.

Not modelled: the coordinator's own states and their query intervals (Java's lookup with its backoff
instead); the wait-assign-call and wait-unassign-call states as states (the callbacks wait for a poll
all the same, and heartbeats go on); the grid of half a second on which ``max.poll.interval.ms`` is
checked; subscription changes that are postponed until a rebalance is over; the commit of stored
offsets of removed partitions only (a member commits all it holds before it gives up something); the
older port of Java's sticky algorithm inside cooperative-sticky.
"""

from __future__ import annotations

import dataclasses

from groupsim.protocol.errors import ErrorCode
from groupsim_clients.assignors.variants import LIBRDKAFKA as ASSIGNORS
from groupsim_clients.assignors.variants import maker
from groupsim_clients.behaviour import (
    CURRENT,
    Background,
    SessionTimeout,
    SyncTimeout,
    versions,
)
from groupsim_clients.machine import ClientEnvironment, ClientMachine, ClientSpec
from groupsim_clients.profiles._factory import CONFIG_NAMES, build
from groupsim_clients.reactions import Forget, Pace, Reaction, table

__all__ = ["LIBRDKAFKA", "librdkafka"]

_PACED = Reaction(pace=Pace.PACED)
_LOOKUP = Reaction(pace=Pace.PACED, unknown_coordinator=True)
_DEAD = Reaction(lost=True, rejoin=False, fatal=True)

REACTIONS = table(
    {
        # rd_kafka_cgrp_handle_JoinGroup; what is shown: rd_kafka_err_action (rdkafka_request.c)
        ("join", ErrorCode.UNKNOWN_MEMBER_ID): Reaction(forget=Forget.MEMBER_ID, pace=Pace.PACED),
        ("join", ErrorCode.ILLEGAL_GENERATION): Reaction(
            forget=Forget.GENERATION, lost_if_cooperative=True, pace=Pace.PACED
        ),
        ("join", ErrorCode.MEMBER_ID_REQUIRED): None,  # as Java; see join_reset_loses
        ("join", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS): _PACED,
        ("join", ErrorCode.COORDINATOR_NOT_AVAILABLE): _LOOKUP,
        ("join", ErrorCode.NOT_COORDINATOR): _LOOKUP,
        ("join", ErrorCode.FENCED_INSTANCE_ID): _DEAD,
        ("join", None): Reaction(shown=True, pace=Pace.PACED),
        # rd_kafka_cgrp_handle_SyncGroup, rd_kafka_cgrp_handle_SyncGroup_memberstate
        ("sync", ErrorCode.UNKNOWN_MEMBER_ID): Reaction(
            forget=Forget.MEMBER_ID, lost_if_cooperative=True, pace=Pace.PACED
        ),
        ("sync", ErrorCode.ILLEGAL_GENERATION): Reaction(
            forget=Forget.GENERATION, lost_if_cooperative=True, pace=Pace.PACED
        ),
        ("sync", ErrorCode.COORDINATOR_NOT_AVAILABLE): _LOOKUP,
        ("sync", ErrorCode.NOT_COORDINATOR): _LOOKUP,
        ("sync", ErrorCode.FENCED_INSTANCE_ID): _DEAD,
        ("sync", None): _PACED,
        # rd_kafka_cgrp_handle_Heartbeat; UNKNOWN_MEMBER_ID and ILLEGAL_GENERATION are as in Java
        ("heartbeat", ErrorCode.FENCED_INSTANCE_ID): _DEAD,
        # rd_kafka_cgrp_op_handle_OffsetCommit
        ("commit", ErrorCode.UNKNOWN_MEMBER_ID): Reaction(forget=Forget.MEMBER_ID, lost=True),
        ("commit", ErrorCode.ILLEGAL_GENERATION): Reaction(
            forget=Forget.GENERATION, lost=True, unless_rebalancing=True
        ),
        ("commit", ErrorCode.REBALANCE_IN_PROGRESS): Reaction(rejoin=False),
        # rd_kafka_cgrp_assignor_run
        ("assignor", None): _PACED,
    }
)

LIBRDKAFKA = dataclasses.replace(
    CURRENT,
    name="librdkafka",
    api_versions=versions(  # rd_kafka_*Request (rdkafka_request.c)
        METADATA=12,
        FIND_COORDINATOR=2,
        JOIN_GROUP=5,
        SYNC_GROUP=3,
        HEARTBEAT=3,
        LEAVE_GROUP=1,
        OFFSET_COMMIT=9,
        OFFSET_FETCH=9,
    ),
    defaults=(  # rdkafka_conf.c
        ("partition.assignment.strategy", ("range", "roundrobin")),
        ("request.timeout.ms", 60_000),  # socket.timeout.ms
        ("reconnect.backoff.ms", 100),
        ("reconnect.backoff.max.ms", 10_000),
    ),
    state_names=("init", "wait-join", "wait-sync", "steady"),
    background=Background.ANSWERS,
    reactions=REACTIONS,
    join_interval_ms=1_000,  # rd_kafka_cgrp_join_state_serve
    join_error_delay_ms=1_000,  # rd_kafka_cgrp_handle_JoinGroup, rd_interval_backoff
    join_timeout_extra_ms=3_000,  # rd_kafka_JoinGroupRequest
    join_timeout_at_least_request_timeout=False,
    sync_timeout=SyncTimeout.SESSION,
    session_timeout=SessionTimeout.EXPELLED,  # rd_kafka_cgrp_session_timeout_check
    lookup_is_contact=False,
    heartbeats_while_syncing=False,  # rd_kafka_cgrp_join_state_serve
    one_heartbeat_at_a_time=True,  # rd_kafka_cgrp_heartbeat
    retries_heartbeats=False,
    heartbeat_timer_runs_on=True,  # rkcg_heartbeat_intvl
    join_reset_loses=True,
    static_unsubscribe_leaves=True,  # rd_kafka_cgrp_leave_maybe
    existing_topics_only=True,  # rd_kafka_cgrp_join
    everybody_watches=True,  # rd_kafka_cgrp_metadata_update_check
    leaves_out_bad_members=True,
    sync_names_protocol=False,
    assignment_version=0,
    simple_generation=False,  # rd_kafka_assignor_get_metadata_with_empty_userdata
)


def librdkafka(spec: ClientSpec, env: ClientEnvironment) -> ClientMachine:
    """A consumer on librdkafka.

    Raises:
        ConfigError: options or work that it would refuse.

    """
    return build(spec, env, LIBRDKAFKA, maker(ASSIGNORS))


librdkafka.config_names = CONFIG_NAMES  # type: ignore[attr-defined]
