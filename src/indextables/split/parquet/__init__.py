"""What splits need to know of Parquet's own format: Thrift, field numbers, where pages and rows lie."""
