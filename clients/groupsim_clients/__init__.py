"""Client coordinators for groupsim: the Java consumer as the reference, other clients as profiles."""
