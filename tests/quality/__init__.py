"""Tests of the tests: bugs planted on purpose are found."""
