"""Checkpoints of a Delta log: every kind of them, small or large."""
