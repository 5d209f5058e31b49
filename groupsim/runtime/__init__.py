"""The world that runs the two machines: time, randomness, network, processes, brokers, server."""

from __future__ import annotations

from groupsim.runtime.cluster import UnknownBrokerError
from groupsim.runtime.frames import FrameError
from groupsim.runtime.latency import Fixed, Latency, LogNormal, Uniform
from groupsim.runtime.scripts import Environment
from groupsim.runtime.server import ConnectionLost, ServerConnection
from groupsim.runtime.simulation import Script, Simulation, UnknownMemberError, run
from groupsim.runtime.specs import BrokersSpec, NetworkSpec, ProcessClock, TopicSpec
from groupsim.runtime.topics import UnknownTopicError

__all__ = [
    "BrokersSpec",
    "ConnectionLost",
    "Environment",
    "Fixed",
    "FrameError",
    "Latency",
    "LogNormal",
    "NetworkSpec",
    "ProcessClock",
    "Script",
    "ServerConnection",
    "Simulation",
    "TopicSpec",
    "Uniform",
    "UnknownBrokerError",
    "UnknownMemberError",
    "UnknownTopicError",
    "run",
]
