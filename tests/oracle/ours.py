"""Drives our coordinator as the Java driver drives Kafka's: clock, logs, faults, loads, topics."""

from __future__ import annotations

from collections import deque
from typing import Any

from groupsim.coordinator import CoordinatorConfig, GroupCoordinator
from groupsim.coordinator.effects import Append, Effect, Reply, TransactionEnded
from groupsim.coordinator.records import TransactionMarker
from groupsim.protocol.errors import ErrorCode
from tests.oracle.commands import REQUESTS, client_host, client_id, request
from tests.oracle.driver import member_uuid
from tests.oracle.kafka_json import record_json, response_json
from tests.oracle.log import PartitionLog
from tests.oracle.script import Operation, Script
from tests.oracle.snapshots import snapshot
from tests.oracle.world import Result, World

__all__ = ["OurWorld"]

_MARKER_ERRORS = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_COORDINATOR: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
"""What a broker tells the transaction coordinator (KafkaApis, WriteTxnMarkers)."""


class OurWorld(World):
    """A run of our coordinator."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self._ids = 0
        self._versions: dict[int, int] = {}
        self._completed: list[dict[str, Any]] = []
        self._appends: list[dict[str, Any]] = []
        self._logs: dict[int, PartitionLog] = {}
        self._positions: list[tuple[int, int] | None] = []  # partition, end
        self._append_faults: deque[tuple[int | None, str]] = deque()
        self._verification_faults: deque[str] = deque()
        self._waiting_loads: deque[tuple[int, int]] = deque()  # partition, epoch
        self._coordinator = self._start()
        self._settle()
        self.snapshot = snapshot(self._coordinator, self._logs)

    def _start(self) -> GroupCoordinator:
        self._coordinator = GroupCoordinator(
            config=CoordinatorConfig.from_kafka(self.config),
            member_uuid=self._next_uuid,
            topics=self.topics,
            transactions=self._verify,
            log_gate=self._gate,
        )
        for partition in self._led():
            self._load(partition, 0)
        return self._coordinator

    def _next_uuid(self) -> str:
        self._ids += 1
        return member_uuid(self.script.seed, self._ids - 1)

    def _verify(self, _transaction: str, _producer: int, _epoch: int, _version: int) -> ErrorCode:
        faults = self._verification_faults
        return ErrorCode[faults.popleft()] if faults else ErrorCode.NONE

    # ---- one operation

    def _execute(self, operation: Operation, token: int) -> Result:
        drawn = self._ids
        self._completed, self._appends = [], []
        kind = operation["op"]
        if kind in REQUESTS:
            self._request(operation, token)
        else:
            getattr(self, f"_do_{kind}")(operation, token)
        self._settle()
        result: Result = {
            "now": self.now_ms,
            "completed": self._completed,
            "appends": self._appends,
            "snapshot": snapshot(self._coordinator, self._logs),
        }
        if self._ids > drawn:
            result["uuids"] = self._ids - drawn
        return result

    def _request(self, operation: Operation, token: int) -> None:
        self._versions[token] = operation["version"]
        self._carry_out(
            self._coordinator.handle(
                token,
                request(operation, self.topics),
                api_version=operation["version"],
                client_id=client_id(operation),
                client_host=f"/{client_host(operation)}",
                now_ms=self.now_ms,
            )
        )

    def _do_end_txn(self, operation: Operation, token: int) -> None:
        marker = TransactionMarker(
            producer_id=operation["producer"],
            producer_epoch=operation["epoch"],
            committed=operation["committed"],
        )
        partition = operation["partition"]
        self._carry_out(
            self._coordinator.complete_transaction(partition, marker, self.now_ms, token)
        )

    def _do_advance(self, operation: Operation, _token: int) -> None:
        target = self.now_ms + operation["ms"]
        while (due := self._coordinator.next_deadline_ms()) is not None and due <= target:
            self.now_ms = max(self.now_ms, due)
            self._settle()
        self.now_ms = target

    def _settle(self) -> None:
        while (due := self._coordinator.next_deadline_ms()) is not None and due <= self.now_ms:
            self._carry_out(self._coordinator.advance(self.now_ms))

    # ---- effects and the log

    def _carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Reply):
                response = response_json(effect.response, self._versions[effect.token])
                self._complete(effect.token, response)
            elif isinstance(effect, TransactionEnded):
                error = _MARKER_ERRORS.get(effect.error_code, effect.error_code)
                self._complete(effect.token, {"errorCode": error.value})
        for effect in effects:
            if isinstance(effect, Append) and not self.holding:
                log = self._log(effect.partition)
                batch = next(b for b in reversed(log.batches) if b.append_id == effect.append_id)
                self._commit({effect.partition: batch.next_offset})

    def _complete(self, token: int, response: dict[str, Any]) -> None:
        self._completed.append({"token": token, "at": self.now_ms, "response": response})

    def _log(self, partition: int) -> PartitionLog:
        return self._logs.setdefault(partition, PartitionLog())

    def _gate(self, append: Append) -> ErrorCode:
        """The coordinator's log gate: store the batch, or refuse it."""
        log = self._log(append.partition)
        error = self._fault(append.partition)
        first = append.records[0]
        last = log.end_offset + len(append.records) - 1
        plain: dict[str, Any] = {"base_offset": log.end_offset, "last_offset": last}
        producer = first.marker or first
        if producer.producer_id >= 0:
            plain["producer_id"] = producer.producer_id
            plain["producer_epoch"] = producer.producer_epoch
            plain["transactional"] = True
        plain["records"] = [
            {"offset": offset, **record_json(record)}
            for offset, record in enumerate(append.records, log.end_offset)
        ]
        plain |= {"id": len(self._positions), "partition": append.partition}
        self._appends.append(plain)
        if error is not None:
            plain["error"] = error
            self._positions.append(None)
            return ErrorCode[error]
        batch = log.append(append.append_id, append.records)
        self._positions.append((append.partition, batch.next_offset))
        return ErrorCode.NONE

    def _fault(self, partition: int) -> str | None:
        for fault in self._append_faults:
            if fault[0] is None or fault[0] == partition:
                self._append_faults.remove(fault)
                return fault[1]
        return None

    def _commit(self, offsets: dict[int, int]) -> None:
        moved = {}
        for partition, offset in offsets.items():
            log = self._log(partition)
            reached = min(offset, log.end_offset)
            if reached > log.high_watermark:
                log.high_watermark = moved[partition] = reached
        if moved:
            self._carry_out(self._coordinator.high_watermark(moved, self.now_ms))

    def _do_hold(self, _operation: Operation, _token: int) -> None:
        """``World`` keeps ``holding``."""

    def _do_commit_appends(self, operation: Operation, _token: int) -> None:
        ends: dict[int, int] = {}
        for position in self._positions[: operation["upto"] + 1]:
            if position is not None:
                partition, end = position
                ends[partition] = max(end, ends.get(partition, 0))
        # each high watermark is put in front of the queue, so the last partition is the first
        self._commit({partition: ends[partition] for partition in sorted(ends, reverse=True)})

    def _do_fail_next_append(self, operation: Operation, _token: int) -> None:
        self._append_faults.append((operation["partition"], operation["error"]))

    def _do_fail_next_verification(self, operation: Operation, _token: int) -> None:
        self._verification_faults.append(operation["error"])

    def _do_compact(self, operation: Operation, _token: int) -> None:
        self._log(operation["partition"]).compact()

    def _do_truncate(self, operation: Operation, _token: int) -> None:
        self._log(operation["partition"]).truncate()

    # ---- leadership and topics

    def _do_load(self, operation: Operation, _token: int) -> None:
        self._load(operation["partition"], operation["epoch"])

    def _load(self, partition: int, epoch: int) -> None:
        before = self._state(partition)
        self._carry_out(self._coordinator.begin_load(partition, epoch, self.now_ms))
        if self._state(partition) != "LOADING" or before == "LOADING":
            return
        if self.holding_loads:
            self._waiting_loads.append((partition, epoch))
        else:
            self._finish_load(partition)

    def _state(self, partition: int) -> str:
        shard = self._coordinator._core.shards.get(partition)
        return shard.state.name if shard else ""

    def _finish_load(self, partition: int) -> None:
        log = self._log(partition)
        self._carry_out(
            self._coordinator.finish_load(
                partition, log.log_batches(), log.high_watermark, self.now_ms
            )
        )

    def _do_finish_load(self, operation: Operation, _token: int) -> None:
        for waiting in self._waiting_loads:
            if waiting[0] == operation["partition"]:
                self._waiting_loads.remove(waiting)
                break
        else:
            return
        if operation["error"] is not None:
            self._carry_out(self._coordinator.fail_load(operation["partition"], self.now_ms))
        else:
            self._finish_load(operation["partition"])

    def _do_unload(self, operation: Operation, _token: int) -> None:
        partition, epoch = operation["partition"], operation["epoch"]
        self._carry_out(self._coordinator.unload(partition, epoch, self.now_ms))

    def _do_hold_load(self, _operation: Operation, _token: int) -> None:
        """``World`` keeps ``holding_loads``."""

    def _do_shutdown(self, _operation: Operation, _token: int) -> None:
        self._carry_out(self._coordinator.stop(self.now_ms))

    def _do_restart(self, _operation: Operation, _token: int) -> None:
        for faults in (self._waiting_loads, self._append_faults, self._verification_faults):
            faults.clear()
        self._start()

    def _do_topics(self, _operation: Operation, _token: int) -> None:
        """``World`` keeps the topics; new ones do not concern the coordinator."""

    def _do_topics_deleted(self, operation: Operation, _token: int) -> None:
        deleted = [(name, self.topics.last_id(name)) for name in operation["topics"]]
        self._carry_out(self._coordinator.topics_deleted(deleted, self.now_ms))
