"""The merge walk with which sticky assignors find what is left to assign (A-70)."""

from __future__ import annotations

from collections.abc import Sequence

from groupsim.protocol.consumer_protocol import TopicPartition

__all__ = ["not_kept"]


def not_kept(
    everything: Sequence[TopicPartition], kept: Sequence[TopicPartition]
) -> list[TopicPartition]:
    """``everything`` without ``kept``; both in the same order.

    Not a set difference: the walk waits for the *current* kept partition. One that does not exist
    is never met, so everything behind it counts as unassigned although it is kept (X3).
    """
    rest: list[TopicPartition] = []
    waiting = iter(kept)
    current = next(waiting, None)
    for partition in everything:
        if partition == current:
            current = next(waiting, None)
        else:
            rest.append(partition)
    return rest
