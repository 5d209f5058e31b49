"""Numbers about a run: rebalances, time without an owner, overlaps, detection delays."""

from __future__ import annotations

from groupsim.metrics.collector import Metrics
from groupsim.metrics.values import Detection, GroupSummary, Rebalance, Summary

__all__ = ["Detection", "GroupSummary", "Metrics", "Rebalance", "Summary"]
