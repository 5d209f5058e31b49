"""Moves of the random walk: time, the log, and who leads a partition."""

from __future__ import annotations

from tests.oracle.script import Operation
from tests.oracle.walk import Walk

__all__ = ["ERRORS", "ClusterMoves"]

ERRORS = (
    "UNKNOWN_TOPIC_OR_PARTITION",
    "NOT_ENOUGH_REPLICAS",
    "REQUEST_TIMED_OUT",
    "NOT_LEADER_OR_FOLLOWER",
    "KAFKA_STORAGE_ERROR",
    "MESSAGE_TOO_LARGE",
    "RECORD_LIST_TOO_LARGE",
    "INVALID_FETCH_SIZE",
    "NETWORK_EXCEPTION",
    "INVALID_PRODUCER_EPOCH",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    "CORRUPT_MESSAGE",
    "UNKNOWN_SERVER_ERROR",
)
"""What a failing append is told (C-10)."""


class ClusterMoves(Walk):
    """Time, appends that wait or fail, loads and unloads."""

    def _until(self, name: str) -> Operation | None:
        for timer in self.world.snapshot["timers"]:
            if timer.get("name", "").startswith(name):
                wait = timer["deadline"] - self.world.now_ms
                return {"op": "advance", "ms": wait} if 0 <= wait <= 500_000 else None
        return None

    def _time(self) -> Operation | None:
        now = self.world.now_ms
        deadlines = [d for d in self.world.deadlines() if d >= now]
        if deadlines and self._chance(80):
            near = deadlines[: self.rng.choice((1, 2, 4, 20))]
            goal = self.rng.choice(near) + self.rng.choice((-1, 0, 0, 0, 1))
            if goal - now > 4_000_000 and self._chance(90):
                return None
            return {"op": "advance", "ms": max(0, goal - now)}
        return {
            "op": "advance",
            "ms": self.rng.choice((0, 1, 1, 5, 10, 500, 2999, 3000, 5000, 60000)),
        }

    def _vanish(self) -> Operation | None:
        """A group's first record fails, its join timer stays and meets the next group (J-22)."""
        group_id = self._group()
        partition = self.world.partition_of(group_id)
        if self.world.group(group_id) or self.world.status(partition) != "ACTIVE":
            return None
        first, second = self._new_actor(), self._new_actor()
        first.group = second.group = group_id
        first.versions["join"] = 3
        if self._chance(60):
            second.versions["join"], second.instance = 9, None
        self.plot = [first.join(""), second.join("")]
        if self._chance(50):
            delay = self.world.config["group.initial.rebalance.delay.ms"]
            self.plot.append({"op": "advance", "ms": delay})
        return {"op": "fail_next_append", "partition": partition, "error": self.rng.choice(ERRORS)}

    def _log(self) -> Operation | None:
        if self._chance(12):
            return self._vanish()
        what = self.rng.randrange(8)
        if not self.world.holding and what <= 1:
            return {"op": "hold", "on": True}
        if self.world.uncommitted() and what <= 4:
            if self.world.holding and self._chance(15):
                return {"op": "hold", "on": False}
            return {"op": "commit_appends", "count": self.rng.choice((1, 1, 1, 2, None))}
        if what <= 6:
            partition = self._partition() if self._chance(70) else None
            return {
                "op": "fail_next_append",
                "partition": partition,
                "error": self.rng.choice(ERRORS),
            }
        return {"op": "compact", "partition": self._partition()}

    def _new_config(self) -> dict[str, int]:
        """What changes while the broker is down; a smaller group.max.size above all (C-22)."""
        config = {}
        if self._chance(50):
            config["group.max.size"] = self.rng.choice((1, 1, 2, 100))
        if self._chance(20):
            config["group.initial.rebalance.delay.ms"] = self.rng.choice((0, 500, 3000))
        if self._chance(20):
            config["group.coordinator.append.linger.ms"] = self.rng.choice((-1, 0, 5))
        if self._chance(10):
            config["offsets.retention.check.interval.ms"] = 1000
        return config

    def _failover(self, group: str | None = None) -> Operation | None:
        partition = self.world.partition_of(group) if group else self._partition()
        status = self.world.status(partition)
        if not status and self.world.held_loads(partition):
            return {"op": "finish_load", "partition": partition, "error": None}
        if self.rng.randrange(300) == 0:
            return {"op": "shutdown"}
        if self._chance(6 if self.world.started else 30):
            return {"op": "restart", "config": self._new_config()}
        if status == "LOADING":
            if self._chance(10):
                return {
                    "op": self.rng.choice(("load", "unload")),
                    "partition": partition,
                    "epoch": 1,
                }
            if self._chance(60):
                error = None if self._chance(85) else self.rng.choice(ERRORS)
                return {"op": "finish_load", "partition": partition, "error": error}
            return {"op": "hold_load", "on": False} if self._chance(30) else None
        if status == "ACTIVE":
            if self._chance(10):
                return {"op": "load", "partition": partition, "epoch": self.rng.choice((0, 1))}
            epoch = self.rng.choice((1, 1, 1, 1, None, 0, -1))
            return {"op": "unload", "partition": partition, "epoch": epoch}
        if not self.world.holding_loads and self._chance(15):
            return {"op": "hold_load", "on": True}
        if self._chance(20):
            return {"op": self.rng.choice(("truncate", "compact")), "partition": partition}
        return {"op": "load", "partition": partition, "epoch": self.rng.choice((1, 1, 1, 1, 2, 0))}
