"""Runs scripts through Apache Kafka's own coordinator, in the Java driver."""

from __future__ import annotations

from collections import Counter

from tests.oracle.commands import command
from tests.oracle.coverage import Cell, cells_after, cells_of, states_now
from tests.oracle.driver import Oracle, OracleError
from tests.oracle.script import Operation, Script
from tests.oracle.topics import START
from tests.oracle.world import START_MS, Result, World

__all__ = ["KafkaWorld", "LivelockError"]


class LivelockError(Exception):
    """The operation makes Kafka fire timers at one instant for ever (PR-13)."""


class KafkaWorld(World):
    """A run in the driver. One driver serves one world at a time; making a world resets it."""

    def __init__(self, script: Script, oracle: Oracle) -> None:
        super().__init__(script)
        self._oracle = oracle
        oracle.reset(
            seed=script.seed,
            time_ms=START_MS,
            config=self.config,
            topics=START,
            load=script.partitions,
        )
        self.snapshot = oracle.ask("snapshot")["snapshot"]
        self.cells: Counter[Cell] = Counter()

    def _execute(self, operation: Operation, token: int) -> Result:
        self.cells.update(cells_of(self, operation))
        before = states_now(self)
        made = command(operation, token, self.topics)
        result, looked = self._oracle.send([made, {"op": "snapshot"}])
        if "error" in result:
            if result["error"].startswith("livelock"):
                raise LivelockError
            raise OracleError(f"{made}: {result['error']}")
        result["snapshot"] = looked["snapshot"]
        _comparable(result)
        self.cells.update(cells_after(before, result))
        return result


def _comparable(result: Result) -> None:
    """Leave out what is not the coordinator's: what it logged, what the driver says of its
    own log and topics, the names of the operations that wait (T-8), record timestamps, and the
    coordinator epoch that the driver puts into markers.
    """
    for name in ("logged", "removed", "topics"):
        result.pop(name, None)
    for append in result["appends"]:
        for record in append["records"]:
            del record["timestamp"]
            record.pop("coordinator_epoch", None)
    for timer in result["snapshot"]["timers"]:
        if timer["kind"] != "group":
            del timer["name"]
