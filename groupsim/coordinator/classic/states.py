"""The five states of a classic group and the moves between them (rules 1.1 and 1.2).

The moves are data: ``PREVIOUS`` lists for every state the states it may be entered from, exactly
as Kafka's ``ClassicGroupState`` does, and the documentation's diagram is made from it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

__all__ = ["PREVIOUS", "GroupState", "is_legal"]


class GroupState(enum.Enum):
    """A state; its value is the name that Describe and List show."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"

    @property
    def label(self) -> str:
        """Kafka's ``toString``."""
        return str(self.value)


PREVIOUS: Final[Mapping[GroupState, tuple[GroupState, ...]]] = {
    GroupState.EMPTY: (GroupState.PREPARING,),
    GroupState.PREPARING: (GroupState.STABLE, GroupState.COMPLETING, GroupState.EMPTY),
    GroupState.COMPLETING: (GroupState.PREPARING,),
    GroupState.STABLE: (GroupState.COMPLETING,),
    GroupState.DEAD: tuple(GroupState),
}


def is_legal(source: GroupState, target: GroupState) -> bool:
    """Whether a group may go from ``source`` to ``target``."""
    return source in PREVIOUS[target]
