"""What tests of the coordinator's gate need: a catalogue of topics, and an authorizer."""

from __future__ import annotations

from groupsim.protocol.messages import MemberIdentity

HOUR_MS = 3_600_000


def static(instance: str | None, member_id: str = "", reason: str | None = None) -> MemberIdentity:
    """A leaving member named by its instance id."""
    return MemberIdentity(member_id=member_id, group_instance_id=instance, reason=reason)


class Topics:
    """Topics by name; the id of topic ``t`` is ``id-t``."""

    def __init__(self, **partitions: int) -> None:
        self.partitions = partitions

    def partition_count(self, topic: str) -> int | None:
        """Number of partitions."""
        return self.partitions.get(topic)

    def topic_id(self, topic: str) -> str:
        """Id by name."""
        return f"id-{topic}" if topic in self.partitions else ""

    def topic_name(self, topic_id: str) -> str | None:
        """Name by id."""
        name = topic_id.removeprefix("id-")
        return name if name in self.partitions else None


class Refusing:
    """Refuses what is listed as (operation, resource, name)."""

    def __init__(self, *refused: tuple[str, str, str]) -> None:
        self.refused = set(refused)

    def allows(self, client_id: str, operation: str, resource: str, name: str) -> bool:
        """Whether it is not listed."""
        return (operation, resource, name) not in self.refused
