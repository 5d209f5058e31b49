"""Kafka's own coordinator in situations whose outcome the rule book gives in numbers."""

from __future__ import annotations

import base64

import pytest

from tests.oracle.driver import Oracle, available
from tests.oracle.story import CONFIG, Story, answers, errors, topic

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(not available(), reason="needs java and mvn"),
]


@pytest.mark.parametrize(
    ("delay", "rebalance", "expected"),
    [
        (3000, 500, 3000),
        (3000, 5000, 5000),
        (3000, 6000, 6000),
        (3000, 10000, 10000),
        (0, 10000, 0),
    ],
)
def test_initial_delay(oracle: Oracle, delay: int, rebalance: int, expected: int) -> None:
    """T-5, PR-04, PR-05, section 2.1: the whole table, with an addition in every window."""
    story = Story(oracle, group_initial_rebalance_delay_ms=delay)
    result = story.join(version=3, rebalance=rebalance)
    first = story.token
    for _ in range(12):
        for done in result["completed"]:
            if done["token"] == first:
                assert (done["at"], done["response"]["generationId"]) == (expected, 1)
                return
        story.join(version=3, rebalance=rebalance)
        result = story.advance(1000)
    pytest.fail("the first member was never answered")


def test_stale_extension_flag(oracle: Oracle) -> None:
    """PR-06: an exhausted budget leaves the flag, which extends the group's next beginning."""
    story = Story(oracle)
    ids = story.completed_join("a", "b", rebalance=3000)
    assert story.group()["new_member_added"]
    gone = [{"memberId": member, "groupInstanceId": name} for name, member in ids.items()]
    story.request("leave", 5, {"groupId": "g", "members": gone})
    assert (story.group()["state"], story.group()["generation_id"]) == ("Empty", 2)
    story.join(instance="a")
    assert not story.advance(5999)["completed"]
    assert errors(story.advance(1)) == [0]


def test_duplicate_follower_is_fenced(oracle: Oracle) -> None:
    """J-23, J-29, J-46: the parked join of a replaced static member ends at once."""
    story = Story(oracle)
    ids = story.stable("leader", "follower")
    story.join(version=3)
    story.join(member=ids["follower"], instance="follower")
    parked = story.token
    result = story.join(instance="follower")
    assert list(answers(result)) == [parked]
    answer = answers(result)[parked]
    assert (answer["errorCode"], answer["memberId"]) == (82, ids["follower"])
    assert (answer["generationId"], answer["leader"], answer["protocolType"]) == (-1, "", None)
    assert story.group()["state"] == "PreparingRebalance"


def test_absent_static_leader(oracle: Oracle) -> None:
    """J-27, PR-12, PR-14, PR-16: a follower leads the next generation; the absent one is in it."""
    story = Story(oracle)
    for name in ("leader", "follower"):
        story.join(instance=name, session=15_000, protocols=("range", "roundrobin"))
    story.advance(10_000)
    story.sync(story.group()["leader"], 1)
    (follower,) = (m for m in story.members() if m.startswith("follower"))
    story.sync(follower, 1)
    result = story.join(member=follower, session=15_000, protocols=("roundrobin",))
    assert not result["completed"]
    assert not story.advance(9_999)["completed"]
    answer = answers(story.advance(1))[story.token]
    assert (answer["leader"], answer["generationId"]) == (follower, 2)
    assert answer["protocolName"] == "roundrobin"
    assert {m["groupInstanceId"] for m in answer["members"]} == {"leader", "follower"}


def test_sync_that_never_comes(oracle: Oracle) -> None:
    """PR-24, PR-19: heartbeats do not save members who do not sync."""
    story = Story(oracle)
    ids = story.completed_join("a", "b", "c", rebalance=5000)
    story.advance(4999)
    for member in ids.values():
        assert errors(story.heartbeat(member, 1)) == [0]
    (append,) = story.advance(1)["appends"]
    value = append["records"][0]["value"]
    assert (value["generation"], value["members"], value["protocol"]) == (2, [], None)
    assert story.group()["state"] == "Empty"
    assert errors(story.heartbeat(ids["a"], 1)) == [25]


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        ("NOT_LEADER_OR_FOLLOWER", 16),
        ("NOT_ENOUGH_REPLICAS", 15),
        ("MESSAGE_TOO_LARGE", -1),
        ("UNKNOWN_TOPIC_OR_PARTITION", 15),
        ("INVALID_TXN_STATE", 48),
    ],
)
def test_assignment_that_is_not_stored(oracle: Oracle, failure: str, code: int) -> None:
    """S-12, C-10: leader and followers get the mapped error and the group rebalances."""
    story = Story(oracle)
    ids = story.completed_join("a", "b")
    leader = story.group()["leader"]
    (follower,) = set(ids.values()) - {leader}
    story.sync(follower, 1)
    oracle.ask("fail_next_append", error=failure)
    result = story.sync(leader, 1, assignments={leader: b"x"})
    assert errors(result) == [code, code]
    assert result["appends"][0]["error"] == failure
    assert story.group()["state"] == "PreparingRebalance"
    assert {member["assignment"] for member in story.group()["members"]} == {""}


