"""Committed offsets: commit, transactional commit, fetch, delete and expiry (family O)."""
