"""The trace: what happened in a run, as a stream of events. Format: docs/trace.md."""
