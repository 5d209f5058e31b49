"""What a run of a script looks like from outside, whichever coordinator runs it.

``World.run`` resolves an operation against what the clients were told, lets the coordinator of the
subclass do it, and keeps what came out: answers, appends and the snapshot of everything after it.
Results have the driver's shape (README.md) with the snapshot merged in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from typing import Any

from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.java import java_string_hash
from tests.oracle.commands import REQUESTS
from tests.oracle.memory import Memory
from tests.oracle.script import Operation, Script
from tests.oracle.topics import Topics

__all__ = ["START_MS", "Result", "World", "partition_for"]

Result = dict[str, Any]

START_MS = 1000
"""Virtual time at which every script starts."""


def partition_for(group: str, partitions: int) -> int:
    """Which partition of ``__consumer_offsets`` holds a group (rule 0.1)."""
    value = java_string_hash(group)
    return (0 if value == -(2**31) else abs(value)) % partitions


class World(ABC):
    """A run of ``script``, one operation at a time."""

    def __init__(self, script: Script) -> None:
        self.script = script
        # the driver's own default is 0, Kafka's is -1
        self.config = {"group.coordinator.append.linger.ms": -1, **script.config}
        self.memory = Memory()
        self.topics = Topics()
        self.partitions: int = script.config.get("offsets.topic.num.partitions", 50)
        self.now_ms = START_MS
        self.holding = False
        self.holding_loads = False
        self.operations: list[Operation] = []
        self.results: list[Result] = []
        self.snapshot: dict[str, Any] = {"partitions": [], "timers": []}
        self._epochs = dict.fromkeys(self._led(), 0)
        self._uncommitted: list[tuple[int, int]] = []  # id, partition
        self._held_loads: Counter[int] = Counter()
        self._compacted: set[int] = set()  # and nothing was committed since
        self.started = True

    # ---- what generators and reports look at

    def partition_of(self, group: str) -> int:
        """A group's partition."""
        return partition_for(group, self.partitions)

    def partition(self, number: int) -> dict[str, Any] | None:
        """A partition's snapshot, None when nothing is known of it here."""
        for partition in self.snapshot["partitions"]:
            if partition["partition"] == number:
                found: dict[str, Any] = partition
                return found
        return None

    def status(self, number: int) -> str:
        """INITIAL, LOADING, ACTIVE, FAILED, CLOSED or "" (never led, or unloaded)."""
        partition = self.partition(number)
        return str(partition["state"]) if partition else ""

    def group(self, group_id: str) -> dict[str, Any] | None:
        """A group's snapshot, None when there is none."""
        partition = self.partition(self.partition_of(group_id))
        for group in partition.get("groups", ()) if partition else ():
            if group["group_id"] == group_id:
                found: dict[str, Any] = group
                return found
        return None

    def deadlines(self) -> list[int]:
        """When timers are due, soonest first."""
        return sorted({timer["deadline"] for timer in self.snapshot["timers"]})

    def uncommitted(self) -> list[int]:
        """Ids of appends that nobody committed yet, oldest first."""
        return [number for number, _ in self._uncommitted]

    def held_loads(self, partition: int) -> int:
        """Loads of a partition that wait for ``finish_load``."""
        return self._held_loads[partition]

    # ---- running

    def run(self, operation: Operation) -> Result:
        """Let one operation happen; answers what came out of it."""
        token = len(self.operations)
        self.operations.append(operation)
        resolved = self._resolve(operation)
        if resolved is None:
            result: Result = {"skipped": True}
        else:
            if operation["op"] in REQUESTS:
                self.memory.sent(token, operation)
            result = self._execute(resolved, token)
            self._learn(result)
        self.results.append(result)
        return result

    @abstractmethod
    def _execute(self, operation: Operation, token: int) -> Result:
        """Do a resolved operation."""

    def _resolve(self, operation: Operation) -> Operation | None:
        """The operation in absolute terms; None when it makes no sense now."""
        kind = operation["op"]
        resolved = self.memory.resolve(operation)
        if kind in ("load", "unload"):
            return self._resolve_epoch(resolved)
        if kind == "commit_appends":
            count = len(self._uncommitted) if operation["count"] is None else operation["count"]
            waiting, self._uncommitted = self._uncommitted[:count], self._uncommitted[count:]
            self._compacted.difference_update(partition for _, partition in waiting)
            return {"op": kind, "upto": waiting[-1][0]} if waiting else None
        if kind == "end_txn":
            resolved["partition"] = self.partition_of(operation["group"])
        elif kind == "hold":
            self.holding = operation["on"]
        elif kind == "hold_load":
            self.holding_loads = operation["on"]
        elif kind == "finish_load":
            if not self._held_loads[operation["partition"]]:
                return None
            self._held_loads[operation["partition"]] -= 1
        elif kind == "truncate":
            if self.status(operation["partition"]) or operation["partition"] in self._compacted:
                return None
            self._forget(operation["partition"])
        elif kind == "compact":
            self._compacted.add(operation["partition"])
        elif kind in ("topics", "topics_deleted") and not self.started:
            return None
        elif kind == "topics":
            return resolved if self._set_topics(operation["topics"]) else None
        elif kind == "topics_deleted":
            if any(name not in self.topics for name in operation["topics"]):
                return None
            for name in operation["topics"]:
                self.topics.remove(name)
        elif kind == "restart":
            return self._restart(operation["config"])
        elif kind == "shutdown":
            if not self.started:
                return None
            self.started = False
            self._held_loads.clear()
        return resolved

    def _led(self) -> list[int]:
        led = self.script.partitions
        return list(range(self.partitions) if led is None else led)

    def _restart(self, config: dict[str, int]) -> Operation:
        """The broker crashes and comes back, leading what it led at first."""
        self.config |= config
        self.holding_loads = False
        self.started = True
        self._held_loads.clear()
        self._epochs = dict.fromkeys(self._led(), 0)
        return {"op": "restart", "config": dict(self.config), "load": self._led()}

    def _resolve_epoch(self, operation: Operation) -> Operation | None:
        if not self.started:
            return None
        partition, epoch = operation["partition"], operation["epoch"]
        last = self._epochs.get(partition, 0)
        if epoch is not None:
            operation["epoch"] = max(0, last + epoch)
        if operation["op"] == "load" and self.status(partition) in ("", "FAILED"):
            if self._held_loads[partition]:
                return None  # Kafka would take the end of the old load for that of the new one
            known = self.partition(partition)
            if self.holding_loads and (known is None or operation["epoch"] > known["epoch"]):
                self._held_loads[partition] += 1
        if epoch is not None:
            self._epochs[partition] = max(last, operation["epoch"])
        return operation

    def _set_topics(self, topics: dict[str, int]) -> bool:
        if any(count < (self.topics.partition_count(name) or 1) for name, count in topics.items()):
            return False
        for name, count in topics.items():
            self.topics.set(name, count)
        return True

    def _forget(self, partition: int) -> None:
        self._uncommitted = [entry for entry in self._uncommitted if entry[1] != partition]

    def _learn(self, result: Result) -> None:
        self.now_ms = result["now"]
        self.snapshot = result["snapshot"]
        for append in result["appends"]:
            if "error" not in append:
                self._uncommitted.append((append["id"], append["partition"]))
                if not self.holding:
                    self._forget(append["partition"])
                    self._compacted.discard(append["partition"])
        for done in result["completed"]:
            if not done.get("closed"):
                code = done["response"].get("errorCode", 0)
                self.memory.answered(done["token"], done["response"], ErrorCode(code).name)
