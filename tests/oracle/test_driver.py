"""Kafka's own coordinator, driven through situations whose outcome the rule book gives."""

from __future__ import annotations

import base64

import pytest

from tests.oracle.driver import Oracle, OracleError, available, member_uuid, topic_id
from tests.oracle.story import CONFIG, Story, answers, errors, topic

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(not available(), reason="needs java and mvn"),
]


def test_member_ids_are_known_beforehand(oracle: Oracle) -> None:
    """J-16, J-17, J-21: an id is handed out, and an empty group is written."""
    story = Story(oracle)
    result = story.join(version=4)
    answer = answers(result)[story.token]
    assert answer["errorCode"] == 79
    assert answer["memberId"] == f"client-{member_uuid('story', 0)}"
    assert result["uuids"] == 1
    (append,) = result["appends"]
    assert append["records"][0]["value"]["generation"] == 0
    assert append["records"][0]["value"]["members"] == []
    assert story.group()["pending_join_members"] == [answer["memberId"]]
    story.join(version=4)
    assert f"client-{member_uuid('story', 1)}" in story.group()["pending_join_members"]


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


def test_committing_releases_in_order(oracle: Oracle) -> None:
    """C-12: appends are committed one by one, and what waited for them is answered."""
    story = Story(oracle)
    oracle.ask("hold", on=True)
    ids = [story.commit(offset)["appends"][0]["id"] for offset in (1, 2)]
    first, second = story.token - 1, story.token
    assert story.partition()["last_committed"] == 0
    assert list(answers(oracle.ask("commit_appends", upto=ids[0]))) == [first]
    assert list(answers(oracle.ask("commit_appends", upto=ids[1]))) == [second]
    assert story.partition()["high_watermark"] == 2


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


def test_loading_can_be_watched(oracle: Oracle) -> None:
    """H-03, C-06, C-19: heartbeats are NONE while loading; a failed load is NOT_COORDINATOR."""
    story = Story(oracle)
    oracle.ask("unload", partition=0)
    oracle.ask("hold_load", on=True)
    oracle.ask("load", partition=0, epoch=1)
    assert story.partition()["state"] == "LOADING"
    assert errors(story.heartbeat("m", 1)) == [0]
    assert errors(story.join()) == [14]
    oracle.ask("finish_load", error="KAFKA_STORAGE_ERROR")
    assert story.partition()["state"] == "FAILED"
    assert errors(story.heartbeat("m", 1)) == [16]


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


def test_compaction_keeps_the_newest(oracle: Oracle) -> None:
    """C-16, C-18: a loaded coordinator equals the one before, also after compaction."""
    story = Story(oracle)
    for offset in (1, 2, 3):
        story.commit(offset)
    story.commit(9, partition=1)
    before = story.partition()["offsets"]
    assert oracle.ask("compact", partition=0)["removed"] == 2
    batches = oracle.ask("records", partition=0)["batches"]
    assert [batch["records"][0]["value"]["offset"] for batch in batches] == [3, 9]
    oracle.ask("unload", partition=0)
    oracle.ask("load", partition=0, epoch=1)
    assert story.partition()["offsets"] == before
    assert "logged" not in story.commit(4)


def test_truncation_loses_what_was_not_committed(oracle: Oracle) -> None:
    """C-26, C-11: a new leader without the uncommitted tail does not know it."""
    story = Story(oracle)
    story.commit(1)
    oracle.ask("hold", on=True)
    story.commit(2)
    assert story.partition()["offsets"][0]["offset"] == 2
    oracle.ask("unload", partition=0)
    assert oracle.ask("truncate", partition=0)["removed"] == 1
    oracle.ask("load", partition=0, epoch=1)
    assert story.partition()["offsets"][0]["offset"] == 1


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


def test_verification_that_fails(oracle: Oracle) -> None:
    """O-11: the verification's error is the answer."""
    story = Story(oracle)
    oracle.ask("fail_next_verification", error="NETWORK_EXCEPTION")
    body = {"transactionalId": "x", "groupId": "g", "producerId": 7, "topics": [topic(5)]}
    answer = answers(story.request("txn_commit", 5, body))[story.token]
    assert answer["topics"][0]["partitions"][0]["errorCode"] == 14


