"""The driver's language: ids, time, order, replication, moves of the coordinator, bad commands."""

from __future__ import annotations

import pytest

from tests.oracle.driver import Oracle, OracleError, available, member_uuid, topic_id
from tests.oracle.story import Story, answers, errors, topic

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


def test_flush_that_is_no_longer_needed(oracle: Oracle) -> None:
    """group.coordinator.append.linger.ms above 0: a flush made needless at its own instant."""
    story = Story(
        oracle,
        group_coordinator_append_linger_ms=10,
        offsets_retention_check_interval_ms=1000,
    )
    story.join(version=4, session=1500)  # leaves an empty group for the clean-up at 1000
    story.advance(990)
    body = {"groupId": "other", "topics": [topic(5)]}
    story.request("commit", 9, body)
    result = story.advance(10)
    (append,) = result["appends"]
    assert [record["key"]["group"] for record in append["records"]] == ["other", "g"]
    assert list(answers(result)) == [story.token]
    assert [(t["deadline"], t["kind"]) for t in oracle.ask("timers")["timers"]] == [
        (1500, "group"),
        (2000, "group"),
        (60_000, "group"),
    ]


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
