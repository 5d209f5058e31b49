"""Virtual times in options."""

from __future__ import annotations

from groupsim.cli.statuses import InputError

__all__ = ["moment_us"]


def moment_us(option: str, text: str | None) -> int | None:
    """Return the virtual time that an option says, in µs; None if it was not given.

    Raises:
        InputError: it is not a time.

    """
    from groupsim.scenario.durations import duration

    if text is None:
        return None
    try:
        return int(duration(0 if text == "0" else text))
    except ValueError as error:
        raise InputError(f"{option} {text!r}: {error}") from None