def test_answers_wait_for_earlier_writes(oracle: Oracle) -> None:
    """H-09, C-12, T-8: a heartbeat behind an uncommitted write waits, and fails with it."""
    story = Story(oracle)
    ids = story.stable("a")
    oracle.ask("hold", on=True)
    story.request("commit", 9, {"groupId": "other", "topics": [topic(5)]})
    assert not story.heartbeat(ids["a"], 1)["completed"]
    names = [t["name"] for t in oracle.ask("timers")["timers"] if t["kind"] == "operation"]
    assert names == ["commit-offset", "classic-group-heartbeat"]
    assert errors(story.heartbeat(ids["a"], 7)) == [22]  # thrown, not returned: at once
    assert not story.advance(4999)["completed"]
    answer = answers(story.advance(1))
    assert answer[story.token - 1]["errorCode"] == 15
    assert not oracle.ask("commit_appends", upto="all")["completed"]


def test_failover_to_the_last_synced_generation(oracle: Oracle) -> None:
    """C-15, C-21, C-23, C-24: a rebalance in progress is lost, the old generation is back."""
    story = Story(oracle)
    ids = story.stable("a", "b")
    story.join(member=ids["a"], instance="a", protocols=("range", "roundrobin"))
    story.join(member=ids["b"], instance="b", protocols=("range", "roundrobin"))
    assert story.group()["generation_id"] == 2
    story.join(member=ids["a"], instance="a")
    result = oracle.ask("unload", partition=0, epoch=1)
    answer = answers(result)[story.token]
    assert (answer["errorCode"], answer["memberId"]) == (16, ids["a"])
    assert errors(story.heartbeat(ids["a"], 2)) == [16]
    oracle.ask("load", partition=0, epoch=2)
    group = story.group()
    assert (group["state"], group["generation_id"], group["previous_state"]) == (
        "Stable",
        1,
        "Dead",
    )
    assert [m["protocols"] for m in group["members"]] == [[["range", ""]], [["range", ""]]]
    assert {base64.b64decode(m["assignment"]) for m in group["members"]} == {b"a", b"b"}
    assert errors(story.heartbeat(ids["a"], 2)) == [22]
    deadlines = {t["deadline"] for t in oracle.ask("timers")["timers"] if "heartbeat" in t["name"]}
    assert deadlines == {oracle.ask("timers")["now"] + 10_000}


def test_restart_with_a_smaller_group(oracle: Oracle) -> None:
    """C-22, J-12: a loaded group above its size rebalances; latecomers are sent away."""
    story = Story(oracle)
    ids = story.stable("a", "b", rebalance=5000)
    oracle.ask("restart", config={**CONFIG, "group.max.size": 1})
    assert story.group()["state"] == "PreparingRebalance"
    assert not story.join(member=ids["b"])["completed"]
    kept = story.token
    assert errors(story.join(member=ids["a"])) == [81]
    assert story.members() == [ids["b"]]
    assert not story.advance(4999)["completed"]
    assert answers(story.advance(1))[kept]["generationId"] == 2


def test_transaction(oracle: Oracle) -> None:
    """O-13, O-18, C-18: offsets of a transaction are pending until its marker."""
    story = Story(oracle)
    body = {"transactionalId": "x", "groupId": "g", "producerId": 7, "topics": [topic(5)]}
    story.request("txn_commit", 5, body)
    fetch = {"groups": [{"groupId": "g", "topics": None}], "requireStable": True}
    assert story.partition()["pending_offsets"][0]["producer_id"] == 7
    named = {"groups": [{"groupId": "g", "topics": [{"name": "t0", "partitionIndexes": [0]}]}]}
    answer = answers(story.request("fetch", 9, named | {"requireStable": True}))[story.token]
    assert answer["groups"][0]["topics"][0]["partitions"][0]["errorCode"] == 88
    result = oracle.ask("end_txn", token=0, group="g", producer_id=7, result="COMMIT")
    assert answers(result)[0] == {"errorCode": 0}
    answer = answers(story.request("fetch", 9, fetch))[story.token]
    assert answer["groups"][0]["topics"][0]["partitions"][0]["committedOffset"] == 5


def test_gate_of_offset_commit(oracle: Oracle) -> None:
    """O-01: what the metadata does not know is refused before the coordinator is asked."""
    story = Story(oracle)
    known = topic(5)
    known["partitions"].append({"partitionIndex": 4, "committedOffset": 5})
    unknown = {"name": "t9", "partitions": [{}]}
    result = story.request("commit", 9, {"groupId": "g", "topics": [known, unknown]})
    topics = answers(result)[story.token]["topics"]
    found = {
        (of["name"], partition["partitionIndex"]): partition["errorCode"]
        for of in topics
        for partition in of["partitions"]
    }
    assert found == {("t0", 4): 3, ("t0", 0): 0, ("t9", 0): 3}
    assert len(result["appends"][0]["records"]) == 1
