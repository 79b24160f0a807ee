"""The kinds of storage a table can lie on: memory, local disk, and buckets of S3, Azure and Google Cloud."""
