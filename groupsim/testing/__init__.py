"""Helpers for tests of groupsim and of client coordinators written for it."""
