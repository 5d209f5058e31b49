"""Settings for all tests."""

from __future__ import annotations

from hypothesis import settings

# No timed tests: a slow machine is no failure. The examples are the same in every run, so that a
# failure seen by one person is seen by all; python -m pytest --hypothesis-profile=search looks
# further.
settings.register_profile("project", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=2_000)
settings.load_profile("project")
