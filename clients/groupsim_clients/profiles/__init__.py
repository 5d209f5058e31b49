"""Client kinds, one factory each, as entry points of ``groupsim.clients`` name them.

A factory takes (``ClientSpec``, ``ClientEnvironment``) and returns a ``ClientMachine``; wrong options
raise ``ConfigError``. ``config_names`` of a factory are the options that it understands.
"""

from __future__ import annotations

from groupsim_clients.profiles.java import java
from groupsim_clients.profiles.java_2_4 import java_2_4

__all__ = ["java", "java_2_4"]
