"""Verbs on Delta tables, which are read and never written."""
