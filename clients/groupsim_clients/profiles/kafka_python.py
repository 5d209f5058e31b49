"""kafka-python 3.1: a port of the older Java consumer on an event loop of its own.

JoinGroup and SyncGroup are one task on that loop, so their answers are handled while the application
works; but the member becomes stable, and heartbeats start, only when the application polls. Callbacks
that are plain functions block the loop, heartbeats included. The methods named below are those of
``kafka/coordinator/base.py`` unless another file is given.

Not modelled: LeaveGroup at the poll timeout is awaited before the reset; the look-up of a coordinator
restarts all heartbeat timers and not the session's alone; ``unsubscribe`` commits (auto-commit) and
then leaves without a revoked callback; the older port of Java's sticky algorithm; a listener with
async methods, which would not block the loop.
"""

from __future__ import annotations

import dataclasses

from groupsim.protocol.errors import ErrorCode
from groupsim_clients.assignors.variants import KAFKA_PYTHON as ASSIGNORS
from groupsim_clients.assignors.variants import maker
from groupsim_clients.behaviour import CURRENT, Background, versions
from groupsim_clients.machine import ClientEnvironment, ClientMachine, ClientSpec
from groupsim_clients.profiles._factory import CONFIG_NAMES, build
from groupsim_clients.reactions import Reaction, table

__all__ = ["KAFKA_PYTHON", "kafka_python"]

REACTIONS = table(
    {
        # _do_heartbeat: heartbeats are disabled, nobody is told
        ("heartbeat", ErrorCode.FENCED_INSTANCE_ID): Reaction(stops_heartbeats=True),
        # _handle_offset_commit_response (consumer.py)
        ("commit", ErrorCode.REBALANCE_IN_PROGRESS): Reaction(exception="CommitFailedException"),
    }
)

KAFKA_PYTHON = dataclasses.replace(
    CURRENT,
    name="kafka-python",
    api_versions=versions(
        METADATA=12,
        FIND_COORDINATOR=4,
        JOIN_GROUP=7,  # _do_join_and_sync_async
        SYNC_GROUP=5,
        HEARTBEAT=4,
        LEAVE_GROUP=5,
        OFFSET_COMMIT=8,  # _send_offset_commit_request (consumer.py)
        OFFSET_FETCH=8,
    ),
    subscription_version=0,  # assignors/range.py: no owned partitions, no generation
    cooperative_subscription_version=1,  # assignors/cooperative_sticky.py
    defaults=(  # kafka/consumer/group.py
        ("partition.assignment.strategy", ("range", "roundrobin")),
        ("retry.backoff.max.ms", 100),  # one constant backoff
        ("reconnect.backoff.max.ms", 30_000),
    ),
    merged_rebalancing_state=True,  # MemberState
    background=Background.ANSWERS,  # join_group_async: the task goes on by itself
    reactions=REACTIONS,
    stable_when_polled=True,  # join_group_async
    heartbeats_while_syncing=False,  # join_group_async
    one_heartbeat_at_a_time=True,  # _do_heartbeat awaits the answer
    callbacks_block_heartbeats=True,  # _invoke_rebalance_listener_async (consumer.py)
    join_reset_needs_same_generation=False,  # _process_join_group_response
    reset_repeats_prepare=False,  # reset_generation leaves "rejoining" alone
    member_id_required_resets=True,
    revokes_before_first_join=True,  # _on_join_prepare_async (consumer.py)
    changes_before_revoking=True,  # _on_join_complete_async (consumer.py)
    tells_unchanged=False,
    leader_waits_for_metadata=False,  # _perform_assignment (consumer.py)
)


def kafka_python(spec: ClientSpec, env: ClientEnvironment) -> ClientMachine:
    """A consumer of kafka-python.

    Raises:
        ConfigError: options or work that it would refuse.

    """
    return build(spec, env, KAFKA_PYTHON, maker(ASSIGNORS))


kafka_python.config_names = CONFIG_NAMES  # type: ignore[attr-defined]
