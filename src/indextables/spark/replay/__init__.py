"""Replay of a log on the cluster, with the same pruning rule as everywhere else."""
