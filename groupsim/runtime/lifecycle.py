"""Where a client process is in its life, and how it can end."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["CrashHow", "ProcessState"]


class ProcessState(StrEnum):
    """Where a process is in its life. ``STOPPING`` has been asked to close and still runs."""

    DOWN = "down"
    RUNNING = "running"
    STOPPING = "stopping"
    PAUSED = "paused"


class CrashHow(StrEnum):
    """``PROCESS``: the operating system closes its connections. ``MACHINE``: nobody is told."""

    PROCESS = "process"
    MACHINE = "machine"
