"""Elasticsearch's `_search`, `_msearch` and `_field_caps`, as far as a table can answer them.

A request is translated into a full-text query and a filter. What has no exact
counterpart is refused with Elasticsearch's own form of an error, never answered
with other rows.
"""
