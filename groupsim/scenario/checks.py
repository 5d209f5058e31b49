"""What a form cannot show: names that mean nothing, times outside the run, configurations.

Every check takes the usable rest of a scenario and adds faults by path; where a fault of form has
spoiled a declaration, references to it are not judged.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from groupsim.coordinator.config import CoordinatorConfig
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import APIS
from groupsim.scenario._base import Part
from groupsim.scenario.config_checks import ConfigChecker
from groupsim.scenario.configs import kafka_values
from groupsim.scenario.document import Document
from groupsim.scenario.durations import duration_text
from groupsim.scenario.expect import CommittedAt, Expectation, Window
from groupsim.scenario.faults import Fault, Path, near_match, shown
from groupsim.scenario.members import Member, Subscription, Work
from groupsim.scenario.model import Scenario
from groupsim.scenario.selection import UnknownMemberError, candidates, select
from groupsim.scenario.validation import Form
from groupsim.scenario.verbs import Entry

__all__ = ["MAX_MEMBERS", "MAX_REPEATS", "Checker", "semantic_faults"]

MAX_REPEATS: Final = 1_000_000
"""Times that one entry of the timeline may happen."""

MAX_MEMBERS: Final = 100_000
"""Members in all groups together."""

_SHOWN: Final = 12
"""Names listed in a message before it says how many more there are."""


def semantic_faults(document: Document, form: Form) -> list[Fault]:
    """Return the faults of meaning in the usable rest of a scenario."""
    if form.scenario is None:
        return []
    checker = Checker(document, form, form.scenario)
    checker.check()
    return checker.faults


@dataclass(slots=True)
class Checker:
    """Collects the faults of one scenario."""

    document: Document
    form: Form
    scenario: Scenario
    faults: list[Fault] = field(default_factory=list)
    members: dict[str, tuple[str, Member]] = field(default_factory=dict)

    def add(self, path: Path, problem: str, **more: str) -> None:
        """Add a fault at ``path`` of the usable rest."""
        fault = self.document.fault(self.form.original(path), problem, **more)
        if fault not in self.faults:
            self.faults.append(fault)

    def check(self) -> None:
        """Run all checks."""
        total = sum(m.count or 1 for g in self.scenario.groups.values() for m in g.members)
        if total > MAX_MEMBERS:
            self.add(("groups",), "too many members", found=str(total), allowed=f"{MAX_MEMBERS}")
            return
        self.members = self.scenario.members()
        self.declarations()
        for index, link in enumerate(self.scenario.network.links):
            self.selection(link, ("network", "links", index))
        for index, entry in enumerate(self.scenario.timeline):
            self.entry(index, entry, ("timeline", index))
        for index, expectation in enumerate(self.scenario.expect):
            self.expectation(expectation, ("expect", index))
        ConfigChecker(self.scenario, self.add, self.stands).check()

    def stands(self, path: Path) -> bool:
        """Return whether a path of the usable rest is written in the file."""
        return self.form.original(path) in self.document.places

    # -- declarations ---------------------------------------------------------------------------

    def declarations(self) -> None:
        """Members have names of their own, a subscription, and start within the run."""
        taken: dict[str, Path] = {}
        for group_id, group in self.scenario.groups.items():
            base: Path = ("groups", group_id)
            self.subscription(group.subscribe, (*base, "subscribe"))
            self.work(group.work, (*base, "work"))
            for index, member in enumerate(group.members):
                path = (*base, "members", index)
                self.taken(member, path, taken)
                self.subscription(member.subscribe, (*path, "subscribe"))
                self.work(member.work, (*path, "work"))
                start = member.start or group.start
                if start is not None and start.at is not None:
                    self.time(start.at, (*path, "start", "at"))
                missing = member.subscribe is None and group.subscribe is None
                spoiled = self.form.is_spoiled(*base, "subscribe")
                if missing and not spoiled and not self.form.is_spoiled(*path, "subscribe"):
                    self.add((*path, "subscribe"), "is missing", allowed="topics, or a pattern")

    def taken(self, member: Member, path: Path, taken: dict[str, Path]) -> None:
        """No two members, and no member and broker, share a name."""
        for name in member.names():
            if name in taken:
                line = self.document.place(self.form.original(taken[name]))[0]
                self.add((*path, "name"), f"the name {name!r} is taken in line {line}")
                return
            taken[name] = path
        broker = re.fullmatch(r"b-([0-9]+)", member.name) or (member.name == "b" and member.count)
        if broker:
            self.add(
                (*path, "name"), "b-1, b-2 and so on are the brokers", found=shown(member.name)
            )

    def subscription(self, subscription: Subscription | None, path: Path) -> None:
        """Topics exist, patterns can be compiled."""
        if subscription is None:
            return
        for index, topic in enumerate(subscription.topics or ()):
            self.topic(topic, (*path, "topics", index), short=(*path, index))
        self.pattern(subscription.pattern, (*path, "pattern"))

    def pattern(self, pattern: str | None, path: Path) -> None:
        """A pattern can be compiled."""
        if pattern is not None:
            try:
                re.compile(pattern)
            except re.error as error:
                self.add(path, f"not a pattern: {error}", found=shown(pattern))

    def topic(self, topic: str, path: Path, short: Path = ()) -> None:
        """A topic is declared."""
        known = self.topics()
        if known and topic not in known:
            standing = short if short and self.stands(short) else path
            self.unknown(standing, "topic", topic, known)

    def topics(self) -> tuple[str, ...]:
        """Return the declared topics, those with faults of their own included."""
        written = self.document.data.get("topics")
        return tuple(str(name) for name in written) if isinstance(written, dict) else ()

    def members_spoiled(self) -> bool:
        """Return whether faults may hide members, so that nothing can be said of names."""
        return any(
            path[:1] == ("groups",) and (len(path) <= 4 or path[-1] in ("name", "count"))
            for path in self.form.spoiled
        )

    def work(self, work: Work | None, path: Path) -> None:
        """Poisoned partitions exist."""
        for index, poison in enumerate(work.poison or () if work is not None else ()):
            self.partition(poison.topic, poison.partition, (*path, "poison", index))

    def partition(self, name: str, number: int, path: Path) -> None:
        """A partition of a declared topic exists, at the end at the latest."""
        self.topic(name, (*path, "topic"))
        if name not in self.scenario.topics:
            return
        count = self.size(name)
        if number >= count:
            place = (*path, "partition")
            self.add(place, "no such partition", found=str(number), allowed=f"0 to {count - 1}")

    # -- the timeline ---------------------------------------------------------------------------

    def entry(self, index: int, entry: Entry, path: Path) -> None:
        """Everything that an entry names exists, and it happens within the run."""
        for name in ("at", "until"):
            at = getattr(entry, name)
            if at is not None:
                self.time(at, (*path, name))
        if entry.every is not None:
            until = self.scenario.until if entry.until is None else entry.until
            if (until - (entry.at or 0)) // entry.every > MAX_REPEATS:
                self.add((*path, "every"), "happens too often", allowed=f"{MAX_REPEATS} times")
        verb, action = entry.verb, entry.action
        place = (*path, verb)
        if verb == "add_partitions":
            for topic, total in action.items():
                self.growth(index, topic, total, (*place, topic))
            return
        self.selection(action, place)
        self.group(getattr(action, "leader_of", None), (*place, "leader_of"))
        self.group(getattr(action, "group", None), (*place, "group"))
        self.group(getattr(action, "coordinator_of", None), (*place, "coordinator_of"))
        self.subscription(getattr(action, "subscribe", None), (*place, "subscribe"))
        self.work(getattr(action, "work", None), (*place, "work"))
        if verb == "subscribe":
            for number, topic in enumerate(action.topics or ()):
                self.topic(topic, (*place, "topics", number))
            self.pattern(action.pattern, (*place, "pattern"))
        if verb in _LOG_VERBS:
            self.offsets_partition(action.partition, (*place, "partition"))
        self.broker(getattr(action, "broker", None), (*place, "broker"))
        self.broker(getattr(action, "to", None), (*place, "to"))
        self.choice(getattr(action, "error", None), _ERRORS, "error", (*place, "error"))
        self.choice(getattr(action, "api", None), _APIS, "API", (*place, "api"))

    def growth(self, index: int, topic: str, total: int, path: Path) -> None:
        """Topics only grow: from what they begin with, and from entry to entry in time."""
        self.topic(topic, path)
        if topic not in self.scenario.topics:
            return
        has = self.size(topic, index)
        if total <= has:
            allowed = f"more than the {has} that it has by then"
            self.add(path, "topics only grow", found=str(total), allowed=allowed)

    def size(self, topic: str, before: int | None = None) -> int:
        """How many partitions a topic has before an entry of the timeline takes effect, or at the end."""
        entries = self.scenario.timeline
        sizes = [self.scenario.topics[topic].partitions]
        for index, entry in enumerate(entries):
            earlier = before is None or (entry.at or 0, index) < (entries[before].at or 0, before)
            if entry.add_partitions and earlier:
                sizes.append(entry.add_partitions.get(topic, 0))
        return max(sizes)

    def selection(self, action: Any, path: Path) -> None:
        """Members and brokers that a verb or a link names exist."""
        names = getattr(action, "members", None)
        if not self.members_spoiled():
            for index, name in enumerate(names or ()):
                try:
                    select(self.members, (name,))
                except UnknownMemberError:
                    place = self.written(path, "members", index)
                    self.unknown(place, "member", name, candidates(self.members))
        for index, number in enumerate(getattr(action, "brokers", None) or ()):
            self.broker(number, self.written(path, "brokers", index))

    def written(self, path: Path, name: str, index: int) -> Path:
        """Return where the item of a list stands that may be written short."""
        for place in ((*path, name, index), (*path, name), (*path, index)):
            if self.stands(place):
                return place
        return path

    def broker(self, number: int | None, path: Path) -> None:
        """A broker exists."""
        count = self.scenario.brokers.count
        if number is not None and not 1 <= number <= count and not self.form.is_spoiled("brokers"):
            allowed = f"1 to {count}" if count > 1 else "1, the only one"
            self.add(path, "no such broker", found=str(number), allowed=allowed)

    def offsets_partition(self, number: int | None, path: Path) -> None:
        """A partition of ``__consumer_offsets`` exists."""
        try:
            config = CoordinatorConfig.from_kafka(kafka_values(self.scenario.brokers.config))
        except ValueError:
            return  # said of the brokers' configuration
        last = config.offsets_topic_num_partitions - 1
        if number is not None and number > last:
            problem = "no such partition of __consumer_offsets"
            self.add(path, problem, found=str(number), allowed=f"0 to {last}")

    def group(self, group_id: str | None, path: Path) -> None:
        """A group is declared."""
        written = self.document.data.get("groups")
        known = tuple(str(name) for name in written) if isinstance(written, dict) else ()
        if known and group_id is not None and group_id not in known:
            self.unknown(path, "group", group_id, known)

    def choice(self, name: str | None, known: Sequence[str], what: str, path: Path) -> None:
        """A word is one of Kafka's."""
        if name is not None and name not in known:
            self.unknown(path, what, name, known)

    def time(self, us: int, path: Path) -> None:
        """A time lies within the run."""
        if us > self.scenario.until and not self.form.is_spoiled("until"):
            until = duration_text(self.scenario.until)
            self.add(path, "after the end", found=duration_text(us), allowed=f"until {until}")

    # -- expectations ---------------------------------------------------------------------------

    def expectation(self, expectation: Expectation, path: Path) -> None:
        """An expectation is about a known group and a time within the run."""
        if expectation.group is not None:
            self.group(expectation.group, (*path, "group"))
        elif len(self.scenario.groups) > 1:
            allowed = _listed(tuple(self.scenario.groups))
            self.add((*path, "group"), "is missing where there are several groups", allowed=allowed)
        for name in expectation.given():
            value = getattr(expectation, name)
            if isinstance(value, int):
                self.time(value, (*path, name))
            elif isinstance(value, Part):
                self.expected(value, (*path, name))

    def expected(self, value: Part, path: Path) -> None:
        """The times, members and topics of one expectation exist."""
        for name in ("at", "after", "before"):
            us = getattr(value, name, None)
            if us is not None:
                self.time(us, (*path, name))
        if isinstance(value, Window) and value.after == self.scenario.until:
            self.add((*path, "after"), "nothing of the run is left after this time")
        self.selection(value, path)
        if isinstance(value, CommittedAt):
            self.partition(value.topic, value.partition, path)

    def unknown(self, path: Path, what: str, name: str, known: Sequence[str]) -> None:
        """Add the fault that a name means nothing."""
        self.add(
            path, f"no {what} {shown(name)}", near=near_match(name, known), allowed=_listed(known)
        )


_LOG_VERBS: Final = ("move_coordinator", "fail_appends", "stall_appends", "resume_appends")
_ERRORS: Final = tuple(code.name for code in ErrorCode if code.value > 0)
_APIS: Final = tuple(api.name for api in APIS.values())


def _listed(names: Sequence[str]) -> str:
    if len(names) <= _SHOWN + 1:  # the last one is as short as "and 1 more"
        return ", ".join(names) if names else "nothing is declared"
    return f"{', '.join(names[:_SHOWN])} and {len(names) - _SHOWN} more"
