"""Options: defaults, validation, cross checks (K, section 5)."""

from __future__ import annotations

from typing import Any

import pytest

from groupsim.testing.client import ClientBench
from groupsim_clients.assignors import Assignor, RebalanceProtocol
from groupsim_clients.behaviour import CURRENT
from groupsim_clients.config import ConsumerConfig
from groupsim_clients.errors import ConfigError, JavaError
from groupsim_clients.machine import AppRaised, ClientEnvironment, ClientMachine, ClientSpec
from groupsim_clients.profiles import java
from groupsim_clients.profiles._factory import build


def test_defaults() -> None:
    """K-01 and its like hold for Kafka's defaults, which are these."""
    config = ConsumerConfig.from_kafka({}, group_id="g")
    assert config.session_timeout_ms == 45_000
    assert config.heartbeat_interval_ms == 3_000
    assert config.max_poll_interval_ms == 300_000
    assert config.assignors == ("range", "cooperative-sticky")
    assert config.enable_auto_commit
    assert config.auto_commit_interval_ms == 5_000
    assert (config.retry_backoff_ms, config.retry_backoff_max_ms) == (100, 1_000)
    assert (config.reconnect_backoff_ms, config.reconnect_backoff_max_ms) == (50, 1_000)
    assert (config.request_timeout_ms, config.default_api_timeout_ms) == (30_000, 60_000)
    assert (config.metadata_max_age_ms, config.max_poll_records) == (300_000, 500)
    assert (config.client_id, config.client_rack) == ("consumer-g-1", None)
    assert config.group_instance_id is None
    assert config.exclude_internal_topics
    assert config.allow_auto_create_topics


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max.poll.interval.ms", 0),
        ("max.poll.records", 0),
        ("auto.commit.interval.ms", -1),
        ("retry.backoff.ms", -1),
        ("request.timeout.ms", "soon"),
        ("session.timeout.ms", -1),
        ("session.timeout.ms", 2**31),
        ("heartbeat.interval.ms", True),
        ("enable.auto.commit", "maybe"),
        ("group.instance.id", ""),
        ("group.instance.id", ".."),
        ("group.instance.id", "a b"),
        ("group.instance.id", "x" * 250),
        ("group.id", " "),
        ("group.protocol", "share"),
        ("group.protocol", "Consumer"),
        ("auto.offset.reset", "newest"),
        ("client.rack", 7),
        ("partition.assignment.strategy", 7),
        ("partition.assignment.strategy", ["range", "range"]),
        ("partition.assignment.strategy", ["bogus"]),
    ],
)
def test_wrong_values(name: str, value: Any) -> None:
    """K-02 to K-05 have their own tests; here each option's own range: one error that names it."""
    with pytest.raises(ConfigError) as caught:
        ClientBench({name: value})
    assert caught.value.name == name
    assert caught.value.allowed


def test_values_that_java_converts() -> None:
    """K-05: group.protocol in any case; numbers and flags as text; assignors as classes and text."""
    config = ConsumerConfig.from_kafka(
        {
            "group.protocol": "CLASSIC",
            "session.timeout.ms": " 20000 ",
            "enable.auto.commit": "False",
            "partition.assignment.strategy": "org.apache.kafka.clients.consumer.StickyAssignor, range",
            "bootstrap.servers": "ignored:9092",
        },
        group_id="g",
    )
    assert config.session_timeout_ms == 20_000
    assert not config.enable_auto_commit
    assert config.assignors == ("sticky", "range")


def test_unknown_option_has_a_near_match() -> None:
    """A typing error is refused with what was probably meant (not a rule of Java, which only warns)."""
    with pytest.raises(ConfigError) as caught:
        ClientBench({"session.timeout": 1})
    assert caught.value.near[0] == "session.timeout.ms"


def test_reconnect_backoff_alone_is_constant() -> None:
    """Setting only the first makes it constant (section 5)."""
    assert ConsumerConfig.from_kafka({"reconnect.backoff.ms": 200}).reconnect_backoff_max_ms == 200


def test_static_client_id() -> None:
    """A client id is made from group and instance id when there is none (section 5)."""
    config = ConsumerConfig.from_kafka({"group.instance.id": "i"}, group_id="g")
    assert config.client_id == "consumer-g-i"


