"""The two machines do no I/O, read no clock and draw no random number."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import importlib, pkgutil, sys

class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name in {"trio", "time", "random", "asyncio", "socket"}:
            raise ImportError(f"a machine imports {name}")
        return None

for name in ("trio", "time", "random", "asyncio", "socket"):
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Refusing())

def modules(package):
    yield package
    found = importlib.import_module(package)
    for entry in pkgutil.walk_packages(found.__path__, package + "."):
        yield entry.name

for package in sys.argv[1:]:
    for name in modules(package):
        importlib.import_module(name)
print("imported", len(sys.modules))
"""


def _import(*packages: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            sys.executable,
            "-S",
            "-c",
            f"import sys; sys.path[:0] = {sys.path!r}\n{PROGRAM}",
            *packages,
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_the_coordinator_is_sans_io() -> None:
    """J-16, T-1: every module imports where trio, time and random cannot be imported."""
    done = _import("groupsim.protocol", "groupsim.coordinator")
    assert done.returncode == 0, done.stderr
    assert "imported" in done.stdout


def test_the_clients_are_sans_io() -> None:
    """CH-01: the same holds for the client machine."""
    done = _import("groupsim_clients")
    assert done.returncode == 0, done.stderr


def test_the_check_finds_a_machine_that_reads_the_clock() -> None:
    """CH-01: a module that needs trio or time is caught."""
    done = _import("groupsim.runtime")
    assert done.returncode != 0
    assert "a machine imports" in done.stderr
