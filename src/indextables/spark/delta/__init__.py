"""Delta tables on a Spark session: their files and rows as DataFrames."""
