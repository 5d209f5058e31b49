"""The Java consumer as it was around Apache Kafka 2.4 (rule book, section 7)."""

from __future__ import annotations

import dataclasses

from groupsim_clients.behaviour import CURRENT, versions
from groupsim_clients.machine import ClientEnvironment, ClientMachine, ClientSpec
from groupsim_clients.profiles._factory import CONFIG_NAMES, build

__all__ = ["JAVA_2_4", "java_2_4"]

JAVA_2_4 = dataclasses.replace(
    CURRENT,
    name="java-2.4",
    api_versions=versions(
        METADATA=9,
        FIND_COORDINATOR=3,
        JOIN_GROUP=6,
        SYNC_GROUP=4,
        HEARTBEAT=4,
        LEAVE_GROUP=4,
        OFFSET_COMMIT=8,
        OFFSET_FETCH=6,
    ),
    subscription_version=1,  # owned partitions (KIP-429), no generation, no rack
    defaults=(
        ("session.timeout.ms", 10_000),
        ("partition.assignment.strategy", ("range",)),
    ),
    merged_rebalancing_state=True,
    heartbeats_while_syncing=False,
    failed_join_unjoins=True,
    join_reset_needs_same_generation=False,
    illegal_generation_keeps_member_id=False,
    member_id_required_resets=True,
    join_retries_rebalance_in_progress=False,
    join_timeout_at_least_request_timeout=False,
    checks_protocol=False,
    sync_names_protocol=False,
    honours_skip_assignment=False,
    trusts_cooperative_sticky=False,
    trusts_builtin_topics=False,
    wiped_sync_retries_at_once=False,
)


def java_2_4(spec: ClientSpec, env: ClientEnvironment) -> ClientMachine:
    """A Java consumer of about 2.4: three states, no heartbeats until stable, and so on.

    Raises:
        ConfigError: options or work that it would refuse.

    """
    return build(spec, env, JAVA_2_4)


java_2_4.config_names = CONFIG_NAMES  # type: ignore[attr-defined]
