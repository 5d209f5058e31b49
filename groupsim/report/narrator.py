"""A run told in sentences: one line for each thing that a person would want to know.

Where Kafka's broker logs a sentence, it stands here as it is, so that it can be found in real logs. The
many small steps of the protocol are left out; ``groupsim show --kind`` has them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from groupsim.protocol.errors import ErrorCode
from groupsim.report.repeats import Repeats
from groupsim.report.timeline import Line
from groupsim.report.words import partitions, plain_text, printable, some
from groupsim.trace.events import Event
from groupsim.trace.writer import TraceWriter

__all__ = ["Narrator"]

_PROCESS: Final = {
    "started": ("starts", "start", "process"),
    "stopping": ("is asked to stop", "are asked to stop", "process"),
    "exited": ("has exited", "have exited", "process"),
    "killed": ("is killed", "are killed", "trouble"),
    "crashed": ("crashes", "crash", "trouble"),
    "paused": ("freezes", "freeze", "trouble"),
    "resumed": ("runs again", "run again", "process"),
}
_OWNERSHIP: Final = {
    "assigned": ("takes", "take", "ownership"),
    "revoked": ("gives up", "give up", "ownership"),
    "lost": ("has lost", "have lost", "trouble"),
}
_QUIET_LEVELS: Final = ("TRACE", "DEBUG", "INFO")
_QUIET_APPLICATION: Final = ("processing_started", "processing_finished")
_LEADERSHIP: Final = {
    "elected": "is elected coordinator of",
    "loading": "loads",
    "loaded": "has loaded",
    "unloaded": "has unloaded",
}
OFFSETS_TOPIC: Final = "__consumer_offsets"
_ERRORS: Final = {error.value: error.name for error in ErrorCode}
_SAYS_NOTHING: Final = ("closed",)
"""A process exits because its client has closed, unless something went wrong."""
_MERGE_FROM: Final = 9
"""So many members doing the same thing in a row become one line; in a smaller group, who does what
is what one wants to see.
"""


Fields = Mapping[str, Any]


class Narrator:
    """Turns events into lines for ``tell``; ``flush`` tells what is still held back at the end."""

    def __init__(self, tell: Callable[[Line], None]) -> None:
        self._tell = tell
        self._group_of: dict[str, str] = {}
        self._held: list[tuple[Line, tuple[str, str, str], Any]] = []
        self._moves: dict[tuple[str, str], list[tuple[str, int]]] = {}
        self._moves_us = 0
        self._repeats = Repeats(tell)
        self._entry = (0, frozenset[str]())  # the newest entry of the timeline, and whom it names
        self._commit: Line | None = None  # a failed commit, until it is known who tells of it
        self._complained = ("", -1)  # who said last, and when, that a commit of its has failed

    kinds: Final = (
        *("topic", "client", "timeline", "process", "order", "network", "fault", "leadership"),
        *("append_done", "script", "broker_log", "ownership", "callback", "commit"),
        *("application", "exception", "client_log"),
    )

    def attach(self, writer: TraceWriter) -> None:
        """Follow a trace while it is written."""
        for kind in self.kinds:
            writer.listen(kind, self.feed)

    def feed(self, event: Event) -> None:
        """Take one event; kinds without a sentence are ignored."""
        handler: Any = getattr(self, f"_on_{event.kind}", None)
        if handler is not None:
            handler(event, event.fields)

    def flush(self) -> None:
        """Tell the lines held back for merging."""
        self._tell_complaints()
        self._tell_moves()
        self._tell_held()

    def _tell_held(self) -> None:
        held, self._held = self._held, []
        if len(held) < _MERGE_FROM:
            for line, _, _ in held:
                self._tell(line)
            return
        first, (_, plural, _), _ = held[0]
        items = [item for _, _, item in held if item is not None]
        count = sum(len(item) for item in items)
        what = f" {count} partitions" if items else ""
        names = some(line.who for line, _, _ in held)
        text = f"{len(held)} members {plural}{what} ({names})"
        self._tell(
            Line(time_us=first.time_us, group=first.group, who="", text=text, tone=first.tone)
        )

    def _tell_moves(self) -> None:
        """Tell of the partitions that changed coordinators at one moment: one line for many."""
        moves, self._moves = self._moves, {}
        for (broker, what), moved in moves.items():
            text = f"{_LEADERSHIP.get(what, what)} {partitions(moved)}"
            self._tell(Line(time_us=self._moves_us, group="", who=broker, text=text, tone="broker"))

    def _say(self, event: Event, who: str, text: str, tone: str, group: str | None = None) -> None:
        self.flush()
        self._tell(self._line(event, who, text, tone, group))

    def _line(self, event: Event, who: str, text: str, tone: str, group: str | None) -> Line:
        return Line(
            time_us=event.time_us,
            group=printable(self._group_of.get(who, "") if group is None else group),
            who=printable(who),
            text=printable(text),
            tone=tone,
        )

    def _merge(
        self, event: Event, who: str, words: tuple[str, str, str], text: str, item: Any = None
    ) -> None:
        """Hold a line back: the next ones may say the same of others."""
        self._tell_complaints()
        self._tell_moves()
        line = self._line(event, who, text, words[2], None)
        if self._held and (self._held[-1][1] != words or self._held[-1][0].group != line.group):
            self.flush()
        self._held.append((line, words, item))

    def _complain(self, line: Line) -> None:
        """Hold a complaint back: it may come again."""
        self._tell_moves()
        self._tell_held()
        self._repeats.add(line)

    def _tell_complaints(self) -> None:
        self._complain_of_commit()
        self._repeats.flush()

    def _complain_of_commit(self) -> None:
        commit, self._commit = self._commit, None
        if commit is not None:
            self._complain(commit)

    def _client_tells_of_commit(self, event: Event, who: str) -> None:
        """The client's own words about its failed commit are enough."""
        self._complained = (who, event.time_us)
        commit = self._commit
        if commit is not None and (commit.who, commit.time_us) == (printable(who), event.time_us):
            self._commit = None

    def _on_topic(self, event: Event, f: Fields) -> None:
        if event.time_us:  # those of the start are no news
            text = f"topic {f['topic']} now has {f['partitions']} partitions"
            self._say(event, "", text, "scenario")

    def _on_client(self, _: Event, f: Fields) -> None:
        self._group_of[f["who"]] = f["group_id"]

    def _on_timeline(self, event: Event, f: Fields) -> None:
        text = _words("scenario:", f["action"], f["targets"], _bracketed(f["detail"]))
        self._say(event, "", text, "scenario")
        self._entry = (event.id, frozenset(map(str, f["targets"])))

    def _on_process(self, event: Event, f: Fields) -> None:
        who, what = f["who"], f["event"]
        words = _PROCESS.get(what, (what, what, "process"))
        detail = "" if f["detail"] in _SAYS_NOTHING else f["detail"]
        text = _words(words[0], _bracketed(detail))
        if f["role"] == "client":
            self._merge(event, who, words, text)
        else:
            self._say(event, who, text, words[2])

    def _on_order(self, event: Event, f: Fields) -> None:
        if event.cause == self._entry[0] and f["who"] in self._entry[1]:
            return  # the entry has said it, in the words of the file
        text = _words("is told:", f["name"].replace("_", " "), _bracketed(f["arguments"]))
        self._say(event, f["who"], text, "scenario")

    def _on_network(self, event: Event, f: Fields) -> None:
        text = _words("network:", f["event"], f["selector"], _bracketed(f["detail"]))
        self._say(event, "", text, "trouble")

    def _on_fault(self, event: Event, f: Fields) -> None:
        text = _words("fault:", f["fault"], f["target"], _bracketed(f["detail"]))
        self._say(event, "", text, "trouble")

    def _on_leadership(self, event: Event, f: Fields) -> None:
        if not event.time_us:  # the first elections are how the world begins
            return
        if self._moves_us != event.time_us:
            self.flush()
            self._moves_us = event.time_us
        moved = self._moves.setdefault((plain_text(f["broker"]), f["event"]), [])
        moved.append((OFFSETS_TOPIC, f["partition"]))

    def _on_append_done(self, event: Event, f: Fields) -> None:
        if f["error_code"]:
            error = _ERRORS.get(f["error_code"], f["error_code"])
            text = f"append {f['append_id']} to {OFFSETS_TOPIC} failed: {error}"
            self._say(event, f["who"], text, "trouble")

    def _on_script(self, event: Event, f: Fields) -> None:
        self._say(event, f["who"], f["sentence"], "client")

    def _on_broker_log(self, event: Event, f: Fields) -> None:
        level = f["level"].upper()
        if level not in ("TRACE", "DEBUG"):
            tone = "broker" if level == "INFO" else "trouble"
            self._say(event, f["who"], f["sentence"], tone, f["group_id"])

    def _on_ownership(self, event: Event, f: Fields) -> None:
        change, pairs = f["change"], f["partitions"]
        words = _OWNERSHIP.get(change, (change, change, "ownership"))
        if pairs or change == "assigned":
            self._merge(event, f["who"], words, f"{words[0]} {partitions(pairs)}", pairs)

    def _on_callback(self, event: Event, f: Fields) -> None:
        if f["phase"] == "raised":
            self._say(event, f["who"], f"{f['callback']} raised an exception", "trouble")

    def _on_commit(self, event: Event, f: Fields) -> None:
        if f["outcome"] != "ok":
            self._complain_of_commit()
            if self._complained != (f["who"], event.time_us):
                text = f"commit ({f['mode']}) failed: {f['outcome']}"
                self._commit = self._line(event, f["who"], text, "trouble", None)

    def _on_application(self, event: Event, f: Fields) -> None:
        if f["event"] not in _QUIET_APPLICATION:
            text = f"{f['event'].replace('_', ' ')} ({f['duration_ms']} ms)"
            self._say(event, f["who"], text, "trouble")

    def _on_exception(self, event: Event, f: Fields) -> None:
        detail = f": {f['detail']}" if f["detail"] else ""
        text = f"{f['call']} raises {f['exception']}{detail}"
        if f["call"] == "commit":
            self._client_tells_of_commit(event, f["who"])
        self._say(event, f["who"], text, "trouble")

    def _on_client_log(self, event: Event, f: Fields) -> None:
        if f["level"].upper() not in _QUIET_LEVELS:
            if "commit" in f["sentence"].lower():
                self._client_tells_of_commit(event, f["who"])
            self._complain_of_commit()
            self._complain(self._line(event, f["who"], f["sentence"], "trouble", None))


def _bracketed(detail: Any) -> str:
    text = plain_text(detail) if detail not in (None, "", (), {}) else ""
    return f"({text})" if text else ""


def _words(*parts: Any) -> str:
    return " ".join(text for part in parts if (text := plain_text(part)))
