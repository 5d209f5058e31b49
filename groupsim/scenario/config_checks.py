"""Configurations, judged by those who use them: the coordinator and the client kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from groupsim.coordinator.config import OPTIONS, CoordinatorConfig
from groupsim.scenario._base import ConfigValue
from groupsim.scenario.clients import ClientKindError, client_factory, client_kinds, config_names
from groupsim.scenario.configs import Refusal, kafka_values, refusals
from groupsim.scenario.faults import Path, near_match, shown
from groupsim.scenario.members import Member
from groupsim.scenario.model import Scenario
from groupsim.scenario.selection import UnknownMemberError, select
from groupsim.scenario.specs import Identity, Wanted, wanted_of
from groupsim.scenario.verbs import Restart

__all__ = ["ConfigChecker"]

_OTHER_KEYS = ("work", "options")
"""What a client may refuse besides its configuration; its names then begin so."""


class _NoWorld:
    """Enough of a world to construct a client in, so that it can refuse its options."""

    def draw(self, _stream: str, _bound: int) -> int:
        """Return the least draw."""
        return 0

    def log_end_offset(self, _topic: str, _partition: int, _now_ms: int) -> int:
        """Return an empty log's end."""
        return 0


class ConfigChecker:
    """Checks all configurations of a scenario.

    ``add`` takes the faults, ``stands`` tells whether a path is written in the file.
    """

    def __init__(
        self, scenario: Scenario, add: Callable[..., None], stands: Callable[[Path], bool]
    ) -> None:
        self._scenario = scenario
        self._add = add
        self._stands = stands

    def check(self) -> None:
        """Check the brokers', the members' and the timeline's configurations."""
        self._brokers()
        families = list(self._families())
        for who, member, paths in families:
            group = self._scenario.groups[who.group_id]
            self._client(wanted_of(group, member, who), who, paths)
        for index, entry in enumerate(self._scenario.timeline):
            restart = entry.restart
            if restart is not None and (restart.config or restart.client):
                self._restart(restart, ("timeline", index, "restart"), families)

    def _families(self) -> Iterator[tuple[Identity, Member, tuple[Path, ...]]]:
        """Yield one copy of each member, and where things are said of it, innermost first."""
        for group_id, group in self._scenario.groups.items():
            base: Path = ("groups", group_id)
            for index, member in enumerate(group.members):
                if member.subscribe or group.subscribe:  # else there is a fault already
                    who = Identity(name=member.names()[0], number=1, group_id=group_id)
                    yield who, member, ((*base, "members", index), base)

    def _restart(
        self, restart: Restart, path: Path, families: list[tuple[Identity, Member, Any]]
    ) -> None:
        try:
            chosen = select(self._scenario.members(), restart.members)
        except UnknownMemberError:
            return  # said already
        for who, member, paths in families:
            if any(name in chosen for name in member.names()):
                wanted = wanted_of(self._scenario.groups[who.group_id], member, who)
                changed = wanted.changed(client=restart.client, config=restart.config)
                self._client(changed, who, (path, *paths))

    def _brokers(self) -> None:
        config = kafka_values(self._scenario.brokers.config)
        for refusal in refusals(config, CoordinatorConfig.from_kafka):
            path: Path = ("brokers", "config", refusal.name)
            self._refused(path, refusal, "the brokers have no option", tuple(OPTIONS))

    def _client(self, wanted: Wanted, who: Identity, paths: tuple[Path, ...]) -> None:
        try:
            factory = client_factory(wanted.client)
        except ClientKindError as error:
            place = self._said(paths, "client")
            self._add(place, error.problem, near=error.near, allowed=", ".join(client_kinds()))
            return

        def construct(config: Mapping[str, ConfigValue]) -> None:
            factory(replace(wanted, config=config).spec(who), _NoWorld())

        for refusal in refusals(wanted.config, construct):
            place = self._said(paths, "config", refusal.name)
            owner = refusal.name.partition(".")[0]
            if owner in _OTHER_KEYS:
                place = self._said(paths, owner)
            elif not self._stands(place):
                place = self._said(paths, "config")
            unknown = f"the client {wanted.client} has no option"
            self._refused(place, refusal, unknown, config_names(wanted.client))

    def _refused(self, path: Path, refusal: Refusal, unknown: str, known: Sequence[str]) -> None:
        name = refusal.name
        if not name:
            self._add(path, f"the client refuses: {refusal.allowed}")
        elif known and name not in known and name.partition(".")[0] not in _OTHER_KEYS:
            self._add(path, f"{unknown} {shown(name)}", near=near_match(name, known))
        else:
            problem = "not a value for this option" if path[-1] == name else f"{name} is refused"
            near = ", ".join(refusal.near)
            found = shown(refusal.value)
            self._add(path, problem, found=found, allowed=refusal.allowed, near=near)

    def _said(self, paths: tuple[Path, ...], *tail: str) -> Path:
        """Return the innermost place that says ``tail``, or where it could be said."""
        places = [(*path, *tail) for path in paths]
        return next((place for place in places if self._stands(place)), places[0])
