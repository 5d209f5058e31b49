"""Kafka's partition assignors, exact to the order of the lists.

``ASSIGNORS`` maps the names in ``partition.assignment.strategy``'s protocol list to classes;
``make_assignor`` makes one client's object. Output is that of Apache Kafka's Java classes, their
anomalies (X1 to X5) included; ``StrictAssignor`` reports those instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from groupsim_clients.assignors.base import (
    Assignor,
    AssignorFailure,
    AssignorLivelock,
    ClusterView,
    GroupMember,
    PartitionInfo,
    RebalanceProtocol,
    without_racks,
)
from groupsim_clients.assignors.cooperative import CooperativeStickyAssignor
from groupsim_clients.assignors.range import RangeAssignor
from groupsim_clients.assignors.roundrobin import RoundRobinAssignor
from groupsim_clients.assignors.sticky import StickyAssignor
from groupsim_clients.assignors.strict import Anomaly, AnomalyError, StrictAssignor

__all__ = [
    "ASSIGNORS",
    "Anomaly",
    "AnomalyError",
    "Assignor",
    "AssignorFailure",
    "AssignorLivelock",
    "ClusterView",
    "CooperativeStickyAssignor",
    "GroupMember",
    "PartitionInfo",
    "RangeAssignor",
    "RebalanceProtocol",
    "RoundRobinAssignor",
    "StickyAssignor",
    "StrictAssignor",
    "make_assignor",
    "without_racks",
]

ASSIGNORS: Mapping[str, type[Assignor]] = MappingProxyType(
    {
        kind.name: kind
        for kind in (RangeAssignor, RoundRobinAssignor, StickyAssignor, CooperativeStickyAssignor)
    }
)


def make_assignor(name: str) -> Assignor:
    """A new assignor object for one client.

    Raises ``ValueError``: no assignor has that name; the message lists those that exist.
    """
    kind = ASSIGNORS.get(name)
    if kind is None:
        raise ValueError(f"no assignor {name!r}; there are {', '.join(ASSIGNORS)}")
    return kind()
