"""Settings for all tests."""

from __future__ import annotations

import signal

from hypothesis import settings

# No timed tests: a slow machine is no failure. The examples are the same in every run, so that a
# failure seen by one person is seen by all; python -m pytest --hypothesis-profile=search looks
# further.
settings.register_profile("project", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=2_000)
settings.load_profile("project")

# Who starts the tests in the background of a script has them ignore Ctrl-C, and so would all the
# processes that they start; some of these are there to be interrupted.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
