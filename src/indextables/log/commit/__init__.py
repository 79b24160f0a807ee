"""Committing: the actions of a change, what they conflict with, and the version file that holds them."""
