"""Classic groups: the broker's side of JoinGroup, SyncGroup, Heartbeat and LeaveGroup."""