def test_heartbeat_interval_is_checked_only_with_a_group() -> None:
    """K-01: only if a group id is set."""
    options = {"heartbeat.interval.ms": 50_000}
    assert ConsumerConfig.from_kafka(options).heartbeat_interval_ms == 50_000
    with pytest.raises(ConfigError, match="K-01"):
        ConsumerConfig.from_kafka(options, group_id="g")


class CooperativeOnly(Assignor):
    """An assignor that supports the cooperative protocol alone."""

    name = "cooperative-only"
    supported_protocols = (RebalanceProtocol.COOPERATIVE,)

    def assign(self, cluster: Any, members: Any) -> Any:
        """Never called."""
        raise NotImplementedError


def test_assignors_must_have_a_protocol_in_common() -> None:
    """K-02: construction fails."""
    from groupsim_clients.assignors import make_assignor

    def mixed(spec: ClientSpec, env: ClientEnvironment) -> ClientMachine:
        def make(name: str) -> Assignor:
            return CooperativeOnly() if name == "sticky" else make_assignor(name)

        return build(spec, env, CURRENT, make)

    with pytest.raises(ConfigError, match="commonly supported rebalance protocol"):
        ClientBench({"partition.assignment.strategy": "range,sticky"}, factory=mixed)


def test_auto_commit_without_a_group() -> None:
    """K-03: explicit true fails; otherwise silently false."""
    with pytest.raises(ConfigError, match="K-03"):
        ConsumerConfig.from_kafka({"enable.auto.commit": True})
    assert not ConsumerConfig.from_kafka({}).enable_auto_commit


def test_empty_assignor_list() -> None:
    """K-04: allowed at construction; subscribing is an illegal state, and so is polling with one."""
    bench = ClientBench({"partition.assignment.strategy": ""})
    bench.start()
    assert [(n.call, n.exception) for n in bench.notes(AppRaised)] == [
        ("subscribe", "IllegalStateException")
    ]
    bench.consumer.subscriptions.subscribe(["t"])
    with pytest.raises(JavaError, match=r"partition\.assignment\.strategy to empty"):
        next(bench.consumer.poll(0))


def test_remote_assignor_with_the_classic_protocol() -> None:
    """K-05: construction fails."""
    with pytest.raises(ConfigError, match="K-05"):
        ClientBench({"group.remote.assignor": "uniform"})


def test_backoff_above_its_maximum() -> None:
    """K-06: a warning, and the maximum as constant backoff without jitter."""
    bench = ClientBench(
        {"retry.backoff.ms": 2_000, "retry.backoff.max.ms": 700, "enable.auto.commit": False}
    )
    bench.start()
    assert "static backoff with value '700'" in bench.sentences()[0]
    backoff = bench.coordinator.retry_backoff
    assert [backoff.backoff(n) for n in range(4)] == [700] * 4


def test_exponential_backoff() -> None:
    """CJ-06, CH-03 (2.6): initial · 2ⁿ with a factor from [0.8, 1.2), whole, capped."""
    bench = ClientBench()
    bench.start()
    backoff = bench.coordinator.retry_backoff
    for draw, expected in (
        (0, [80, 160, 320, 640, 800, 800]),
        (399_999, [119, 239, 479, 959, 1_000, 1_000]),
    ):
        bench.world.draws["retry-backoff"] = draw
        assert [backoff.backoff(n) for n in range(6)] == expected


def test_group_calls_without_a_group() -> None:
    """K-07: an InvalidGroupIdException at the call."""
    bench = ClientBench(group_id="")
    bench.start()
    assert [(n.call, n.exception) for n in bench.notes(AppRaised)] == [
        ("subscribe", "InvalidGroupIdException")
    ]
    with pytest.raises(JavaError, match="valid"):
        bench.consumer.commit_async()
    with pytest.raises(JavaError, match="does not have a group"):
        bench.consumer.enforce_rebalance()


def test_factory_says_what_it_understands() -> None:
    """The names are there for the scenario loader (section 5)."""
    names = java.config_names  # type: ignore[attr-defined]
    assert {"session.timeout.ms", "partition.assignment.strategy"} <= set(names)
