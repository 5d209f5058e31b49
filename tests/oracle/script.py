"""Scripts: what a differential run does to both coordinators, as plain values and as files.

An operation is a JSON object with ``op`` (its kind, one of ``KINDS``) and the fields of that kind.
Bytes are hex text. Who sends a request is a *client* (``"c3"``), and what a request says about
member ids and generations refers to what that client was answered, so that a script stays
meaningful when operations are taken out of it:

===========  ==========================================================================
``"@c3"``    the member id last answered to client c3 ("" when there was none)
``"@c3~1"``  the one answered before that
``"@c3"``    as a generation: the generation last answered to c3 (−1 when there was none)
``"@c3+1"``  that generation and 1 more; ``"@c3-1"`` one less
===========  ==========================================================================

``restart`` is a crash of the broker; its ``config`` changes the one before. Epochs of ``load`` and ``unload`` count from the partition's last one (``1``: one more; null: no
epoch); ``commit_appends`` commits the ``count`` oldest uncommitted batches, or all (null). An
operation that makes no sense where it stands (deleting a topic that is gone, say, after another
operation was taken out) does nothing. Everything else is meant literally. The number of an
operation is the token of its request.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

__all__ = ["KINDS", "Operation", "Script", "ScriptError", "read_script", "write_script"]

Operation = dict[str, Any]

FORMAT = "groupsim-oracle-script"
VERSION = 1

KINDS: dict[str, tuple[str, ...]] = {
    # requests; `client` is the sender, `version` the API version
    "join": (
        "client", "version", "group", "member", "instance", "type", "protocols",
        "session", "rebalance", "reason", "client_id",
    ),
    "sync": (
        "client", "version", "group", "member", "instance", "generation", "type", "name",
        "assignments",
    ),
    "heartbeat": ("client", "version", "group", "member", "instance", "generation"),
    "leave": ("client", "version", "group", "members"),
    "commit": (
        "client", "version", "group", "member", "instance", "generation", "retention", "topics",
    ),
    "txn_commit": (
        "client", "version", "group", "member", "instance", "generation",
        "transaction", "producer", "epoch", "topics",
    ),
    "fetch": ("version", "groups", "stable"),
    "offset_delete": ("version", "group", "topics"),
    "delete": ("version", "groups"),
    "describe": ("version", "groups"),
    "list": ("version", "states", "types"),
    "end_txn": ("group", "producer", "epoch", "committed"),
    # what happens around the coordinator
    "advance": ("ms",),
    "hold": ("on",),
    "commit_appends": ("count",),
    "fail_next_append": ("partition", "error"),
    "fail_next_verification": ("error",),
    "unload": ("partition", "epoch"),
    "load": ("partition", "epoch"),
    "hold_load": ("on",),
    "finish_load": ("partition", "error"),
    "compact": ("partition",),
    "truncate": ("partition",),
    "topics": ("topics",),
    "topics_deleted": ("topics",),
    "shutdown": (),
    "restart": ("config",),
}  # fmt: skip
"""Kind of operation → its fields."""


class ScriptError(Exception):
    """A file that is not a script: ``path``, ``reason``."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A run: the seed of the member ids, broker configuration in Kafka's names, the partitions of
    ``__consumer_offsets`` that this broker leads at the start (None: all), operations.
    """

    seed: str
    config: Mapping[str, int] = field(default_factory=dict)
    partitions: tuple[int, ...] | None = None
    operations: tuple[Operation, ...] = ()

    def with_operations(self, operations: Iterable[Operation]) -> Script:
        """The same run with other operations."""
        return replace(self, operations=tuple(operations))

    def to_plain(self) -> dict[str, Any]:
        """A JSON object."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "seed": self.seed,
            "config": dict(self.config),
            "partitions": None if self.partitions is None else list(self.partitions),
            "operations": list(self.operations),
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Script:
        """The script of a JSON object.

        Raises:
            ValueError: it is not one; the message says why.

        """
        if plain.get("format") != FORMAT or plain.get("version") != VERSION:
            raise ValueError(f"expected format {FORMAT!r} version {VERSION}")
        for number, operation in enumerate(plain["operations"]):
            kind = operation.get("op")
            if kind not in KINDS:
                raise ValueError(f"operation {number}: unknown kind {kind!r}")
            extra = set(operation) - set(KINDS[kind]) - {"op"}
            if extra:
                raise ValueError(f"operation {number} ({kind}): unknown fields {sorted(extra)}")
        partitions = plain.get("partitions")
        return cls(
            seed=plain["seed"],
            config=plain["config"],
            partitions=None if partitions is None else tuple(partitions),
            operations=tuple(plain["operations"]),
        )


def write_script(path: Path, script: Script) -> None:
    """Write a script as JSON with one operation a line, so that it can be read and edited."""
    plain = script.to_plain()
    operations = ",\n  ".join(json.dumps(operation) for operation in plain.pop("operations"))
    head = json.dumps(plain)[:-1]
    path.write_text(f'{head}, "operations": [\n  {operations}\n]}}\n', "utf-8")


def read_script(path: Path) -> Script:
    """Read what ``write_script`` wrote.

    Raises:
        ScriptError: the file is not a script.

    """
    try:
        return Script.from_plain(json.loads(path.read_text("utf-8")))
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise ScriptError(path, str(exc)) from exc
