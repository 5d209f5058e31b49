"""The command ``groupsim``. Thin: it parses, calls, prints. Imports wait until they are needed."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line and exit with its status (see ``groupsim.cli.statuses``)."""
    from groupsim.cli.statuses import run_guarded

    sys.exit(run_guarded(sys.argv[1:]))
