"""Client kinds, one factory each, as entry points of ``groupsim.clients`` name them.

A factory takes (``ClientSpec``, ``ClientEnvironment``) and returns a ``ClientMachine``; wrong options
raise ``ConfigError``. ``config_names`` of a factory are the options that it understands.
"""

from __future__ import annotations

from groupsim_clients.profiles.franz_go import franz_go
from groupsim_clients.profiles.java import java
from groupsim_clients.profiles.java_2_4 import java_2_4
from groupsim_clients.profiles.kafka_python import kafka_python
from groupsim_clients.profiles.librdkafka import librdkafka

__all__ = ["franz_go", "java", "java_2_4", "kafka_python", "librdkafka"]
