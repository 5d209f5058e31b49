"""Starts the Java driver and talks to it; the language is described in README.md beside this file."""

from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

__all__ = ["Oracle", "OracleError", "available", "build", "member_uuid", "topic_id"]

Command = Mapping[str, Any]
Result = dict[str, Any]

_PROJECT = Path(__file__).parent / "java"
_MAIN_CLASS = "groupsim.oracle.Driver"
_EXIT_SECONDS = 10  # how long a closed driver may take to leave before it is killed


class OracleError(Exception):
    """The driver could not be built, could not carry out a command, or died."""


def available() -> bool:
    """Whether Java and Maven are installed here."""
    return shutil.which("java") is not None and shutil.which("mvn") is not None


def member_uuid(seed: str, index: int) -> str:
    """The UUID of the ``index``-th member id (from 0) that is made after a reset with ``seed``."""
    digest = hashlib.md5(f"{seed}/{index}".encode(), usedforsecurity=False).digest()
    return str(uuid.UUID(bytes=digest, version=4))


def topic_id(name: str, incarnation: int = 0) -> str:
    """Id of the ``incarnation``-th topic (from 0) called ``name``, as Kafka prints it."""
    text = f"topic/{name}/{incarnation}"
    digest = hashlib.md5(text.encode(), usedforsecurity=False).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def build() -> list[str]:
    """Build the project unless these sources were built before; return the class path.

    Raises :class:`OracleError` with Maven's output when the build fails.
    """
    target = _PROJECT / "target"
    # A name of its own for each state of the sources: a running driver keeps the jar it started
    # with, whoever builds meanwhile.
    jar = target / f"oracle-{_fingerprint()}.jar"
    if not jar.exists():
        target.mkdir(exist_ok=True)
        with (target / "build.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not jar.exists():
                _run_maven()
                # Renamed into place, so that no process sees half a jar.
                Path(shutil.copy(target / "oracle.jar", target / "new.jar")).replace(jar)
    return [str(jar), str(target / "lib" / "*")]


def _run_maven() -> None:
    command = ["mvn", "-q", "-B", "package"]
    done = subprocess.run(command, cwd=_PROJECT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OracleError(f"mvn package failed:\n{done.stdout}{done.stderr}")


def _fingerprint() -> str:
    digest = hashlib.sha256()
    for path in sorted([_PROJECT / "pom.xml", *(_PROJECT / "src").rglob("*.java")]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


class Oracle:
    """One Java process with one coordinator at a time.

    Built and started by the first command; use it as a context manager, or call :meth:`close`.
    One process serves any number of resets.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._complaints: IO[str] | None = None

    def send(self, commands: Sequence[Command]) -> list[Result]:
        """Carry out ``commands`` in order and return their results, in one round trip.

        A command that goes wrong has ``"error"`` in its result; :class:`OracleError` is raised
        only when the driver itself is gone.
        """
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(list(commands), separators=(",", ":")) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise OracleError(f"the driver died (exit {process.wait()}): {self._last_words()}")
        results: list[Result] = json.loads(line)
        return results

    def ask(self, op: str, /, **fields: object) -> Result:
        """Carry out one command; :class:`OracleError` if its result has ``"error"``."""
        (result,) = self.send([{"op": op, **fields}])
        if "error" in result:
            raise OracleError(f"{op}: {result['error']}")
        return result

    def reset(
        self,
        *,
        seed: str = "",
        time_ms: int = 0,
        config: Mapping[str, object] | None = None,
        topics: Mapping[str, int] | None = None,
        load: Sequence[int] | None = None,
        started: bool = True,
    ) -> Result:
        """Make a new coordinator at virtual time ``time_ms``.

        ``config`` has Kafka's broker names, ``topics`` partition counts. ``load`` names the
        partitions to elect with epoch 0; ``None`` means all.
        """
        fields: dict[str, object] = {
            "seed": seed,
            "time": time_ms,
            "config": dict(config or {}),
            "topics": dict(topics or {}),
            "started": started,
        }
        if load is not None:
            fields["load"] = list(load)
        return self.ask("reset", **fields)

    def close(self) -> None:
        """End the process. The next command would start another."""
        process, self._process = self._process, None
        if process is not None:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.close()
            try:
                process.wait(_EXIT_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()
        if self._complaints is not None:
            self._complaints.close()
            self._complaints = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None:
            class_path = ":".join(build())
            self._complaints = tempfile.TemporaryFile("w+")  # noqa: SIM115  (lives as long as the process)
            self._process = subprocess.Popen(
                ["java", "-XX:+UseSerialGC", "-Xmx1g", "-cp", class_path, _MAIN_CLASS],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._complaints,
                text=True,
                encoding="utf-8",
            )
        return self._process

    def _last_words(self) -> str:
        if self._complaints is None:
            return ""
        self._complaints.seek(0)
        return self._complaints.read()[-2000:]
