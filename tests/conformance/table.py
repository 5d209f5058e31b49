"""Makes docs/conformance.md: rule → where it is implemented → which tests show it → status.

A rule counts as implemented where its id stands in a source file, and as shown where its id stands
in the name or docstring of a test function. ``python -m tests.conformance`` writes the document;
``--check`` says whether it is stale.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from groupsim.protocol.messages import APIS, ApiKey
from groupsim_clients.behaviour import CURRENT
from tests.oracle.golden import FOLDER, read_golden

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "conformance.md"
RULES = Path(__file__).with_name("rules.toml")
DECISIONS = ROOT / "tests" / "oracle" / "decisions.toml"
_SOURCES = {"broker": (ROOT / "groupsim",), "client": (ROOT / "clients", ROOT / "groupsim")}
_ID = re.compile(
    r"(?<![A-Za-z0-9-])(?:(?:CJ|CR|CS|CH|CL|CP|CO|CC|CN|PR|[JSHLODCTKAW])-\d+|[XV]\d+)(?![0-9])"
)
_RANGE = re.compile(
    r"(?<![A-Za-z0-9-])([A-Z]{1,2}-?)(\d+)(?: ?(?:\.\.|–|to) ?)(?:\1)?(\d+)(?![0-9])"
)


def rule_ids(text: str) -> set[str]:
    """The rule ids in ``text``; ``J-24..J-27``, ``J-24 to J-27`` and ``V1–V22`` are spelled out."""
    found = set(_ID.findall(text))
    for family, first, last in _RANGE.findall(text):
        width = len(first) if family.endswith("-") else 0
        found |= {f"{family}{n:0{width}d}" for n in range(int(first), int(last) + 1)}
    return found


def rules() -> dict[str, dict[str, str]]:
    """Rule book → rule id → title."""
    return tomllib.loads(RULES.read_text("utf-8"))


def decisions() -> dict[str, str]:
    """Rule id → why groupsim differs from Kafka there (empty when it does not)."""
    if not DECISIONS.exists():
        return {}
    entries = tomllib.loads(DECISIONS.read_text("utf-8")).get("decision", [])
    return {rule: entry["reason"] for entry in entries for rule in entry.get("rules", [])}


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def shown_by(folder: Path = ROOT / "tests") -> dict[str, list[str]]:
    """Rule id → the tests (``file::function``) that cite it, sorted."""
    shown: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("test_*.py")):
        for function in _functions(ast.parse(path.read_text("utf-8"))):
            if not function.name.startswith("test"):
                continue
            text = f"{ast.get_docstring(function) or ''} {_spelled(function.name)}"
            for rule in sorted(rule_ids(text)):
                shown.setdefault(rule, []).append(f"{path.relative_to(folder)}::{function.name}")
    return shown


def _spelled(name: str) -> str:
    """``test_j_24_and_pr_07`` → text in which the ids can be found."""
    return re.sub(r"_([a-z]{1,2})_?(\d{2})(?=_|$)", lambda m: f" {m[1].upper()}-{m[2]} ", name)


def implemented_in(folders: Iterable[Path]) -> dict[str, list[str]]:
    """Rule id → the modules in whose text it stands, sorted."""
    places: dict[str, list[str]] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            for rule in sorted(rule_ids(path.read_text("utf-8"))):
                places.setdefault(rule, []).append(str(path.relative_to(ROOT)))
    return places


_OPERATIONS = {
    "join": ApiKey.JOIN_GROUP,
    "sync": ApiKey.SYNC_GROUP,
    "heartbeat": ApiKey.HEARTBEAT,
    "leave": ApiKey.LEAVE_GROUP,
    "commit": ApiKey.OFFSET_COMMIT,
    "txn_commit": ApiKey.TXN_OFFSET_COMMIT,
    "fetch": ApiKey.OFFSET_FETCH,
    "offset_delete": ApiKey.OFFSET_DELETE,
    "describe": ApiKey.DESCRIBE_GROUPS,
    "list": ApiKey.LIST_GROUPS,
    "delete": ApiKey.DELETE_GROUPS,
}


def golden_requests() -> dict[ApiKey, Counter[int]]:
    """API → version → how many requests of the golden transcripts have it."""
    counts: dict[ApiKey, Counter[int]] = {key: Counter() for key in APIS}
    for path in sorted(FOLDER.glob("*.gz")):
        for script, _ in read_golden(path):
            for operation in script.operations:
                key = _OPERATIONS.get(operation["op"])
                if key is not None:
                    counts[key][operation.get("version", 0)] += 1
    return counts


def _api_lines() -> Iterator[str]:
    sent = dict(CURRENT.api_versions)
    counts = golden_requests()
    yield "| API | number | versions | sent by `java` | held against Kafka in the golden transcripts |"
    yield "|---|---|---|---|---|"
    for api in sorted(APIS.values(), key=lambda api: api.key):
        held = " ".join(f"v{version}:{n}" for version, n in sorted(counts[api.key].items()))
        yield (
            f"| {api.name} | {api.key.value} | {api.min_version}–{api.max_version} "
            f"| {sent.get(api.key, '–')} | {held or '–'} |"
        )


def missing() -> list[str]:
    """The rules that no test cites."""
    shown = shown_by()
    return [rule for book in rules().values() for rule in book if rule not in shown]


def _book_lines(book: str, titles: dict[str, str], shown: dict[str, list[str]]) -> Iterator[str]:
    places = implemented_in(_SOURCES[book])
    differs = decisions()
    yield f"## Rules of the {book}\n"
    yield "| rule | title | implemented in | tests | status |"
    yield "|---|---|---|---|---|"
    for rule, title in titles.items():
        modules = "<br>".join(places.get(rule, [])[:3]) or "–"
        tests = shown.get(rule, [])
        more = f" and {len(tests) - 2} more" if len(tests) > 2 else ""
        status = f"differs because {differs[rule]}" if rule in differs else "as Kafka"
        if not tests:
            status = "**no test**"
        yield f"| {rule} | {title} | {modules} | {'<br>'.join(tests[:2])}{more} | {status} |"
    yield ""


def document() -> str:
    """The whole of docs/conformance.md."""
    shown = shown_by()
    lines = [
        "# Conformance with Apache Kafka",
        "",
        "Made by `python -m tests.conformance`; do not edit. The rules are those of the project's",
        "rule books; a rule's id stands where it is implemented and in the tests that show it.",
        "The coordinator is held against Apache Kafka 4.4's own code: see `tests/oracle`.",
        "",
        "## APIs and versions",
        "",
        "The last column counts the recorded requests of each version whose answers, records, timers",
        "and group states are compared with Kafka's in every test run.",
        "",
        *_api_lines(),
    ]
    lines.append("")
    for book, titles in rules().items():
        lines += _book_lines(book, titles, shown)
    lines += ["## Differs from Kafka because", ""]
    differs = decisions()
    lines += [f"- {rule}: {why}" for rule, why in differs.items()] or ["Nothing."]
    return "\n".join(lines) + "\n"
