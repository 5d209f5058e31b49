"""What a client does about an error code, as data: tables for clients that differ from Java.

A profile lists reactions by (API, error code); the Java client's own handlers stay in charge of every
code for which a profile says nothing.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import message

__all__ = ["AS_JAVA", "Forget", "Pace", "Reaction", "Reactions", "table"]


class Forget(enum.Enum):
    """What of its membership the member forgets."""

    NOTHING = "nothing"
    GENERATION = "generation"
    MEMBER_ID = "member id"
    """And the generation with it."""


class Pace(enum.Enum):
    """When the next join is tried."""

    AT_ONCE = "at once"
    PACED = "paced"
    """When the interval between two joins is over, whatever it is (``join_interval_ms``)."""
    BACKOFF = "backoff"
    """After a backoff that grows with each session that failed."""


@message
class Reaction:
    """One entry of such a table.

    Attributes:
        forget: what is forgotten before the next JoinGroup.
        rejoin: whether it joins again because of this.
        lost: everything it holds is given up as lost first.
        lost_if_cooperative: the same, under the COOPERATIVE protocol only.
        shown: the application is shown the error (an error event or record); nothing is thrown.
        unknown_coordinator: the coordinator is looked up again.
        pace: see ``Pace``.
        fatal: the instance is dead from now on: it never joins again.
        stops_heartbeats: no more heartbeats, and nothing else happens.
        unless_rebalancing: nothing happens while a rebalance is going on.
        exception: the name under which the application is told, if another than the code's.

    """

    forget: Forget = Forget.NOTHING
    rejoin: bool = True
    lost: bool = False
    lost_if_cooperative: bool = False
    shown: bool = False
    unknown_coordinator: bool = False
    pace: Pace = Pace.AT_ONCE
    fatal: bool = False
    stops_heartbeats: bool = False
    unless_rebalancing: bool = False
    exception: str = ""


AS_JAVA: Final = None
"""In a table with a default entry: this code is left to Java's handler."""

Case = tuple[str, ErrorCode | None]
"""API (join, sync, heartbeat, commit or assignor) and code; None stands for all other codes."""
Reactions = tuple[tuple[Case, Reaction | None], ...]


def table(entries: Mapping[Case, Reaction | None]) -> Reactions:
    """The entries as a value that can stand in a ``Behaviour``."""
    return tuple(entries.items())
