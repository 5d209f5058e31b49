"""Making a client kind of the shared machinery from a ``Behaviour``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from groupsim_clients.assignors import Assignor, make_assignor
from groupsim_clients.behaviour import Behaviour
from groupsim_clients.config import KNOWN_OPTIONS, ConsumerConfig
from groupsim_clients.consumer_coordinator import common_protocol
from groupsim_clients.errors import ConfigError
from groupsim_clients.machine import ClientEnvironment, ClientSpec
from groupsim_clients.misbehaviour import misbehaving, read_options
from groupsim_clients.one_heartbeat import OneHeartbeatProcess
from groupsim_clients.process import ConsumerProcess
from groupsim_clients.work import Work

__all__ = ["CONFIG_NAMES", "MakeAssignor", "build"]

CONFIG_NAMES = tuple(sorted(KNOWN_OPTIONS))
MakeAssignor = Callable[[str], Assignor]


def build(
    spec: ClientSpec,
    env: ClientEnvironment,
    behaviour: Behaviour,
    make: MakeAssignor = make_assignor,
) -> ConsumerProcess:
    """A process that behaves as ``behaviour`` says.

    Raises:
        ConfigError: the options, the assignors or the work cannot be right (K-01 to K-05).

    """
    behaviour = misbehaving(behaviour, read_options(spec.options))
    work = Work.from_plain(spec.work)
    options = dict(spec.config)
    if work.commit != "auto":
        options.setdefault("enable.auto.commit", False)
    config = ConsumerConfig.from_kafka(
        options, group_id=spec.group_id or None, defaults=dict(behaviour.defaults)
    )
    assignors = _assignors(config.assignors, make)
    common_protocol(assignors)  # K-02
    kind = OneHeartbeatProcess if behaviour.one_heartbeat_at_a_time else ConsumerProcess
    return kind(spec, env, config=config, behaviour=behaviour, assignors=assignors, work=work)


def _assignors(names: Sequence[str], make: MakeAssignor) -> tuple[Assignor, ...]:
    assignors = []
    for name in names:
        try:
            assignors.append(make(name))
        except ValueError as error:
            raise ConfigError("partition.assignment.strategy", name, str(error)) from error
    return tuple(assignors)
