"""The world that runs the two machines: time, randomness, network, processes, brokers, server."""
