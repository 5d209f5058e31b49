"""The Java consumer of the current Apache Kafka, classic protocol: the reference client."""

from __future__ import annotations

from groupsim_clients.behaviour import CURRENT
from groupsim_clients.machine import ClientEnvironment, ClientMachine, ClientSpec
from groupsim_clients.profiles._factory import CONFIG_NAMES, build

__all__ = ["java"]


def java(spec: ClientSpec, env: ClientEnvironment) -> ClientMachine:
    """A current Java consumer.

    Raises:
        ConfigError: options or work that Java, or this client, would refuse.

    """
    return build(spec, env, CURRENT)


java.config_names = CONFIG_NAMES  # type: ignore[attr-defined]
