from typing import Any, Protocol, overload

from pyarrow import Array, ChunkedArray, Scalar

class _Elementwise(Protocol):
    # One value per row, chunked if the first argument is.
    @overload
    def __call__(self, first: ChunkedArray, /, *rest: Any, **options: Any) -> ChunkedArray: ...
    @overload
    def __call__(self, first: object, /, *rest: Any, **options: Any) -> Array: ...

def __getattr__(name: str) -> Any: ...

abs: _Elementwise
add: _Elementwise
add_checked: _Elementwise
and_: _Elementwise
and_kleene: _Elementwise
and_not: _Elementwise
ascii_lower: _Elementwise
ascii_upper: _Elementwise
assume_timezone: _Elementwise
binary_join_element_wise: _Elementwise
binary_length: _Elementwise
binary_slice: _Elementwise
ceil: _Elementwise
coalesce: _Elementwise
count_substring_regex: _Elementwise
cumulative_sum: _Elementwise
day: _Elementwise
divide: _Elementwise
ends_with: _Elementwise
equal: _Elementwise
extract_regex: _Elementwise
fill_null: _Elementwise
floor: _Elementwise
floor_temporal: _Elementwise
greater: _Elementwise
greater_equal: _Elementwise
if_else: _Elementwise
index_in: _Elementwise
indices_nonzero: _Elementwise
invert: _Elementwise
is_finite: _Elementwise
is_in: _Elementwise
is_inf: _Elementwise
is_nan: _Elementwise
is_null: _Elementwise
is_valid: _Elementwise
less: _Elementwise
less_equal: _Elementwise
list_element: _Elementwise
list_flatten: _Elementwise
list_parent_indices: _Elementwise
list_slice: _Elementwise
list_value_length: _Elementwise
local_timestamp: _Elementwise
match_substring: _Elementwise
match_substring_regex: _Elementwise
max_element_wise: _Elementwise
min_element_wise: _Elementwise
multiply: _Elementwise
multiply_checked: _Elementwise
negate: _Elementwise
not_equal: _Elementwise
or_: _Elementwise
or_kleene: _Elementwise
replace_substring: _Elementwise
replace_substring_regex: _Elementwise
replace_with_mask: _Elementwise
round: _Elementwise
search_sorted: _Elementwise
sort_indices: _Elementwise
split_pattern: _Elementwise
starts_with: _Elementwise
string_is_ascii: _Elementwise
strptime: _Elementwise
subtract: _Elementwise
subtract_checked: _Elementwise
utf8_length: _Elementwise
utf8_lpad: _Elementwise
utf8_ltrim: _Elementwise
utf8_rpad: _Elementwise
utf8_rtrim: _Elementwise
utf8_slice_codeunits: _Elementwise
utf8_trim: _Elementwise
utf8_trim_whitespace: _Elementwise

def all(values: Any, *rest: Any, **options: Any) -> Scalar: ...
def any(values: Any, *rest: Any, **options: Any) -> Scalar: ...
def count_distinct(values: Any, *rest: Any, **options: Any) -> Scalar: ...
def index(values: Any, *rest: Any, **options: Any) -> Scalar: ...
def max(values: Any, *rest: Any, **options: Any) -> Scalar: ...
def mean(values: Any, *rest: Any, **options: Any) -> Scalar: ...
def min(values: Any, *rest: Any, **options: Any) -> Scalar: ...
def min_max(values: Any, *rest: Any, **options: Any) -> Scalar: ...
def sum(values: Any, *rest: Any, **options: Any) -> Scalar: ...

cast: _Elementwise
struct_field: _Elementwise
dictionary_encode: _Elementwise
run_end_encode: _Elementwise
