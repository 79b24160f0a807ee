"""The Python side of `Bridge.java`: what Spark's catalog, optimizer and writes ask of us, and the answers."""
