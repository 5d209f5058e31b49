"""What the assignors cost at 2,000 members and 10,000 partitions, against Kafka's own Java classes.

    python -m benchmarks.assignors [--members 2000] [--partitions 10000]

Needs Java 17 and Maven (the driver is that of tests/oracle). Both sides get the same groups in the same
run, with a new assignor for each repetition; the measure is the CPU time of the thread in ``assign()``
alone. Java's first call runs cold code, as a client's does whose leader assigns now and then; its best
call runs compiled code. Both are printed; the ratios of the last line are against the best.

The results of both are compared as well: a fast wrong answer would be no use.

The last line is one JSON object: for each group our time as a multiple of Java's.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import sys
import time
from collections.abc import Callable
from typing import Any

from groupsim_clients.assignors import make_assignor
from tests.vectors.cases import leaders_view
from tests.vectors.live import JavaAssignors

TOPICS = 50
MAX_RATIO = 10.0
WARM_SECONDS = 5.0  # how long Java is kept at a group, so that its last calls run compiled code
LIMIT_SECONDS = 1_800

Round = dict[str, Any]
Claims = list[list[list[Any]]]


class Groups:
    """Makes the groups to measure, all from one seed."""

    def __init__(self, members: int, partitions: int) -> None:
        self.random = random.Random(7)
        each = max(1, partitions // TOPICS)
        self.topics = {f"topic-{number}": each for number in range(min(TOPICS, partitions))}
        hexadecimal = (f"{self.random.getrandbits(128):032x}" for _ in range(members))
        self.ids = [f"consumer-checkout-{n}-{tail}" for n, tail in enumerate(hexadecimal)]

    def equal(self) -> list[list[str]]:
        """Everybody subscribes to everything."""
        return [list(self.topics)] * len(self.ids)

    def one_differs(self) -> list[list[str]]:
        """One member lacks one topic: enough for the general algorithm."""
        return [list(self.topics)[1:], *self.equal()[1:]]

    def few_topics(self) -> list[list[str]]:
        """Everybody subscribes to three to eight topics."""
        names = list(self.topics)
        return [self.random.sample(names, self.random.randint(3, 8)) for _ in self.ids]

    def nothing(self, subscriptions: list[list[str]]) -> Claims:
        """A new group."""
        return [[] for _ in subscriptions]

    def spread(self, subscriptions: list[list[str]], newcomers: int = 0) -> Claims:
        """What members hold after an even assignment; the last ``newcomers`` hold nothing yet."""
        claims: Claims = [[] for _ in subscriptions]
        old = len(claims) - newcomers
        takers: dict[str, list[int]] = {topic: [] for topic in self.topics}
        for number, subscribed in enumerate(subscriptions[:old]):
            for topic in subscribed:
                takers[topic].append(number)
        for topic, count in self.topics.items():
            for partition in range(count):
                taker = min(takers[topic], key=lambda number: len(claims[number]), default=None)
                if taker is not None:
                    claims[taker].append([topic, partition])
        return claims

    def heaped(self, subscriptions: list[list[str]]) -> Claims:
        """A twentieth of the members holds everything."""
        return self.spread(subscriptions, len(subscriptions) * 19 // 20)

    def round(
        self, kind: str, subscriptions: list[list[str]], claims: Claims, *, racks: bool = False
    ) -> Round:
        """A round of the vector format."""
        members = []
        for number, member_id in enumerate(self.ids):
            fields: dict[str, Any] = {
                "id": member_id,
                "topics": subscriptions[number],
                "owned": claims[number] if kind == "cooperative-sticky" else [],
                "gen": 3,
                "ver": 3,
            }
            if kind == "sticky" and claims[number]:
                fields["ud"] = {"gen": 3, "parts": claims[number]}
            if racks:
                fields["rack"] = "abc"[number % 3]
            members.append(fields)
        replicas = [["a", "b"], ["b", "c"], ["c", "a"]] if racks else [[None]]
        topics = {
            topic: [replicas[number % len(replicas)] for number in range(count)]
            for topic, count in self.topics.items()
        }
        return {"topics": topics, "members": members}


def rounds(groups: Groups) -> dict[str, tuple[str, Callable[[], Round]]]:
    """What is measured: name → (assignor, maker of the group)."""
    coop, sticky = "cooperative-sticky", "sticky"
    tenth = len(groups.ids) // 10

    def made(
        kind: str, subscriptions: Callable[[], list[list[str]]], *, racks: bool = False
    ) -> Callable[[Callable[[list[list[str]]], Claims]], Callable[[], Round]]:
        def of(claims: Callable[[list[list[str]]], Claims]) -> Callable[[], Round]:
            def make() -> Round:
                lists = subscriptions()
                return groups.round(kind, lists, claims(lists), racks=racks)

            return make

        return of

    def grown(lists: list[list[str]]) -> Claims:
        return groups.spread(lists, tenth)

    return {
        "range": ("range", made("range", groups.equal)(groups.nothing)),
        "roundrobin": ("roundrobin", made("roundrobin", groups.equal)(groups.nothing)),
        "sticky, new": (sticky, made(sticky, groups.equal)(groups.nothing)),
        "sticky, steady": (sticky, made(sticky, groups.equal)(groups.spread)),
        "sticky, a tenth new": (sticky, made(sticky, groups.equal)(grown)),
        "cooperative, a tenth new": (coop, made(coop, groups.equal)(grown)),
        "cooperative, racks, new": (coop, made(coop, groups.equal, racks=True)(groups.nothing)),
        "unequal: one differs, new": (sticky, made(sticky, groups.one_differs)(groups.nothing)),
        "unequal: one differs, a tenth new": (coop, made(coop, groups.one_differs)(grown)),
        "unequal: few topics, new": (sticky, made(sticky, groups.few_topics)(groups.nothing)),
        "unequal: few topics, steady": (coop, made(coop, groups.few_topics)(groups.spread)),
        "unequal: few topics, a tenth new": (sticky, made(sticky, groups.few_topics)(grown)),
        "unequal: few topics, heaped": (coop, made(coop, groups.few_topics)(groups.heaped)),
    }


def ours(kind: str, one: Round) -> tuple[float, dict[str, Any]]:
    """Best CPU seconds of our assignor, and its plan."""
    cluster, members, _ = leaders_view(kind, one)
    best, spent_in_all, plan = float("inf"), 0.0, {}
    for _ in range(7):
        assignor = make_assignor(kind)
        gc.collect()
        begun = time.process_time()
        plan = assignor.assign(cluster, members)
        spent = time.process_time() - begun
        best, spent_in_all = min(best, spent), spent_in_all + spent
        if spent_in_all > WARM_SECONDS:
            break
    return best, {member: [list(p) for p in held] for member, held in plan.items()}


def javas(java: JavaAssignors, kind: str, one: Round) -> tuple[float, float, dict[str, Any]]:
    """CPU seconds of Java's first and best call, and its plan."""
    case = {"kind": kind, "limit": LIMIT_SECONDS, "rounds": [one]}
    answer = java.ask({**case, "repeat": 1})
    times = list(answer["nanoseconds"])
    repeats = max(1, int(WARM_SECONDS * 1e9 / times[0]))
    answer = java.ask({**case, "repeat": repeats})
    times += answer["nanoseconds"]
    return times[0] / 1e9, min(times) / 1e9, answer["rounds"][0]["result"]


def main() -> int:
    """Exit status 1 when a group takes more than ten times Java's best, or the plans differ."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--members", type=int, default=2_000)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--only", default="", help="groups whose name contains this")
    options = parser.parse_args()
    groups = Groups(options.members, options.partitions)
    print(f"{options.members} members, {options.partitions} partitions; CPU seconds of assign()")
    print(f"{'':36}{'ours':>10}{'Java first':>12}{'Java best':>12}{'ratio':>8}")
    ratios: dict[str, float] = {}
    alike = True
    for name, (kind, make) in rounds(groups).items():
        if options.only not in name:
            continue
        one = make()
        with JavaAssignors() as java:
            first, best, theirs = javas(java, kind, one)
        spent, plan = ours(kind, one)
        ratios[name] = round(spent / best, 2)
        same = plan == theirs
        alike = alike and same
        remark = "" if same else "  DIFFERENT PLANS"
        print(f"{name:36}{spent:10.3f}{first:12.3f}{best:12.3f}{ratios[name]:8.2f}{remark}")
        sys.stdout.flush()
    print(json.dumps({"ours_over_java_best": ratios, "plans_equal": alike}))
    return 0 if alike and max(ratios.values()) <= MAX_RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
