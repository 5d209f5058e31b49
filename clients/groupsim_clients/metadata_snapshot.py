"""What a consumer compares to see that its topics have changed (``ConsumerCoordinator.MetadataSnapshot``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from groupsim_clients.assignors.base import PartitionInfo

__all__ = ["MetadataSnapshot"]

_NO_RACKS: frozenset[str | None] = frozenset()


class MetadataSnapshot:
    """Topics of interest as they were at one metadata version (CP-05).

    Per partition the set of its racks, empty when the client has no rack itself.
    """

    __slots__ = ("partitions", "version")

    def __init__(
        self,
        topics: Iterable[str],
        cluster: Mapping[str, tuple[PartitionInfo, ...]],
        version: int,
        rack: str | None,
    ) -> None:
        self.version = version
        self.partitions = {
            topic: (_NO_RACKS,) * len(cluster[topic])
            if rack is None
            else tuple(frozenset(info.racks) for info in cluster[topic])
            for topic in topics
            if topic in cluster
        }

    def matches(self, other: MetadataSnapshot) -> bool:
        """The same version, or the same content."""
        return self.version == other.version or self.partitions == other.partitions

    def __str__(self) -> str:
        """As Java prints it, topics sorted."""
        topics = []
        for topic in sorted(self.partitions):
            infos = ", ".join(
                f"racks={sorted(racks, key=str)}" if racks else "NO_RACKS"
                for racks in self.partitions[topic]
            )
            topics.append(f"{topic}=[{infos}]")
        return f"(version{self.version}: {{{', '.join(topics)}}})"
