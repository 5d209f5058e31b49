"""The broker's GroupCoordinator, sans-IO: requests, timers and append results in, effects out."""

from __future__ import annotations

from groupsim.coordinator.access import Authorizer, TopicCatalogue
from groupsim.coordinator.config import ConfigError, CoordinatorConfig, Switches
from groupsim.coordinator.coordinator import GroupCoordinator
from groupsim.coordinator.core import partition_for
from groupsim.coordinator.snapshot import CoordinatorSnapshot, GroupSnapshot, MemberSnapshot

__all__ = [
    "Authorizer",
    "ConfigError",
    "CoordinatorConfig",
    "CoordinatorSnapshot",
    "GroupCoordinator",
    "GroupSnapshot",
    "MemberSnapshot",
    "Switches",
    "TopicCatalogue",
    "partition_for",
]
