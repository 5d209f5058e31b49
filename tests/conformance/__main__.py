"""``python -m tests.conformance [--check]``: write docs/conformance.md, or say if it is stale."""

from __future__ import annotations

import sys

from tests.conformance.table import DOCUMENT, document, missing


def main(arguments: list[str]) -> int:
    """Write or check the document; exit status 1 when it is stale or a rule has no test."""
    text = document()
    without = missing()
    if without:
        print(f"{len(without)} rules without a test: {' '.join(without)}")
    if "--check" in arguments:
        stale = not DOCUMENT.exists() or DOCUMENT.read_text("utf-8") != text
        if stale:
            print(f"{DOCUMENT.name} is stale: run python -m tests.conformance")
        return 1 if stale or without else 0
    DOCUMENT.write_text(text, "utf-8")
    print(f"wrote {DOCUMENT.name}")
    return 1 if without else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
