"""Prefetching of cache lines in compiled code, which numba has no function for."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def _address(context: Any, builder: Any, kind: Any, array: Any, position: Any) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [position]), ir.IntType(8).as_pointer())


@intrinsic
def prefetch(typing: Any, array: Any, position: Any) -> Any:  # noqa: ARG001 - Numba's own
    """Prefetch the cache line of array.flat[position]."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        flag = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        address = _address(context, builder, signature.args[0], args[0], args[1])
        to_read_keep_data = (ir.Constant(flag, value) for value in (0, 3, 1))
        builder.call(fetch, [address, *to_read_keep_data])
        return cgutils.get_null_value(context.get_value_type(types.none))

    return types.none(array, types.intp), generate
