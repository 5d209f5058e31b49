"""trio's own scheduling made repeatable, for code that relies on more than "one woken task at a time".

When several tasks become runnable in the same instant by each other's doing (one sets a
``trio.Event`` that three await), trio runs them in random order on purpose. The run of a simulation wakes
one task at a time and does not need this; a script with several tasks of its own may. There is no
public switch, so this module uses the two private names that trio keeps for Hypothesis, checks
that they are what they were, and refuses loudly when a release of trio moved them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import trio

__all__ = ["SchedulingSwitchError", "deterministic_scheduling"]

_SWITCH = "_ALLOW_DETERMINISTIC_SCHEDULING"
_RANDOM = "_r"


class SchedulingSwitchError(RuntimeError):
    """The installed trio has no switch where we know it; ``missing`` names what was not found."""

    def __init__(self, missing: str) -> None:
        self.missing = missing
        super().__init__(
            f"trio {trio.__version__} has no trio._core._run.{missing}; "
            "groupsim cannot make its scheduling repeatable"
        )


@contextmanager
def deterministic_scheduling(seed: int) -> Iterator[None]:
    """Make the order in which trio runs tasks depend on ``seed`` alone, inside the ``with`` block.

    Put it around ``trio.run`` (or ``groupsim.runtime.run``), not inside. What was set before is
    put back.

    Raises:
        SchedulingSwitchError: this trio release moved the switch.

    """
    module, source = _find()
    before = getattr(module, _SWITCH), source.getstate()
    setattr(module, _SWITCH, True)
    source.seed(seed)
    try:
        yield
    finally:
        setattr(module, _SWITCH, before[0])
        source.setstate(before[1])


def _find() -> tuple[Any, random.Random]:
    module: Any = getattr(getattr(trio, "_core", None), "_run", None)
    if not isinstance(getattr(module, _SWITCH, None), bool):
        raise SchedulingSwitchError(_SWITCH)
    source = getattr(module, _RANDOM, None)
    if not isinstance(source, random.Random):
        raise SchedulingSwitchError(_RANDOM)
    return module, source
