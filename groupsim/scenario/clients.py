"""Client kinds, found by entry point, so that a user's own client stands beside ours."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from groupsim.scenario.faults import near_match

__all__ = ["ENTRY_POINTS", "ClientKindError", "client_factory", "client_kinds", "config_names"]

ENTRY_POINTS: Final = "groupsim.clients"


class ClientKindError(LookupError):
    """A client kind that is not there or cannot be loaded. ``near`` is what may have been meant."""

    def __init__(self, kind: str, problem: str, near: str = "") -> None:
        super().__init__(problem)
        self.kind = kind
        self.problem = problem
        self.near = near


@cache
def _kinds() -> Mapping[str, EntryPoint]:
    found = sorted(entry_points(group=ENTRY_POINTS), key=lambda point: (point.name, point.value))
    return {point.name: point for point in found}


def client_kinds() -> tuple[str, ...]:
    """Return the names of all client kinds that are installed, sorted."""
    return tuple(_kinds())


@cache
def client_factory(kind: str) -> Any:
    """Return the factory of a client kind.

    Raises:
        ClientKindError: there is none of that name, or importing it failed.

    """
    point = _kinds().get(kind)
    if point is None:
        raise ClientKindError(kind, f"no client kind {kind!r}", near_match(kind, _kinds()))
    try:
        return point.load()
    except Exception as error:
        problem = f"client kind {kind!r} cannot be loaded from {point.value}: {error}"
        raise ClientKindError(kind, problem) from error


def config_names(kind: str) -> tuple[str, ...]:
    """Return the configuration names that a client kind says it knows; empty: it does not say."""
    return tuple(sorted(getattr(client_factory(kind), "config_names", ())))
