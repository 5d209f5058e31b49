"""Apache Kafka's own coordinator beside ours: driver, scripts, comparison."""
