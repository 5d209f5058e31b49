"""What clients complain of again and again is told once, and every failed commit is told once."""

from __future__ import annotations

from groupsim.report import Line, Narrator
from groupsim_clients.machine import AppRaised, ClientLog, CommitNote

from .story import S, Story

MS = 1_000
GONE = "DisconnectException"


class Told:
    """A story and the lines that are told of it."""

    def __init__(self) -> None:
        self.story = Story(clients=("c-1", "c-2"))
        self.lines: list[Line] = []
        self._narrator = Narrator(self.lines.append)
        self._narrator.attach(self.story.writer)
        for who in ("c-1", "c-2"):
            self.story.client(who)

    def commit(self, at_us: int, who: str, outcome: str = GONE, mode: str = "auto") -> None:
        """A commit ends."""
        note = CommitNote(mode=mode, outcome=outcome, offsets=(), generation_id=1)
        self.story.writer.note(at_us, 0, who, note)

    def log(self, at_us: int, who: str, sentence: str) -> None:
        """The client logs a warning."""
        self.story.writer.note(at_us, 0, who, ClientLog(level="WARN", sentence=sentence))

    def raises(self, at_us: int, who: str, call: str) -> None:
        """A call raises an exception."""
        note = AppRaised(call=call, exception="CommitFailedException", detail="too late")
        self.story.writer.note(at_us, 0, who, note)

    def told(self) -> list[tuple[int, str, str]]:
        """All lines: time in ms, who, and what."""
        self._narrator.flush()
        return [(line.time_us // MS, line.who, line.text) for line in self.lines]


def test_a_wall_of_complaints_is_one_line() -> None:
    """Two members complain until something else happens; then it starts anew."""
    told = Told()
    for number in range(10):
        told.commit(S + number * 100 * MS, "c-1")
        told.commit(S + number * 100 * MS + MS, "c-2")
    told.story.process(3 * S, "c-2", "crashed")
    told.commit(4 * S, "c-1")
    assert told.told() == [
        (1000, "", f"2 members: commit (auto) failed: {GONE} (20 times until 00:01.901: c-1, c-2)"),
        (3000, "c-2", "crashes"),
        (4000, "c-1", f"commit (auto) failed: {GONE}"),
    ]


def test_few_complaints_stay_as_they_are() -> None:
    """Twice the same is no wall, and different complaints keep the order of time."""
    told = Told()
    told.log(1 * S, "c-1", "one")
    told.log(2 * S, "c-1", "another")
    told.log(3 * S, "c-2", "one")
    told.log(4 * S, "c-1", "a third")
    assert told.told() == [
        (1000, "c-1", "one"),
        (2000, "c-1", "another"),
        (3000, "c-2", "one"),
        (4000, "c-1", "a third"),
    ]
    for number in range(3):
        told.log((5 + number) * S, "c-2", "one")
    assert told.told()[4:] == [(5000, "c-2", "one (3 times until 00:07.000)")]


def test_a_failed_commit_is_told_once() -> None:
    """The client's own words are enough, whether they come before or after the outcome."""
    told = Told()
    told.log(1 * S, "c-1", "Offset commit failed on partition orders-0: loading.")
    told.commit(1 * S, "c-1")
    told.commit(2 * S, "c-1", mode="sync")
    told.raises(2 * S, "c-1", "commit")
    assert [text for _, _, text in told.told()] == [
        "Offset commit failed on partition orders-0: loading.",
        "commit raises CommitFailedException: too late",
    ]


def test_other_words_do_not_hide_a_failed_commit() -> None:
    """Neither another's words, nor those of another moment, nor those about something else."""
    told = Told()
    told.commit(1 * S, "c-1")
    told.log(1 * S, "c-2", "Offset commit failed.")
    told.commit(2 * S, "c-1", mode="sync")
    told.log(3 * S, "c-1", "Offset commit failed.")
    told.commit(4 * S, "c-2")
    told.raises(4 * S, "c-2", "poll")
    told.commit(5 * S, "c-1", "ok")
    failed = [(at_ms, who) for at_ms, who, text in told.told() if text.startswith("commit (")]
    assert failed == [(1000, "c-1"), (2000, "c-1"), (4000, "c-2")]


def test_what_never_comes_again_is_not_kept_for_ever() -> None:
    """Complaints that all differ are told although nothing else happens."""
    told = Told()
    for number in range(1_000):
        told.log(number * MS, "c-1", f"complaint {number}")
    assert len(told.lines) >= 800
    assert [text for _, _, text in told.told()] == [f"complaint {n}" for n in range(1_000)]
