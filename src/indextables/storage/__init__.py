"""Where tables lie: object stores behind one small interface, and the wrapping of log files."""
