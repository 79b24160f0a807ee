"""Writing splits: batches of rows in, Parquet files with an index out."""
