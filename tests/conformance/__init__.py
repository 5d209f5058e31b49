"""Conformance with Apache Kafka, rule by rule."""
