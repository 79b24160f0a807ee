"""Verbs that keep a log and its directory small: checkpoint, purge, truncate history, and cache control."""
