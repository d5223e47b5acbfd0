"""Products with a sparse matrix where no column fits into the processor's cache: a cache line of
columns at a time, each row fetched while those before it are added up."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

Array = NDArray[np.float32]
LINE = 16  # columns: the numbers of a cache line
_AHEAD = 64  # entries: 32 take a third longer, 128 as long


@intrinsic  # type: ignore[untyped-decorator]
def _fetch(_: Any, array: Any, place: Any) -> Any:  # pragma: no cover - compiled
    """Ask for an entry of an array that will be read soon."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        made = context.make_array(signature.args[0])(context, builder, args[0])
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        entry = builder.bitcast(builder.gep(made.data, [args[1]]), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        read, often, data = (ir.Constant(number, value) for value in (0, 3, 1))
        builder.call(function, [entry, read, often, data])
        return context.get_dummy_value()

    return types.void(array, place), code


@njit(cache=True, nogil=True, fastmath={"contract"})
def add_term(
    starts: NDArray[Any],
    columns: NDArray[np.int32],
    weights: Array,
    now: Array,
    before: Array,
    total: Array,
    factor: float,
) -> None:  # pragma: no cover - compiled
    """before ← 2·matrix @ now - before, total ← total + factor·before, of a CSR matrix and arrays
    of `LINE` columns."""
    flat = now.reshape(-1)
    row = np.zeros(LINE, np.float32)
    last = len(columns) - 1
    share = np.float32(factor)
    for i in range(len(starts) - 1):
        for j in range(LINE):
            row[j] = -before[i, j]
        for p in range(starts[i], starts[i + 1]):
            soon = np.int64(columns[min(p + _AHEAD, last)])
            _fetch(flat, soon * LINE)  # type: ignore[call-arg]
            place = np.int64(columns[p]) * LINE
            weight = np.float32(2.0) * weights[p]
            for j in range(LINE):
                row[j] += weight * flat[place + j]
        for j in range(LINE):
            before[i, j] = row[j]
            total[i, j] += share * row[j]
