"""Add actions in their two storage forms: JSON lines of a checkpoint, and the Arrow columns of `files()`."""
