"""groupsim: a deterministic flight simulator for Kafka consumer groups.

A GroupCoordinator that follows Apache Kafka's rule for rule serves many simulated client
coordinators in virtual time; whole-group rebalances are run, recorded, replayed and checked.
"""

from __future__ import annotations

__version__ = "0.1.0"

__all__ = ["__version__"]
