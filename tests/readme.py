"""The README's output block is what the command prints: ``python -m tests.readme`` rewrites it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"
_BLOCK = re.compile(
    r"(<!-- output: (?P<arguments>[^>]*) -->\n```text\n)(?P<text>.*?)(```\n)", re.DOTALL
)


def shown() -> tuple[str, str]:
    """The arguments of ``groupsim run`` and the output that the README shows."""
    found = _BLOCK.search(README.read_text("utf-8"))
    assert found is not None, "README.md has no output block"
    return found["arguments"], found["text"]


def printed(arguments: str) -> str:
    """The end of what ``groupsim run`` prints: from the table of rebalances on."""
    command = [sys.executable, "-m", "groupsim", "run", *arguments.split()]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    start = re.search(r"^\S+: \d+ rebalances?$", output, re.MULTILINE)
    assert start is not None, output
    return output[start.start() :]


def main() -> None:
    """Write the current output into the README."""
    arguments, _ = shown()
    text = printed(arguments)
    README.write_text(
        _BLOCK.sub(lambda found: found[1] + text + found[4], README.read_text("utf-8")), "utf-8"
    )


if __name__ == "__main__":
    main()
