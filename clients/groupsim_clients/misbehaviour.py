"""Deliberate misbehaviours: faults that real clients had, as switches on any of the client kinds.

A scenario turns them on with ``options: {misbehave: [name, ...]}``. Each is one wrong rule, on top
of everything that the client kind does otherwise. The numbers (B-72 and so on) are those of the
case book; the clients named there have mended the fault since, unless said otherwise.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from groupsim.protocol.messages import message
from groupsim_clients.behaviour import Behaviour, SessionTimeout
from groupsim_clients.errors import ConfigError

__all__ = ["MISBEHAVIOURS", "Misbehaviour", "misbehaving", "read_options"]

OPTION: Final = "misbehave"


@message
class Misbehaviour:
    """One of them: ``summary`` says what the client does wrong, ``case`` where it was seen and
    ``switches`` which fields of ``Behaviour`` it turns.
    """

    summary: str
    case: str
    switches: Mapping[str, Any]


MISBEHAVIOURS: Final[Mapping[str, Misbehaviour]] = MappingProxyType(
    {
        "forgets-member-id": Misbehaviour(
            summary="after REBALANCE_IN_PROGRESS it joins with an empty member id, as a new member",
            case="B-72",
            switches={"forgets_member_id": True},
        ),
        "member-id-required-is-fatal": Misbehaviour(
            summary="MEMBER_ID_REQUIRED is an unexpected error; the next try has an empty id again",
            case="B-02",
            switches={"member_id_required_is_fatal": True},
        ),
        "heartbeats-between-messages": Misbehaviour(
            summary="one thread for everything: no heartbeat while the application processes",
            case="B-15",
            switches={"heartbeats_only_in_poll": True},
        ),
        "heartbeats-stop-on-rebalance": Misbehaviour(
            summary="after REBALANCE_IN_PROGRESS no heartbeat until it has joined again",
            case="B-22",
            switches={"heartbeats_stop_on_rebalance": True},
        ),
        "only-success-is-contact": Misbehaviour(
            summary="REBALANCE_IN_PROGRESS does not restart its own session timer, and when that has "
            "run out it takes its partitions for lost",
            case="B-25",
            switches={
                "rebalance_answer_is_contact": False,
                "session_timeout": SessionTimeout.EXPELLED,
            },
        ),
        "rejoins-after-fencing": Misbehaviour(
            summary="FENCED_INSTANCE_ID is no end: it joins again with an empty id and fences back",
            case="B-46",
            switches={"rejoins_after_fencing": True},
        ),
        "never-syncs": Misbehaviour(
            summary="after the answer to JoinGroup it sends no SyncGroup, only heartbeats",
            case="B-63",
            switches={"never_syncs": True},
        ),
        "impatient-join": Misbehaviour(
            summary="gives a JoinGroup up after request.timeout.ms and starts again as a new member",
            case="B-07",
            switches={"impatient_join": True},
        ),
    }
)


def read_options(options: Mapping[str, Any]) -> tuple[str, ...]:
    """The names under ``misbehave`` in a member's options; one name may stand without a list.

    Raises:
        ConfigError: another option, or a name that is no misbehaviour; ``name`` begins "options.".

    """
    for key, value in options.items():
        if key != OPTION:
            near = difflib.get_close_matches(str(key), [OPTION], cutoff=0.6)
            raise ConfigError(f"options.{key}", value, f"the one option is {OPTION}", near)
    given = options.get(OPTION) or ()
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, list | tuple):
        raise ConfigError(f"options.{OPTION}", given, "a list of misbehaviours")
    for name in names:
        if name not in MISBEHAVIOURS:
            near = difflib.get_close_matches(str(name), MISBEHAVIOURS, n=2, cutoff=0.5)
            raise ConfigError(f"options.{OPTION}", name, f"any of {', '.join(MISBEHAVIOURS)}", near)
    return tuple(names)


def misbehaving(behaviour: Behaviour, names: Iterable[str]) -> Behaviour:
    """The behaviour with the switches of these misbehaviours turned."""
    for name in names:
        behaviour = dataclasses.replace(behaviour, **MISBEHAVIOURS[name].switches)
    return behaviour
