"""The file of a trace: it appears in one stroke, and errors name it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

__all__ = ["create_trace", "with_path", "write_all"]


def create_trace(path: Path, header: bytes) -> int:
    """Create the file with its header and return a descriptor.

    A regular file is replaced in one stroke, so that there is the old one, or none, or one with a
    complete header. Anything else (a pipe, /dev/null) is written to as it is.

    Raises:
        OSError: it cannot be written; the error names ``path``.

    """
    target = Path(os.path.realpath(path))
    try:
        if target.exists() and not target.is_file():
            descriptor = os.open(target, os.O_WRONLY)
            write_all(descriptor, header, path)
            return descriptor
        made = target.with_name(f".{target.name}.{os.getpid()}")
        descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    except OSError as error:
        raise with_path(error, path) from None
    try:
        write_all(descriptor, header, path)
        made.replace(target)
    except BaseException:
        os.close(descriptor)
        with contextlib.suppress(OSError):
            made.unlink()
        raise
    return descriptor


def write_all(descriptor: int, data: bytes | bytearray, path: Path) -> None:
    """Write all of ``data``, however many strokes it takes.

    Raises:
        OSError: it cannot be written; the error names ``path``.

    """
    try:
        done = os.write(descriptor, data)
        while done < len(data):  # a full pipe or a signal may cut a write short
            done += os.write(descriptor, bytes(data[done:]))
    except OSError as error:
        raise with_path(error, path) from None


def with_path(error: OSError, path: Path) -> OSError:
    """Return ``error`` with the file's name, as open() raises it."""
    return type(error)(error.errno, error.strerror, str(path))
