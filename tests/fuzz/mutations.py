"""Files that are nearly right: valid ones with bytes or JSON values changed, and arrays of any
kind."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

HOSTILE: list[Any] = [
    *(None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 10**30, 10**400),
    *(0.5, -0.0, 1e308, 1e-320, float("nan"), float("inf")),
    *(
        "",
        "0",
        "nan",
        "../../../etc/passwd",
        "/dev/zero",
        "<script>alert(1)</script>",
        "\0",
        "é" * 300,
        "'; rm -rf /; '",
    ),
    *([], {}, [[]], [0] * 1000, {"a": {"b": {}}}, [None], ["x"]),
]


def hostile_values() -> st.SearchStrategy[Any]:
    return st.one_of(
        st.sampled_from(HOSTILE),
        st.integers(),
        st.floats(),
        st.text(max_size=20),
        st.recursive(st.integers(-5, 5), lambda inner: st.lists(inner, max_size=4), max_leaves=12),
        st.builds(lambda depth: nested(depth), st.sampled_from([3, 30, 100])),
    )


def nested(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


@st.composite
def changed_bytes(draw: st.DrawFn, sample: bytes) -> bytes:
    """A valid file with a few bytes overwritten, cut out, doubled or put in; or bytes of any
    kind."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=200))
    content = bytearray(sample)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(content)))
        size = draw(st.sampled_from([1, 1, 2, 4, 8, 30]))
        kind = draw(st.sampled_from(["overwrite", "overwrite", "cut", "double", "insert", "end"]))
        if kind == "overwrite":
            content[at : at + size] = draw(st.binary(min_size=size, max_size=size))
        elif kind == "cut":
            del content[at : at + size]
        elif kind == "double":
            content[at:at] = content[at : at + size]
        elif kind == "insert":
            content[at:at] = draw(st.binary(min_size=1, max_size=size))
        else:
            del content[at:]
    return bytes(content)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    found = [path]
    children = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, child in children:
        found += places(child, (*path, key))
    return found


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


def without(value: Any, path: tuple[Any, ...]) -> Any:
    if len(path) == 1:
        copy = dict(value) if isinstance(value, dict) else list(value)
        del copy[path[0]]
        return copy
    return replaced(value, path[:1], without(value[path[0]], path[1:]))


@st.composite
def changed_json(draw: st.DrawFn, sample: Any) -> Any:
    """A JSON value with one to three of its places replaced by something hostile, or left out."""
    value = sample
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(places(value)))
        if path and draw(st.booleans()) and draw(st.booleans()):
            value = without(value, path)
        else:
            value = replaced(value, path, draw(hostile_values()))
        if not isinstance(value, dict | list):
            break
    return value


def as_text(value: Any) -> bytes:
    """JSON as Python writes it, NaN and all; too deep a nesting is written by hand."""
    try:
        return json.dumps(value).encode()
    except (RecursionError, ValueError):
        return b"[" * 20_000 + b"]" * 20_000


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray:
    """Small arrays of any dtype and shape."""
    kind = st.one_of(
        hnp.floating_dtypes(),
        hnp.integer_dtypes(),
        hnp.unsigned_integer_dtypes(),
        hnp.boolean_dtypes(),
        hnp.complex_number_dtypes(),
        hnp.unicode_string_dtypes(max_len=3),
        hnp.byte_string_dtypes(max_len=3),
        hnp.datetime64_dtypes(),
    )
    shape = draw(
        st.one_of(
            hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5),
            st.just((60,)),
            st.just((2, 60)),
        )
    )
    return np.asarray(draw(hnp.arrays(draw(kind), shape)))
