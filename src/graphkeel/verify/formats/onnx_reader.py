"""ONNX networks of affine and ReLU-like operators and of products, read as blocks.

A tensor of the file is either a constant or an affine expression of blocks, flattened. An operator
changes the expression where that is exact (rows picked, maps of different blocks added); where it
would have to multiply two maps, the expression becomes a block of its own first. So no weight is
rounded: float32 weights are float64 numbers, too. Constants computed from constants are exact: sums
of floats. A product of two values is the difference of two squares, 4·a·b = (a + b)² − (a − b)²."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkeel.core.errors import ProblemError
from graphkeel.core.optional import import_optional
from graphkeel.verify.formats.onnx_model import Node, checked_graph
from graphkeel.verify.formats.reading import first_line, read_limited
from graphkeel.verify.problem import Array
from graphkeel.verify.property.network import Block, BlockNetwork, pruned
from graphkeel.verify.rational import rationals
from graphkeel.verify.settings import LIMITS

_Shape = tuple[int, ...]


@dataclass(eq=False)
class _Tensor:
    """Σ terms[number]·value(number) + offset, flattened in C order; no terms: a constant, to which
    `finer` add what `offset` has no digits for."""

    shape: _Shape
    terms: dict[int, Array]
    offset: Array
    finer: tuple[Array, ...] = ()

    @property
    def parts(self) -> list[_Tensor]:
        """A constant as a sum of constants that are floats."""
        return [_Tensor(self.shape, {}, part) for part in (self.offset, *self.finer)]


def read_onnx(path: str | Path) -> BlockNetwork:
    """Read a network; whatever is not supported is named."""
    onnx = import_optional("onnx", extra="export")
    raw = read_limited(Path(path), LIMITS.onnx_bytes)
    try:
        return _Reader(onnx, *checked_graph(onnx, raw, LIMITS.onnx_nodes)).network()
    except ProblemError as error:
        raise ProblemError(f"{path}: {error.what}", got=error.got, fix=error.fix) from None
    except (ValueError, TypeError, IndexError, KeyError, OverflowError, MemoryError) as error:
        raise ProblemError(f"{path}: the network is malformed", got=first_line(error)) from None


class _Reader:
    """Goes through the nodes of a graph in their order.

    Writes: `tensors` by name, `blocks`.
    """

    def __init__(self, onnx: Any, graph: Any, nodes: list[Node]) -> None:
        self.onnx = onnx
        self.graph = graph
        self.nodes = nodes
        self.blocks: list[Block] = []
        self.numbers = 0
        self.tensors: dict[str, _Tensor] = {}
        self.integers: dict[str, NDArray[np.int64]] = {}  # shapes, axes, ends of slices
        self.switches: dict[str, bool] = {}
        self.inputs = 0
        self.kind = 0  # of its numbers

    def network(self) -> BlockNetwork:
        for tensor in self.graph.initializer:
            self._keep(tensor.name, self._array(tensor))
        self._read_input()
        for node in self.nodes:
            try:
                self._read_node(node)
            except ProblemError as error:
                what = f"node {node.output!r} ({node.operator}): {error.what}"
                raise ProblemError(what, got=error.got, fix=error.fix) from None
        if len(self.graph.output) != 1:
            raise ProblemError("a network must have one output", got=len(self.graph.output))
        output = self._tensor(self.graph.output[0].name)
        if not output.terms:
            raise ProblemError("the output does not depend on the input")
        return pruned(self.inputs, self.blocks, self._as_block(output))

    # ---- values

    def _array(self, tensor: Any) -> NDArray[Any]:
        size = math.prod(tensor.dims)
        if min(tensor.dims, default=1) < 0 or size > LIMITS.onnx_numbers:
            raise ProblemError(f"a constant has at most {LIMITS.onnx_numbers} numbers", got=size)
        values: NDArray[Any] = self.onnx.numpy_helper.to_array(tensor)
        return values

    def _keep(self, name: str, values: NDArray[Any]) -> None:
        """A constant: floats for arithmetic, integers for shapes and axes, switches."""
        if values.dtype == np.bool_ and values.size == 1:
            self.switches[name] = bool(values.item())
        if values.dtype.kind in "iu":
            self.integers[name] = values.astype(np.int64)
        if values.dtype not in (np.float16, np.float32, np.float64):
            return
        exact = values.astype(np.float64)
        if not np.isfinite(exact).all():
            raise ProblemError("a constant is not finite", got=repr(name))
        self.tensors[name] = _Tensor(values.shape, {}, exact.ravel())

    def _read_input(self) -> None:
        names = {tensor.name for tensor in self.graph.initializer}
        inputs = [value for value in self.graph.input if value.name not in names]
        if len(inputs) != 1:
            raise ProblemError("a network must have one input", got=len(inputs))
        kind = inputs[0].type.tensor_type
        if kind.elem_type not in self._float_kinds():
            raise ProblemError("the input must be of floats", got=repr(inputs[0].name))
        shape = [dim.dim_value if dim.HasField("dim_value") else 0 for dim in kind.shape.dim]
        if shape and not kind.shape.dim[0].HasField("dim_value"):
            shape[0] = 1  # the batch
        if not shape or min(shape) < 1 or math.prod(shape) > LIMITS.onnx_numbers:
            raise ProblemError("the input must have a fixed shape", got=shape)
        self.inputs = math.prod(shape)
        self.kind = int(kind.elem_type)
        self.tensors[inputs[0].name] = self._value(0, tuple(shape))

    def _float_kinds(self) -> tuple[int, ...]:
        kinds = self.onnx.TensorProto
        return (kinds.FLOAT16, kinds.FLOAT, kinds.DOUBLE)

    def _value(self, number: int, shape: _Shape) -> _Tensor:
        """A block's (or the input's) value itself."""
        size = math.prod(shape)
        self._count(size * size)
        return _Tensor(shape, {number: np.eye(size)}, np.zeros(size))

    def _count(self, numbers: int) -> None:
        self.numbers += numbers
        if self.numbers > LIMITS.onnx_numbers * 4:
            raise ProblemError(
                "the network is too large", fix=f"At most {LIMITS.onnx_numbers} weights."
            )

    def _tensor(self, name: str) -> _Tensor:
        if name not in self.tensors:
            raise ProblemError("a tensor is used that no node has made", got=repr(name))
        return self.tensors[name]

    def _input(self, node: Node, place: int) -> _Tensor:
        return self._tensor(node.inputs[place])

    def _block(self, tensor: _Tensor, relu: bool = False, square: bool = False) -> int:
        """The number of a new block."""
        size = math.prod(tensor.shape)
        terms = tuple(sorted(tensor.terms.items()))
        if size == 0 or not terms:
            raise ProblemError("a node works on constants alone or on nothing")
        self._count(sum(weight.size for _, weight in terms))
        self.blocks.append(Block(terms, tensor.offset, relu, square=square))
        return len(self.blocks)

    def _as_block(self, tensor: _Tensor) -> int:
        """The number of the block that the tensor is; it becomes one if it is none."""
        if len(tensor.terms) == 1 and not tensor.offset.any():
            ((number, weight),) = tensor.terms.items()
            square = weight.shape[0] == weight.shape[1]
            if number and square and (weight == np.eye(weight.shape[0])).all():
                return number
        number = self._block(tensor)
        fresh = self._value(number, tensor.shape)
        tensor.terms, tensor.offset = fresh.terms, fresh.offset
        return number

    def _mapped(self, tensor: _Tensor, weight: Array, shape: _Shape) -> _Tensor:
        """weight·tensor, exact: multiplied out only where each row picks one entry of a block."""
        if not _is_selection(tensor):
            self._as_block(tensor)
        self._count(weight.shape[0] * sum(part.shape[1] for part in tensor.terms.values()))
        terms = {}
        for number, part in tensor.terms.items():
            product = np.zeros((weight.shape[0], part.shape[1]))
            rows, columns = np.nonzero(part)
            product[:, columns] = weight[:, rows]
            terms[number] = product
        return _Tensor(shape, terms, np.zeros(weight.shape[0]))

    # ---- nodes

    def _read_node(self, node: Node) -> None:
        if node.operator == "Constant":
            self._keep(node.output, self._constant(node))
            return
        handler: Callable[[Node], _Tensor] = getattr(self, f"_op_{node.operator.lower()}")
        result = self._of_constants(node) or handler(node)
        if math.prod(result.shape) > LIMITS.onnx_numbers:
            raise ProblemError("a tensor is too large", got=result.shape)
        self.tensors[node.output] = result

    def _of_constants(self, node: Node) -> _Tensor | None:
        """The exact result of arithmetic on constants alone."""
        given = [self.tensors.get(name) for name in node.inputs]
        constants = [tensor for tensor in given if tensor is not None and not tensor.terms]
        if node.operator in _ARITHMETIC and len(constants) == len(given):
            values = [_exact_values(tensor) for tensor in constants]
            return _as_constant(np.asarray(_ARITHMETIC[node.operator](*values), dtype=object))
        if any(tensor.finer for tensor in constants) and node.operator not in _SUMS:
            raise ProblemError(f"a {node.operator} of a constant that is no float is not read")
        return None

    def _constant(self, node: Node) -> NDArray[Any]:
        attributes = node.attributes
        if len(attributes) != 1:
            raise ProblemError("a Constant has one value", got=sorted(attributes))
        if "value" in attributes:
            return self._array(attributes["value"])
        for name, kind in (("value_float", np.float32), ("value_floats", np.float32)):
            if name in attributes:
                return np.asarray(attributes[name], dtype=kind)
        for name in ("value_int", "value_ints"):
            if name in attributes:
                return np.asarray(attributes[name], dtype=np.int64)
        raise ProblemError("a Constant has no number in it", got=sorted(attributes))

    def _op_gemm(self, node: Node) -> _Tensor:
        tensor, weight = self._input(node, 0), self._constant_matrix(node.inputs[1])
        if node.attributes.get("transA", 0):
            raise ProblemError("Gemm with transA is not supported")
        weight = weight if node.attributes.get("transB", 0) else weight.T
        scale, bias_scale = (node.attributes.get(name, 1.0) for name in ("alpha", "beta"))
        if len(tensor.shape) != 2 or tensor.shape[1] != weight.shape[1]:
            raise ProblemError("the sizes of a Gemm do not fit", got=(tensor.shape, weight.shape))
        product = self._rows_times(tensor, [weight])
        if scale != 1.0:
            product = self._scaled(product, np.full(product.offset.shape, scale))
        if not _is_given(node, 2) or bias_scale == 0.0:
            return product
        bias = self._input(node, 2)
        if bias_scale != 1.0:
            raise ProblemError("Gemm with a beta other than 0 and 1 is not supported")
        if np.broadcast_shapes(product.shape, bias.shape) != product.shape:
            raise ProblemError("the bias of a Gemm does not fit", got=(product.shape, bias.shape))
        return self._added(product, bias, 1.0)

    def _op_matmul(self, node: Node) -> _Tensor:
        left, right = self._input(node, 0), self._input(node, 1)
        if left.terms and right.terms:
            raise ProblemError("a MatMul of two values is not read; a Mul of two is")
        if not right.terms:
            if len(right.shape) != 2 or left.shape[-1:] != right.shape[:1]:
                raise ProblemError(
                    "the sizes of a MatMul do not fit", got=(left.shape, right.shape)
                )
            return self._rows_times(left, [p.offset.reshape(p.shape).T for p in right.parts])
        weight = self._constant_matrix(node.inputs[0])
        if len(right.shape) not in (1, 2) or right.shape[0] != weight.shape[1]:
            raise ProblemError("the sizes of a MatMul do not fit", got=(weight.shape, right.shape))
        columns = math.prod(right.shape[1:])
        self._count(weight.size * columns * columns)
        shape = (weight.shape[0], *right.shape[1:])
        every: Array = np.kron(weight, np.eye(columns)).astype(np.float64)
        return self._mapped(right, every, shape)

    def _rows_times(self, tensor: _Tensor, weights: list[Array]) -> _Tensor:
        """Every row of the last axis, times a matrix (out, in) that is a sum of some."""
        lines = math.prod(tensor.shape[:-1])
        total: _Tensor | None = None
        for weight in weights:
            self._count(weight.size * lines * lines)
            every: Array = np.kron(np.eye(lines), weight).astype(np.float64)
            part = self._mapped(tensor, every, (*tensor.shape[:-1], weight.shape[0]))
            total = part if total is None else self._added(total, part, 1.0)
        assert total is not None
        return total

    def _constant_matrix(self, name: str) -> Array:
        tensor = self._tensor(name)
        if tensor.terms or tensor.finer or len(tensor.shape) != 2:
            raise ProblemError("a product needs one constant matrix", got=(name, tensor.shape))
        return tensor.offset.reshape(tensor.shape)

    def _op_add(self, node: Node) -> _Tensor:
        return self._added(self._input(node, 0), self._input(node, 1), 1.0)

    def _op_sub(self, node: Node) -> _Tensor:
        return self._added(self._input(node, 0), self._input(node, 1), -1.0)

    def _added(self, a: _Tensor, b: _Tensor, sign: float) -> _Tensor:
        """a ± b with broadcasting; values that would be rounded become blocks first."""
        shape = np.broadcast_shapes(a.shape, b.shape)
        for part in b.parts[1:] if b.finer else []:
            a = self._added(a, part, sign)
        for part in a.parts[1:] if a.finer else []:
            b = self._added(b, part, sign)
        if a.finer:
            a = a.parts[0]
        total = _sum(_spread(a, shape), _spread(b, shape), sign)
        if total is None:
            for tensor in (a, b):
                if tensor.terms:
                    self._as_block(tensor)
            total = _sum(_spread(a, shape), _spread(b, shape), sign)
        if total is None:
            raise ProblemError("two constants cannot be added without rounding")
        return total

    def _op_neg(self, node: Node) -> _Tensor:
        tensor = self._input(node, 0)
        terms = {number: -weight for number, weight in tensor.terms.items()}
        return _Tensor(tensor.shape, terms, -tensor.offset)

    def _op_mul(self, node: Node) -> _Tensor:
        a, b = self._input(node, 0), self._input(node, 1)
        a, b = (a, b) if a.terms else (b, a)
        if b.terms:
            return self._product(a, b, node.inputs[0] == node.inputs[1])
        shape = np.broadcast_shapes(a.shape, b.shape)
        first, *more = [self._scaled(_spread(a, shape), _spread(p, shape).offset) for p in b.parts]
        for part in more:
            first = self._added(first, part, 1.0)
        return first

    def _product(self, a: _Tensor, b: _Tensor, same: bool) -> _Tensor:
        """The product of two values, entry by entry."""
        if same:
            return self._value(self._block(a, square=True), a.shape)
        parts = [self._added(a, b, sign) for sign in (1.0, -1.0)]
        squares = [self._value(self._block(part, square=True), part.shape) for part in parts]
        whole = self._added(squares[0], squares[1], -1.0)
        return self._scaled(whole, np.full(whole.offset.shape, 0.25))

    def _op_pow(self, node: Node) -> _Tensor:
        value, exponent = self._input(node, 0), self._input(node, 1)
        if exponent.terms or exponent.finer or (exponent.offset != 2.0).any() or exponent.shape:
            raise ProblemError("a Pow is read with the exponent 2 only")
        return self._product(value, value, True)

    def _op_div(self, node: Node) -> _Tensor:
        value, by = self._input(node, 0), self._input(node, 1)
        factors = np.abs(np.frexp(by.offset)[0])
        if by.terms or by.finer or (factors != 0.5).any():
            raise ProblemError("a Div is read by constants that are powers of two only")
        shape = np.broadcast_shapes(value.shape, by.shape)
        return self._scaled(_spread(value, shape), 1.0 / _spread(by, shape).offset)

    def _op_cast(self, node: Node) -> _Tensor:
        """The identity, to floats that are not shorter than the input's."""
        if node.attributes["to"] not in (self.kind, self.onnx.TensorProto.DOUBLE):
            raise ProblemError("a Cast to shorter numbers or integers is not read")
        return self._input(node, 0)

    def _op_reducesum(self, node: Node) -> _Tensor:
        tensor = self._input(node, 0)
        named = self._ints(node, 1, "axes", optional=True)
        axes = tuple(_axis(node, k, len(tensor.shape)) for k in named)
        axes = axes or tuple(range(len(tensor.shape)))
        rest = [k for k in range(len(tensor.shape)) if k not in axes]
        moved = self._moved(node, lambda places: places.transpose(*rest, *axes))
        count = math.prod(tensor.shape[k] for k in axes)
        flat = _Tensor((moved.offset.shape[0] // count, count), moved.terms, moved.offset)
        total = self._rows_times(flat, [np.ones((1, count))])
        keeps = node.attributes.get("keepdims", 1)
        shape = [1 if k in axes else size for k, size in enumerate(tensor.shape)]
        total.shape = tuple(shape if keeps else [tensor.shape[k] for k in rest])
        return total

    def _scaled(self, tensor: _Tensor, factors: Array) -> _Tensor:
        self._as_block(tensor)
        return self._mapped(tensor, np.diag(factors), tensor.shape)

    def _relu_of(self, tensor: _Tensor) -> _Tensor:
        if not tensor.terms:
            return _Tensor(tensor.shape, {}, np.maximum(tensor.offset, 0.0))
        return self._value(self._block(tensor, relu=True), tensor.shape)

    def _op_relu(self, node: Node) -> _Tensor:
        return self._relu_of(self._input(node, 0))

    def _op_leakyrelu(self, node: Node) -> _Tensor:
        """α·x + (1 − α)·relu(x), or relu(x) − α·relu(−x) where 1 − α is no float."""
        slope = float(np.float32(node.attributes.get("alpha", 0.01)))
        tensor = self._input(node, 0)
        size = math.prod(tensor.shape)
        self._as_block(tensor)
        positive = self._relu_of(tensor)
        if (1.0 - slope) + slope == 1.0 and 1.0 - (1.0 - slope) == slope:
            rest = self._mapped(tensor, np.eye(size) * slope, tensor.shape)
            part = self._mapped(positive, np.eye(size) * (1.0 - slope), tensor.shape)
            return self._added(part, rest, 1.0)
        negative = self._relu_of(self._mapped(tensor, -np.eye(size), tensor.shape))
        part = self._mapped(negative, np.eye(size) * slope, tensor.shape)
        return self._added(positive, part, -1.0)

    def _op_abs(self, node: Node) -> _Tensor:
        """2·relu(x) − x."""
        tensor = self._input(node, 0)
        size = math.prod(tensor.shape)
        self._as_block(tensor)
        twice = self._mapped(self._relu_of(tensor), np.eye(size) * 2.0, tensor.shape)
        return self._added(twice, tensor, -1.0)

    def _op_clip(self, node: Node) -> _Tensor:
        """low + relu(x − low), then high − relu(high − that)."""
        value = self._input(node, 0)
        low = self._clip_end(node, 1, "min")
        high = self._clip_end(node, 2, "max")
        if low is not None and high is not None and not (low.offset <= high.offset).all():
            raise ProblemError("a Clip has min > max")
        if low is not None:
            value = self._added(self._relu_of(self._added(value, low, -1.0)), low, 1.0)
        if high is not None:
            value = self._added(high, self._relu_of(self._added(high, value, -1.0)), -1.0)
        return value

    def _clip_end(self, node: Node, place: int, word: str) -> _Tensor | None:
        """A single constant: an attribute up to definition 6, an input from 11 on."""
        if word in node.attributes:
            return _Tensor((), {}, np.array([float(np.float32(node.attributes[word]))]))
        if not _is_given(node, place):
            return None
        end = self._input(node, place)
        if end.terms or math.prod(end.shape) != 1:
            raise ProblemError("the ends of a Clip must be single constants", got=word)
        return _Tensor((), {}, end.offset)

    # ---- operators that only move entries

    def _moved(self, node: Node, move: Callable[[NDArray[np.int64]], NDArray[np.int64]]) -> _Tensor:
        tensor = self._input(node, 0)
        places = np.arange(math.prod(tensor.shape)).reshape(tensor.shape)
        return _picked(tensor, move(places))

    def _op_identity(self, node: Node) -> _Tensor:
        return self._input(node, 0)

    def _op_dropout(self, node: Node) -> _Tensor:
        """The identity: before definition 12 always, since then unless it is in training mode."""
        if _is_given(node, 2) and self.switches.get(node.inputs[2], True):
            raise ProblemError("a Dropout may be in training mode", got=repr(node.inputs[2]))
        return self._input(node, 0)

    def _op_gather(self, node: Node) -> _Tensor:
        shape = self._input(node, 0).shape
        axis = _axis(node, node.attributes.get("axis", 0), len(shape))
        if node.inputs[1] not in self.integers:
            raise ProblemError("the indices of a Gather must be constants")
        picked = self.integers[node.inputs[1]]
        return self._moved(node, lambda places: np.take(places, picked, axis=axis))

    def _op_flatten(self, node: Node) -> _Tensor:
        shape = self._input(node, 0).shape
        axis = _axis(node, node.attributes.get("axis", 1), len(shape), last=len(shape))
        both = (math.prod(shape[:axis]), math.prod(shape[axis:]))
        return self._moved(node, lambda places: places.reshape(both))

    def _op_reshape(self, node: Node) -> _Tensor:
        target = self._ints(node, 1, "shape")
        old = self._input(node, 0).shape
        if min(target, default=0) < -1:  # numpy would take any negative number for −1
            raise ProblemError("a Reshape has a negative size", got=target)
        if not node.attributes.get("allowzero", 0):
            target = [old[i] if k == 0 else k for i, k in enumerate(target)]
        return self._moved(node, lambda places: places.reshape(target))

    def _op_transpose(self, node: Node) -> _Tensor:
        order = node.attributes.get("perm")
        rank = len(self._input(node, 0).shape)
        if order is not None and sorted(order) != list(range(rank)):
            raise ProblemError("perm of a Transpose must name every axis once", got=order)
        return self._moved(node, lambda places: places.transpose(order))

    def _op_squeeze(self, node: Node) -> _Tensor:
        shape = self._input(node, 0).shape
        named = self._ints(node, 1, "axes", optional=True)
        axes = tuple(_axis(node, k, len(shape)) for k in named)
        return self._moved(node, lambda places: places.squeeze(axes or None))

    def _op_unsqueeze(self, node: Node) -> _Tensor:
        named = self._ints(node, 1, "axes")
        rank = len(self._input(node, 0).shape) + len(named)
        axes = tuple(_axis(node, k, rank) for k in named)
        return self._moved(node, lambda places: np.expand_dims(places, axes))

    def _op_slice(self, node: Node) -> _Tensor:
        starts, ends = self._ints(node, 1, "starts"), self._ints(node, 2, "ends")
        named = self._ints(node, 3, "axes", optional=True) or list(range(len(starts)))
        steps = self._ints(node, 4, "steps", optional=True) or [1] * len(starts)
        shape = self._input(node, 0).shape
        axes = [_axis(node, k, len(shape)) for k in named]
        if not len(starts) == len(ends) == len(set(axes)) == len(axes) == len(steps):
            raise ProblemError("the lists of a Slice do not fit together", got=axes)
        if min(steps, default=1) < (1 if node.version < 11 else -math.inf):
            raise ProblemError("a Slice has steps that its operator set does not have", got=steps)
        parts = [range(size) for size in shape]
        for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
            parts[axis] = _range(start, end, step, shape[axis])
        return self._moved(node, lambda places: places[np.ix_(*parts)])

    def _ints(self, node: Node, place: int, word: str, optional: bool = False) -> list[int]:
        """Integers from an attribute (older definitions) or from a constant input."""
        if word in node.attributes:
            return [int(k) for k in node.attributes[word]]
        if _is_given(node, place):
            name = node.inputs[place]
            if name not in self.integers:
                raise ProblemError("shapes and axes must be constants", got=repr(name))
            found = [int(k) for k in self.integers[name].ravel()]
            if optional and not found:  # all axes to some runtimes, none to others
                raise ProblemError(f"a {node.operator} has an empty list of {word}")
            return found
        if not optional:
            raise ProblemError(f"a node lacks its {word}")
        return []

    def _op_concat(self, node: Node) -> _Tensor:
        parts = [self._tensor(name) for name in node.inputs]
        axis = _axis(node, node.attributes["axis"], len(parts[0].shape))
        starts = np.cumsum([0, *(math.prod(part.shape) for part in parts)])
        places = [
            start + np.arange(math.prod(part.shape)).reshape(part.shape)
            for start, part in zip(starts, parts, strict=False)
        ]
        order = np.concatenate(places, axis=axis)
        stacked = _Tensor((int(starts[-1]),), {}, np.concatenate([part.offset for part in parts]))
        for number in sorted({number for part in parts for number in part.terms}):
            width = next(p.terms[number].shape[1] for p in parts if number in p.terms)
            self._count(int(starts[-1]) * width)
            stacked.terms[number] = np.concatenate(
                [p.terms.get(number, np.zeros((math.prod(p.shape), width))) for p in parts]
            )
        return _picked(stacked, order)


def _is_given(node: Node, place: int) -> bool:
    """Whether an optional input is there."""
    return len(node.inputs) > place and bool(node.inputs[place])


def _axis(node: Node, axis: int, rank: int, last: int | None = None) -> int:
    """An axis from 0 to `last` (the rank itself in a Flatten); from definition 11 on, a negative
    one counts from the end."""
    last = rank - 1 if last is None else last
    least = 0 if node.version < 11 else -rank
    if not least <= axis <= last:
        raise ProblemError(f"an axis of a {node.operator} does not exist", got=axis)
    return axis + rank if axis < 0 else axis


def _range(start: int, end: int, step: int, size: int) -> range:
    """The entries that a Slice takes of an axis. Its ends are clamped as ONNX does: with a negative
    step a start before the first entry is the first entry, which Python's slices leave out."""
    start, end = (k + size if k < 0 else k for k in (start, end))
    if step < 0:
        return range(min(max(start, 0), size - 1), min(max(end, -1), size - 1), step)
    return range(min(max(start, 0), size), min(max(end, 0), size), step)


def _exact_values(tensor: _Tensor) -> NDArray[Any]:
    """A constant's rational numbers."""
    parts = [np.array(rationals(part), dtype=object) for part in (tensor.offset, *tensor.finer)]
    total: NDArray[Any] = sum(parts[1:], parts[0]).reshape(tensor.shape)
    return total


def _as_constant(values: NDArray[Any]) -> _Tensor:
    """Rational numbers as sums of floats."""
    parts: list[Array] = []
    rest = values.ravel()
    while not parts or (rest != 0).any():
        if len(parts) == 4:
            raise ProblemError("a constant has too many digits")
        parts.append(rest.astype(np.float64))
        if not np.isfinite(parts[-1]).all():
            raise ProblemError("a constant is not finite")
        rest = rest - np.array(rationals(parts[-1]), dtype=object)
    return _Tensor(values.shape, {}, parts[0], tuple(parts[1:]))


# arithmetic on constants, in rational numbers; and the operators that read constants of many digits
_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mul": operator.mul,
    "MatMul": operator.matmul,
    "Neg": operator.neg,
    "Relu": lambda values: values * (values > 0),
}
_SUMS = ("Add", "Sub", "Mul", "MatMul")


def _picked(tensor: _Tensor, places: NDArray[np.int64]) -> _Tensor:
    """The tensor whose entries are those at `places`."""
    flat = places.ravel()
    terms = {number: weight[flat] for number, weight in tensor.terms.items()}
    return _Tensor(places.shape, terms, tensor.offset[flat])


def _spread(tensor: _Tensor, shape: _Shape) -> _Tensor:
    """The tensor broadcast to a shape."""
    if tensor.shape == shape:
        return tensor
    if math.prod(shape) > LIMITS.onnx_numbers:
        raise ProblemError("a tensor is too large", got=shape)
    places = np.arange(math.prod(tensor.shape)).reshape(tensor.shape)
    return _picked(tensor, np.broadcast_to(places, shape))


def _is_selection(tensor: _Tensor) -> bool:
    """Whether the entries are, one for one, different entries of blocks."""
    if tensor.offset.any() or not tensor.terms:
        return False
    used = np.zeros(tensor.offset.shape[0], np.int64)
    for weight in tensor.terms.values():
        ones = weight != 0.0
        if (weight[ones] != 1.0).any() or (ones.sum(axis=0) > 1).any():
            return False
        used += ones.sum(axis=1)
    return bool((used == 1).all())


def _sum(a: _Tensor, b: _Tensor, sign: float) -> _Tensor | None:
    """a ± b, or None where a number would be rounded."""
    offset = _exact_sum(a.offset, sign * b.offset)
    terms = dict(a.terms)
    for number, weight in b.terms.items():
        total = _exact_sum(terms[number], sign * weight) if number in terms else sign * weight
        if total is None:
            return None
        terms[number] = total
    return None if offset is None else _Tensor(a.shape, terms, offset)


def _exact_sum(a: Array, b: Array) -> Array | None:
    """a + b where no entry is rounded (the error term of Knuth's two-sum), else None."""
    total = a + b
    rest = total - a
    error = (a - (total - rest)) + (b - rest)
    return None if error.any() or not np.isfinite(total).all() else total
