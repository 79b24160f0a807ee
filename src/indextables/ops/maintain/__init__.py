"""Verbs that neither read nor write rows: describe, check, repair, checkpoint, purge and truncate history."""
