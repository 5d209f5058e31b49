"""Assignors against what Apache Kafka's own Java assignors returned; see README.md beside this."""
