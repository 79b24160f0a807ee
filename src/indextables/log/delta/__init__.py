"""The Delta log, read only: the same parts as the native log, for `_delta_log`."""
