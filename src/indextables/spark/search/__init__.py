"""Full-text search from Spark: on the executors, or on the driver where that is cheaper."""
