"""Where tables are stored: object stores behind one small interface, and the compression of log files."""