def test_topics_and_their_ids(oracle: Oracle) -> None:
    """O-01, O-23: offsets go with their topic, and a new topic of that name has a new id."""
    story = Story(oracle)
    story.commit(5)
    assert story.partition()["offsets"][0]["topic_id"] == topic_id("t0")
    (append,) = oracle.ask("topics_deleted", topics=["t0"])["appends"]
    assert append["records"][0]["value"] is None
    assert answers(story.commit(5))[story.token]["topics"][0]["partitions"][0]["errorCode"] == 3
    again = oracle.ask("topics", topics={"t0": 1})["topics"]["t0"]
    assert again == {"id": topic_id("t0", 1), "partitions": 1}
    assert answers(story.commit(5))[story.token]["topics"][0]["partitions"][0]["errorCode"] == 0


def test_adaptive_linger_batches_what_is_queued(oracle: Oracle) -> None:
    """group.coordinator.append.linger.ms: -1 joins queued operations in a batch, 0 does not."""
    for linger, batches in ((-1, [(0, 1)]), (0, [(0, 0), (1, 1)])):
        story = Story(oracle, group_coordinator_append_linger_ms=linger)
        story.commit(1, settle=False)
        story.commit(2, partition=1, settle=False)
        result = oracle.ask("advance", ms=0)
        spans = [(append["base_offset"], append["last_offset"]) for append in result["appends"]]
        assert spans == batches
        assert [done["token"] for done in result["completed"]] == [1, 2]


def test_high_watermark_comes_before_what_is_queued(oracle: Oracle) -> None:
    """0.1, C-12: a read queued behind a write sees it, as the commit takes the queue's front."""
    story = Story(oracle)
    story.commit(5, settle=False)
    groups = [{"groupId": "g", "topics": [{"name": "t0", "partitionIndexes": [0]}]}]
    story.request("fetch", 9, {"groups": groups}, settle=False)
    result = oracle.ask("advance", ms=0)
    assert [done["token"] for done in result["completed"]] == [1, 2]
    (group,) = answers(result)[2]["groups"]
    assert group["topics"][0]["partitions"][0]["committedOffset"] == 5


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


def test_timers_fire_by_deadline_then_arming(oracle: Oracle) -> None:
    """T-1, T-3: the list is in firing order, equal deadlines by order of arming."""
    story = Story(oracle)
    for session in (500, 300, 300):
        story.join(version=4, session=session)
    first, second, third = (f"client-{member_uuid('story', i)}" for i in range(3))
    names = [t["name"] for t in oracle.ask("timers")["timers"]]
    assert names[:3] == [f"heartbeat-g-{member}" for member in (second, third, first)]
    story.advance(300)
    assert story.group()["pending_join_members"] == [first]


def test_bad_commands_do_not_stop_it(oracle: Oracle) -> None:
    """Each bad command has its own error, and the next command works."""
    story = Story(oracle)
    bad: list[dict[str, object]] = [
        {"op": "dance"},
        {"op": "advance"},
        {"op": "advance", "ms": -1},
        {"op": "join", "token": 1, "request": {"group": "g"}},
        {"op": "finish_load"},
        {"op": "fail_next_append", "error": "OOPS"},
    ]
    results = oracle.send([*bad, {"op": "timers"}])
    assert [result["error"] for result in results[:-1]] == [
        "unknown op dance",
        'field "ms" is missing',
        "time does not go backwards",
        "JoinGroupRequestData has no field group",
        "no load is held",
        "no such error: OOPS",
    ]
    assert "error" not in results[-1]
    with pytest.raises(OracleError, match=r"group\.max\.size"):
        Story(oracle, group_max_size=0)
    with pytest.raises(OracleError, match="the first command is reset"):
        story.join()


def test_version_the_broker_does_not_have(oracle: Oracle) -> None:
    """J-47: the connection is closed; there is no answer."""
    story = Story(oracle)
    (done,) = story.join(version=10)["completed"]
    assert (done["closed"], done["error"]) == (True, "UNSUPPORTED_VERSION")


def test_same_commands_same_results(oracle: Oracle) -> None:
    """Two processes, and two resets of one, give the same results to the last byte."""

    def told(to: Oracle) -> list[object]:
        story = Story(to)
        ids = story.stable("a", "b", "c")
        story.join(member=ids["b"], instance="b", protocols=("range", "sticky"))
        return [story.advance(60_000), to.ask("snapshot"), to.ask("records", partition=0)]

    first = told(oracle)
    assert told(oracle) == first
    with Oracle() as other:
        assert told(other) == first
