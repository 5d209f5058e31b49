"""The table of event kinds in docs/trace.md, made from the registry.

``python -m groupsim.trace.document docs/trace.md`` renews it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from groupsim.trace.events import Kind, registered_kinds

__all__ = ["kinds_table", "renewed"]

BEGIN: Final = "<!-- kinds: made by python -m groupsim.trace.document docs/trace.md -->"
END: Final = "<!-- end of kinds -->"


def kinds_table() -> str:
    """Return the table of all kinds of this groupsim, in Markdown."""
    rows = ["| no. | kind | fields | meaning |", "|---:|---|---|---|"]
    rows += [_row(kind) for kind in registered_kinds().all]
    return "\n".join(rows)


def renewed(document: str) -> str:
    """Return ``document`` with the table between the two marks made anew.

    Raises:
        ValueError: the marks are missing.

    """
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError("the marks around the table of kinds are missing")
    return f"{before}{BEGIN}\n\n{kinds_table()}\n\n{END}{after}"


def _row(kind: Kind) -> str:
    fields = ", ".join(f"`{name}`" for name in kind.fields)
    doc = kind.doc.replace("``", "`").replace("|", "\\|")
    return f"| {kind.number} | `{kind.name}` | {fields} | {doc} |"


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(renewed(path.read_text(encoding="utf-8")), encoding="utf-8")
