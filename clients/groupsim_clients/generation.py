"""The member's own view of its membership: four states and the generation (rule book 1.1, 1.5)."""

from __future__ import annotations

import enum
from typing import Final, NamedTuple

__all__ = ["NO_GENERATION", "Generation", "JoinState"]


class JoinState(enum.Enum):
    """``AbstractCoordinator.MemberState``."""

    UNJOINED = "UNJOINED"
    PREPARING_REBALANCE = "PREPARING_REBALANCE"
    COMPLETING_REBALANCE = "COMPLETING_REBALANCE"
    STABLE = "STABLE"

    @property
    def rebalancing(self) -> bool:
        """What commits and leaving call "rebalance in progress"."""
        return self in {JoinState.PREPARING_REBALANCE, JoinState.COMPLETING_REBALANCE}


class Generation(NamedTuple):
    """Generation id, member id and protocol name; compared as a whole ("unchanged since sending")."""

    generation_id: int
    member_id: str
    protocol_name: str | None

    @property
    def was_reset(self) -> bool:
        """No generation id and no protocol; the member id may have stayed (1.5)."""
        return self.generation_id == -1 and self.protocol_name is None

    def __str__(self) -> str:
        """As Java prints it."""
        protocol = "null" if self.protocol_name is None else self.protocol_name
        return (
            f"Generation{{generationId={self.generation_id}, memberId='{self.member_id}', "
            f"protocol='{protocol}'}}"
        )


NO_GENERATION: Final = Generation(-1, "", None)
