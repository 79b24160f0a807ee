"""Replay: computes the live files of a version from the files of a segment; several engines, one rule."""
