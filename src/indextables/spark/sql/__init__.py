"""`spark.sql` for statements about our tables, and the views that stand for them."""
