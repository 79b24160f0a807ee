"""Lines of adds read by their layout, without decoding their JSON."""
