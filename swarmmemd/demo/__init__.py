"""The demonstration: a scripted swarm, and what a newcomer sees of the daemon beside it."""
