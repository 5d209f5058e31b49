"""The broker's GroupCoordinator, sans-IO: requests, timers and append results in, effects out."""
