"""What is said: requests, responses, error codes, and what members put inside them."""

from __future__ import annotations

from groupsim.protocol.errors import ErrorCode

__all__ = ["ErrorCode"]
