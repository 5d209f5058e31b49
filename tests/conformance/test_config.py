"""The configuration table (chapter 4 of the rule book, for Apache Kafka 4.4)."""

from __future__ import annotations

import pytest

from groupsim.coordinator import ConfigError, CoordinatorConfig, Switches
from groupsim.coordinator.config import OPTIONS
from groupsim.testing.coordinator import Bench

DEFAULTS = {
    "group.min.session.timeout.ms": 6000,
    "group.max.session.timeout.ms": 1_800_000,
    "group.initial.rebalance.delay.ms": 3000,
    "group.max.size": 2_147_483_647,
    "offsets.retention.minutes": 10_080,
    "offsets.retention.check.interval.ms": 600_000,
    "offset.metadata.max.bytes": 4096,
    "offsets.commit.timeout.ms": 5000,
    "offsets.topic.num.partitions": 50,
    "offsets.topic.replication.factor": 3,
    "offsets.topic.segment.bytes": 104_857_600,
    "offsets.topic.compression.codec": 0,
    "offsets.load.buffer.size": 5_242_880,
    "group.coordinator.append.linger.ms": -1,
    "group.coordinator.threads": 4,
    "group.coordinator.background.threads": 2,
    "group.coordinator.cached.buffer.max.bytes": 1_048_588,
    "group.coordinator.rebalance.protocols": ("classic", "consumer", "streams"),
    "group.consumer.migration.policy": "bidirectional",
}
LOWEST = {
    "group.max.size": 1,
    "offsets.retention.minutes": 1,
    "offsets.retention.check.interval.ms": 1,
    "offsets.commit.timeout.ms": 1,
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 1,
    "offsets.topic.segment.bytes": 1,
    "offsets.load.buffer.size": 1,
    "group.coordinator.append.linger.ms": -1,
    "group.coordinator.threads": 1,
    "group.coordinator.background.threads": 1,
    "group.coordinator.cached.buffer.max.bytes": 524_288,
}


def test_defaults() -> None:
    """T-5, T-7, T-8, J-06, J-11, O-07: of 4.4, and every option is in the table."""
    assert CoordinatorConfig().to_kafka() == DEFAULTS
    assert set(OPTIONS) == set(DEFAULTS)
    assert CoordinatorConfig().offsets_retention_ms == 7 * 24 * 3_600_000


@pytest.mark.parametrize(("name", "lowest"), LOWEST.items())
def test_ranges(name: str, lowest: int) -> None:
    """J-11, T-7, T-8: the lowest value is accepted, one below is refused with what is allowed."""
    assert CoordinatorConfig.from_kafka({name: lowest}).to_kafka()[name] == lowest
    with pytest.raises(ConfigError) as caught:
        CoordinatorConfig.from_kafka({name: lowest - 1})
    assert (caught.value.name, caught.value.value) == (name, lowest - 1)
    assert f"from {lowest} to" in caught.value.allowed


def test_unlimited_options() -> None:
    """J-06, T-5, O-07: any int, negative ones too, and no check of one against the other."""
    config = CoordinatorConfig.from_kafka(
        {
            "group.min.session.timeout.ms": "20000",
            "group.max.session.timeout.ms": 10_000,
            "group.initial.rebalance.delay.ms": -5,
        }
    )
    assert config.group_min_session_timeout_ms == 20_000
    assert config.group_initial_rebalance_delay_ms == -5


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("group.max.size", "many"),
        ("group.max.size", True),
        ("group.max.size", 1.5),
        ("group.max.size", 2**31),
        ("offsets.topic.replication.factor", 2**15),
        ("group.coordinator.rebalance.protocols", "consumer"),
        ("group.coordinator.rebalance.protocols", "classic,tomorrow"),
        ("group.coordinator.rebalance.protocols", "classic,classic"),
        ("group.coordinator.rebalance.protocols", 7),
        ("group.consumer.migration.policy", "sometimes"),
    ],
)
def test_refused_values(name: str, value: object) -> None:
    """J-11: a typed error that names the option, the value and what is allowed."""
    with pytest.raises(ConfigError, match=name) as caught:
        CoordinatorConfig.from_kafka({name: value})
    assert caught.value.value == value


def test_lists_and_words() -> None:
    """J-08: lists as text or list; words in any case."""
    config = CoordinatorConfig.from_kafka(
        {
            "group.coordinator.rebalance.protocols": " classic , share",
            "group.consumer.migration.policy": "UPGRADE",
        }
    )
    assert config.group_coordinator_rebalance_protocols == ("classic", "share")
    assert config.group_consumer_migration_policy == "upgrade"


def test_unknown_names() -> None:
    """J-06: refused, with a near match where there is one."""
    with pytest.raises(ConfigError, match=r"did you mean group\.max\.size"):
        CoordinatorConfig.from_kafka({"group.max.sise": 5})
    with pytest.raises(ConfigError, match="no such option") as caught:
        CoordinatorConfig.from_kafka({"zzz": 5})
    assert "mean" not in str(caught.value)


def test_switches_are_off() -> None:
    """J-01: the current release is the default; old behaviour is named."""
    assert CoordinatorConfig().switches == Switches()
    assert CoordinatorConfig.from_kafka({}, switches=Switches(static_membership_gate=True)).switches
    assert not any(getattr(Switches(), name) for name in Switches.__slots__)


def test_options_reach_the_rules() -> None:
    """T-4, T-5, O-07: a delay and a metadata limit of one's own."""
    bench = Bench({"group.initial.rebalance.delay.ms": 10, "offset.metadata.max.bytes": 0})
    token = bench.join(version=3)
    bench.sleep(10)
    assert not bench.is_parked(token)
