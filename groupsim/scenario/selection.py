"""Which members a name, a family's name or a pattern means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from groupsim.scenario.members import Member

__all__ = ["UnknownMemberError", "candidates", "select"]


class UnknownMemberError(LookupError):
    """A name or pattern that means no member; ``name`` is the one."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no member is called {name!r}")
        self.name = name


def select(
    members: Mapping[str, tuple[str, Member]], names: Sequence[str] | None
) -> tuple[str, ...]:
    """Return the members that ``names`` mean, each once, in the order of the names.

    A name means one member, or all copies of a family (``c`` means ``c-1`` to ``c-4``); with ``*`` and
    ``?`` it is a pattern. None means everybody.

    Raises:
        UnknownMemberError: one of the names means nobody.

    """
    if names is None:
        return tuple(members)
    chosen: dict[str, None] = {}
    for name in names:
        found = _meant(members, name)
        if not found:
            raise UnknownMemberError(name)
        chosen.update(dict.fromkeys(found))
    return tuple(chosen)


def _meant(members: Mapping[str, tuple[str, Member]], name: str) -> tuple[str, ...]:
    if name in members:
        return (name,)
    if "*" in name or "?" in name:
        return tuple(member for member in members if fnmatchcase(member, name))
    return tuple(member for member, (_, declared) in members.items() if declared.name == name)


def candidates(members: Mapping[str, tuple[str, Member]]) -> tuple[str, ...]:
    """Return all names that can be meant, families first: for near matches and messages."""
    families = dict.fromkeys(declared.name for _, declared in members.values())
    return tuple({**families, **dict.fromkeys(members)})
