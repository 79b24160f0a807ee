"""Checkpoints of a Delta log: classic, multi-part, and with sidecars."""
