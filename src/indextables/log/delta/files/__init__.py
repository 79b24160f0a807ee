"""Files of a Delta table in the files() form: typed values, and statistics made into bounds."""
