"""The parts of Parquet's own format that splits need: Thrift, field numbers, offsets of pages and rows."""
