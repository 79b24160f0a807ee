"""Replay: from the files of a segment to the live files of a version, by several engines with one rule."""
