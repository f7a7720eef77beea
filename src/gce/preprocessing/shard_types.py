"""Types of the columns of Arrow tables: which are the same kind of value, and the type that holds all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gce._utils.optional import import_optional

#: Units of time, the coarsest first.
_UNITS = ("s", "ms", "us", "ns")


def kind_of(dtype: Any) -> str | None:
    """The kind of value that a column holds; columns of one kind have a common type.

    Parameters
    ----------
    dtype : pyarrow.DataType

    Returns
    -------
    str or None
        ``"null"`` where all values are missing; None for a type that is neither numbers, booleans, dates, text nor
        categories.
    """
    types = import_optional("pyarrow.types", "arrow")
    if types.is_dictionary(dtype):
        own = kind_of(dtype.value_type)
        return own if own == "text" else f"category of {own}" if own in ("number", "boolean") else None
    if types.is_timestamp(dtype):
        return "time" if dtype.tz is None else f"time in {dtype.tz}"
    tests = {
        "null": types.is_null,
        "boolean": types.is_boolean,
        "number": lambda own: types.is_integer(own) or types.is_floating(own) or types.is_decimal(own),
        "text": is_text,
        "date": types.is_date,
        "duration": types.is_duration,
        "time of the day": types.is_time,
    }
    return next((kind for kind, test in tests.items() if test(dtype)), None)


def is_text(dtype: Any) -> bool:
    """Whether a column holds text, not as a dictionary.

    Parameters
    ----------
    dtype : pyarrow.DataType
    """
    types = import_optional("pyarrow.types", "arrow")
    return bool(types.is_string(dtype) or types.is_large_string(dtype) or _is_view(dtype))


def common_type(given: Sequence[Any]) -> Any:
    """The type that holds the values of a column in all files.

    Parameters
    ----------
    given : sequence of pyarrow.DataType
        Its types in the files.

    Returns
    -------
    pyarrow.DataType or None
        The type itself where all are equal. None where they are of different kinds.
    """
    pa = import_optional("pyarrow", "arrow")
    present = [dtype for dtype in given if not pa.types.is_null(dtype)]
    if not present:
        return pa.null()
    if all(dtype == present[0] for dtype in present):
        # few libraries read views
        return pa.large_string() if _is_view(present[0]) else present[0]
    kinds = {kind_of(dtype) for dtype in present}
    if len(kinds) > 1:
        return None
    (kind,) = kinds
    return None if kind is None else _widest(pa, kind, present)


def cast_column(column: Any, dtype: Any, *, exact: bool) -> Any:
    """A column as a type of :func:`common_type`.

    Parameters
    ----------
    column : pyarrow.ChunkedArray of length n
    dtype : pyarrow.DataType
    exact : bool
        An integer that a float does not hold is an error; else it is rounded.

    Returns
    -------
    pyarrow.ChunkedArray of length n

    Raises
    ------
    pyarrow.ArrowInvalid
        A value is not in the range of the type.
    """
    pa = import_optional("pyarrow", "arrow")
    if column.type == dtype:
        return column
    if pa.types.is_dictionary(dtype) and pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type).cast(dtype.value_type).dictionary_encode().cast(dtype)
    return column.cast(dtype, safe=exact or not pa.types.is_floating(dtype))


def _widest(pa: Any, kind: str, given: Sequence[Any]) -> Any:
    """A type that holds all of several types of one kind."""
    if kind == "number":
        return _number(pa, given)
    if kind == "text":
        plain = [dtype.value_type if pa.types.is_dictionary(dtype) else dtype for dtype in given]
        return pa.string() if all(pa.types.is_string(dtype) for dtype in plain) else pa.large_string()
    if kind == "date":
        return pa.date32()
    if kind.startswith("category"):
        return pa.dictionary(pa.int32(), common_type([dtype.value_type for dtype in given]))
    unit = max((dtype.unit for dtype in given), key=_UNITS.index)
    if kind == "time of the day":
        return pa.time64(unit) if unit in ("us", "ns") else pa.time32(unit)
    return pa.duration(unit) if kind == "duration" else pa.timestamp(unit, given[0].tz)


def _number(pa: Any, given: Sequence[Any]) -> Any:
    types = pa.types
    if all(types.is_floating(dtype) for dtype in given):
        return max(given, key=lambda dtype: dtype.bit_width)
    if not all(types.is_integer(dtype) for dtype in given):
        return pa.float64()
    signed = [dtype.bit_width for dtype in given if types.is_signed_integer(dtype)]
    unsigned = [dtype.bit_width for dtype in given if types.is_unsigned_integer(dtype)]
    if not signed:
        return max(given, key=lambda dtype: dtype.bit_width)
    bits = max([*signed, *(2 * width for width in unsigned)])
    return {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}.get(bits, pa.float64())


def _is_view(dtype: Any) -> bool:
    return str(dtype) == "string_view"
