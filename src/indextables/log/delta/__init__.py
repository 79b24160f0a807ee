"""The Delta log, read only: the counterparts of the native log's modules, for `_delta_log`."""
