"""ONNX networks of affine and ReLU-like operators, read as blocks.

A tensor of the file is either a constant or an affine expression of blocks, flattened. An operator
changes the expression where that is exact (rows picked, maps of different blocks added); where it
would have to multiply two maps, the expression becomes a block of its own first. So no weight is
rounded: float32 weights are float64 numbers, too."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkeel.core.errors import ProblemError
from graphkeel.core.optional import import_optional
from graphkeel.verify.formats.reading import first_line, read_limited
from graphkeel.verify.problem import Array
from graphkeel.verify.property.network import Block, BlockNetwork, pruned

MAX_BYTES = 64 << 20
MAX_NODES = 2_000
MAX_NUMBERS = 8_000_000  # weights of all blocks, and elements of one constant

Shape = tuple[int, ...]


@dataclass(eq=False)
class Tensor:
    """Σ terms[number]·value(number) + offset, flattened in C order; no terms: a constant."""

    shape: Shape
    terms: dict[int, Array]
    offset: Array


def read_onnx(path: str | Path) -> BlockNetwork:
    """Read a network; whatever is not supported is named.

    Args:
        path: of the .onnx file.
    """
    onnx = import_optional("onnx", extra="export")
    raw = read_limited(Path(path), MAX_BYTES)
    try:
        model = onnx.load_model_from_string(raw)
    except Exception as error:  # protobuf's own errors share no base class
        raise ProblemError(f"{path} is not an ONNX model", got=first_line(error)) from None
    try:
        return _Reader(onnx, model.graph).network()
    except ProblemError as error:
        raise ProblemError(f"{path}: {error.what}", got=error.got, fix=error.fix) from None
    except (ValueError, TypeError, IndexError, KeyError, OverflowError, MemoryError) as error:
        raise ProblemError(f"{path}: the network is malformed", got=first_line(error)) from None


class _Reader:
    """Goes through the nodes of a graph in their order.

    Writes: `tensors` by name, `blocks`.
    """

    def __init__(self, onnx: Any, graph: Any) -> None:
        self.onnx = onnx
        self.graph = graph
        self.blocks: list[Block] = []
        self.numbers = 0
        self.tensors: dict[str, Tensor] = {}
        self.integers: dict[str, NDArray[np.int64]] = {}  # shapes, axes, ends of slices
        self.inputs = 0

    def network(self) -> BlockNetwork:
        if len(self.graph.node) > MAX_NODES:
            raise ProblemError(f"a network has at most {MAX_NODES} nodes", got=len(self.graph.node))
        for tensor in self.graph.initializer:
            self._keep(tensor.name, self._array(tensor))
        self._read_input()
        for node in self.graph.node:
            self._read_node(node)
        if len(self.graph.output) != 1:
            raise ProblemError("a network must have one output", got=len(self.graph.output))
        output = self._tensor(self.graph.output[0].name)
        if not output.terms:
            raise ProblemError("the output does not depend on the input")
        return pruned(self.inputs, self.blocks, self._as_block(output))

    # ---- values

    def _array(self, tensor: Any) -> NDArray[Any]:
        size = math.prod(tensor.dims)
        if min(tensor.dims, default=1) < 0 or size > MAX_NUMBERS:
            raise ProblemError(f"a constant has at most {MAX_NUMBERS} numbers", got=size)
        if tensor.data_location == self.onnx.TensorProto.EXTERNAL:
            raise ProblemError(
                "the weights are in another file", fix="Save the model with its weights inside."
            )
        values: NDArray[Any] = self.onnx.numpy_helper.to_array(tensor)
        return values

    def _keep(self, name: str, values: NDArray[Any]) -> None:
        """A constant: floats for arithmetic, integers for shapes and axes."""
        if values.dtype.kind in "iu":
            self.integers[name] = values.astype(np.int64)
        if values.dtype not in (np.float16, np.float32, np.float64):
            return
        exact = values.astype(np.float64)
        if not np.isfinite(exact).all():
            raise ProblemError("a constant is not finite", got=repr(name))
        self.tensors[name] = Tensor(values.shape, {}, exact.ravel())

    def _read_input(self) -> None:
        names = {tensor.name for tensor in self.graph.initializer}
        inputs = [value for value in self.graph.input if value.name not in names]
        if len(inputs) != 1:
            raise ProblemError("a network must have one input", got=len(inputs))
        dims = inputs[0].type.tensor_type.shape.dim
        shape = [dim.dim_value if dim.HasField("dim_value") else 0 for dim in dims]
        if shape and shape[0] == 0:
            shape[0] = 1  # the batch
        if not shape or min(shape) < 1 or math.prod(shape) > MAX_NUMBERS:
            raise ProblemError("the input must have a fixed shape", got=shape)
        self.inputs = math.prod(shape)
        self.tensors[inputs[0].name] = self._value(0, tuple(shape))

    def _value(self, number: int, shape: Shape) -> Tensor:
        """A block's (or the input's) value itself."""
        size = math.prod(shape)
        self._count(size * size)
        return Tensor(shape, {number: np.eye(size)}, np.zeros(size))

    def _count(self, numbers: int) -> None:
        self.numbers += numbers
        if self.numbers > MAX_NUMBERS * 4:
            raise ProblemError("the network is too large", fix=f"At most {MAX_NUMBERS} weights.")

    def _tensor(self, name: str) -> Tensor:
        if name not in self.tensors:
            raise ProblemError("a tensor is used that no node has made", got=repr(name))
        return self.tensors[name]

    def _block(self, tensor: Tensor, relu: bool) -> int:
        """The number of a new block."""
        size = math.prod(tensor.shape)
        terms = tuple(sorted(tensor.terms.items()))
        if size == 0 or not terms:
            raise ProblemError("a node works on constants alone or on nothing")
        self._count(sum(weight.size for _, weight in terms))
        self.blocks.append(Block(terms, tensor.offset, relu))
        return len(self.blocks)

    def _as_block(self, tensor: Tensor) -> int:
        """The number of the block that the tensor is; it becomes one if it is none."""
        if len(tensor.terms) == 1 and not tensor.offset.any():
            ((number, weight),) = tensor.terms.items()
            square = weight.shape[0] == weight.shape[1]
            if number and square and (weight == np.eye(weight.shape[0])).all():
                return number
        number = self._block(tensor, relu=False)
        fresh = self._value(number, tensor.shape)
        tensor.terms, tensor.offset = fresh.terms, fresh.offset
        return number

    def _mapped(self, tensor: Tensor, weight: Array, shape: Shape) -> Tensor:
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
        return Tensor(shape, terms, np.zeros(weight.shape[0]))

    # ---- nodes

    def _read_node(self, node: Any) -> None:
        attributes = {a.name: self.onnx.helper.get_attribute_value(a) for a in node.attribute}
        if node.op_type == "Constant":
            self._keep(node.output[0], self._constant(attributes))
            return
        handler: Callable[..., Tensor] | None = getattr(self, f"_op_{node.op_type.lower()}", None)
        if handler is None or node.domain not in ("", "ai.onnx"):
            supported = sorted(name[4:] for name in dir(self) if name.startswith("_op_"))
            raise ProblemError(
                "an operator is not supported", got=node.op_type, fix=f"Known: {supported}."
            )
        result = handler(list(node.input), attributes)
        if math.prod(result.shape) > MAX_NUMBERS:
            raise ProblemError("a tensor is too large", got=result.shape)
        self.tensors[node.output[0]] = result

    def _constant(self, attributes: dict[str, Any]) -> NDArray[Any]:
        if "value" in attributes:
            return self._array(attributes["value"])
        for name, kind in (("value_float", np.float32), ("value_floats", np.float32)):
            if name in attributes:
                return np.asarray(attributes[name], dtype=kind)
        for name in ("value_int", "value_ints"):
            if name in attributes:
                return np.asarray(attributes[name], dtype=np.int64)
        raise ProblemError("a Constant has no number in it", got=sorted(attributes))

    def _op_gemm(self, names: list[str], attributes: dict[str, Any]) -> Tensor:
        tensor, weight = self._tensor(names[0]), self._constant_matrix(names[1])
        if attributes.get("transA", 0):
            raise ProblemError("Gemm with transA is not supported")
        weight = weight if attributes.get("transB", 0) else weight.T
        scale, bias_scale = attributes.get("alpha", 1.0), attributes.get("beta", 1.0)
        if len(tensor.shape) != 2 or tensor.shape[1] != weight.shape[1]:
            raise ProblemError("the sizes of a Gemm do not fit", got=(tensor.shape, weight.shape))
        product = self._rows_times(tensor, weight)
        if scale != 1.0:
            product = self._scaled(product, np.full(product.offset.shape, scale))
        if len(names) < 3 or not names[2] or bias_scale == 0.0:
            return product
        bias = self._tensor(names[2])
        if bias_scale != 1.0:
            raise ProblemError("Gemm with a beta other than 0 and 1 is not supported")
        return self._added(product, bias, 1.0)

    def _op_matmul(self, names: list[str], _: dict[str, Any]) -> Tensor:
        left, right = self._tensor(names[0]), self._tensor(names[1])
        if not right.terms:
            weight = self._constant_matrix(names[1]).T
            if left.shape[-1:] != (weight.shape[1],):
                raise ProblemError(
                    "the sizes of a MatMul do not fit", got=(left.shape, weight.T.shape)
                )
            return self._rows_times(left, weight)
        weight = self._constant_matrix(names[0])
        if len(right.shape) not in (1, 2) or right.shape[0] != weight.shape[1]:
            raise ProblemError("the sizes of a MatMul do not fit", got=(weight.shape, right.shape))
        columns = math.prod(right.shape[1:])
        self._count(weight.size * columns * columns)
        shape = (weight.shape[0], *right.shape[1:])
        every: Array = np.kron(weight, np.eye(columns)).astype(np.float64)
        return self._mapped(right, every, shape)

    def _rows_times(self, tensor: Tensor, weight: Array) -> Tensor:
        """Every row of the last axis, times one matrix (out, in)."""
        lines = math.prod(tensor.shape[:-1])
        self._count(weight.size * lines * lines)
        every: Array = np.kron(np.eye(lines), weight).astype(np.float64)
        return self._mapped(tensor, every, (*tensor.shape[:-1], weight.shape[0]))

    def _constant_matrix(self, name: str) -> Array:
        tensor = self._tensor(name)
        if tensor.terms or len(tensor.shape) != 2:
            raise ProblemError("a product needs one constant matrix", got=(name, tensor.shape))
        return tensor.offset.reshape(tensor.shape)

    def _op_add(self, names: list[str], _: dict[str, Any]) -> Tensor:
        return self._added(self._tensor(names[0]), self._tensor(names[1]), 1.0)

    def _op_sub(self, names: list[str], _: dict[str, Any]) -> Tensor:
        return self._added(self._tensor(names[0]), self._tensor(names[1]), -1.0)

    def _added(self, a: Tensor, b: Tensor, sign: float) -> Tensor:
        """a ± b with broadcasting; values that would be rounded become blocks first."""
        shape = np.broadcast_shapes(a.shape, b.shape)
        total = _sum(_spread(a, shape), _spread(b, shape), sign)
        if total is None:
            for tensor in (a, b):
                if tensor.terms:
                    self._as_block(tensor)
            total = _sum(_spread(a, shape), _spread(b, shape), sign)
        if total is None:
            raise ProblemError("two constants cannot be added without rounding")
        return total

    def _op_neg(self, names: list[str], _: dict[str, Any]) -> Tensor:
        tensor = self._tensor(names[0])
        terms = {number: -weight for number, weight in tensor.terms.items()}
        return Tensor(tensor.shape, terms, -tensor.offset)

    def _op_mul(self, names: list[str], _: dict[str, Any]) -> Tensor:
        a, b = self._tensor(names[0]), self._tensor(names[1])
        a, b = (a, b) if a.terms else (b, a)
        if b.terms:
            raise ProblemError("a Mul of two values is not linear")
        shape = np.broadcast_shapes(a.shape, b.shape)
        return self._scaled(_spread(a, shape), _spread(b, shape).offset)

    def _scaled(self, tensor: Tensor, factors: Array) -> Tensor:
        self._as_block(tensor)
        return self._mapped(tensor, np.diag(factors), tensor.shape)

    def _relu_of(self, tensor: Tensor) -> Tensor:
        if not tensor.terms:
            return Tensor(tensor.shape, {}, np.maximum(tensor.offset, 0.0))
        return self._value(self._block(tensor, relu=True), tensor.shape)

    def _op_relu(self, names: list[str], _: dict[str, Any]) -> Tensor:
        return self._relu_of(self._tensor(names[0]))

    def _op_leakyrelu(self, names: list[str], attributes: dict[str, Any]) -> Tensor:
        """α·x + (1 − α)·relu(x), or relu(x) − α·relu(−x) where 1 − α is no float."""
        slope = float(np.float32(attributes.get("alpha", 0.01)))
        tensor = self._tensor(names[0])
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

    def _op_abs(self, names: list[str], _: dict[str, Any]) -> Tensor:
        """2·relu(x) − x."""
        tensor = self._tensor(names[0])
        size = math.prod(tensor.shape)
        self._as_block(tensor)
        twice = self._mapped(self._relu_of(tensor), np.eye(size) * 2.0, tensor.shape)
        return self._added(twice, tensor, -1.0)

    def _op_clip(self, names: list[str], attributes: dict[str, Any]) -> Tensor:
        """low + relu(x − low), then high − relu(high − that)."""
        value = self._tensor(names[0])
        low = self._clip_end(names, attributes, 1, "min")
        high = self._clip_end(names, attributes, 2, "max")
        if low is not None and high is not None and not (low.offset <= high.offset).all():
            raise ProblemError("a Clip has min > max")
        if low is not None:
            value = self._added(self._relu_of(self._added(value, low, -1.0)), low, 1.0)
        if high is not None:
            value = self._added(high, self._relu_of(self._added(high, value, -1.0)), -1.0)
        return value

    def _clip_end(
        self, names: list[str], attributes: dict[str, Any], place: int, word: str
    ) -> Tensor | None:
        if word in attributes:
            number = float(np.float32(attributes[word]))
            return Tensor((), {}, np.array([number]))
        if len(names) <= place or not names[place]:
            return None
        end = self._tensor(names[place])
        if end.terms or math.prod(end.shape) != 1:
            raise ProblemError("the ends of a Clip must be single constants", got=names[place])
        return end

    # ---- operators that only move entries

    def _moved(self, name: str, move: Callable[[NDArray[np.int64]], NDArray[np.int64]]) -> Tensor:
        tensor = self._tensor(name)
        places = np.arange(math.prod(tensor.shape)).reshape(tensor.shape)
        return _picked(tensor, move(places))

    def _op_identity(self, names: list[str], _: dict[str, Any]) -> Tensor:
        return self._tensor(names[0])

    _op_dropout = _op_identity

    def _op_flatten(self, names: list[str], attributes: dict[str, Any]) -> Tensor:
        axis = attributes.get("axis", 1)
        shape = self._tensor(names[0]).shape
        axis = axis + len(shape) if axis < 0 else axis
        both = (math.prod(shape[:axis]), math.prod(shape[axis:]))
        return self._moved(names[0], lambda places: places.reshape(both))

    def _op_reshape(self, names: list[str], attributes: dict[str, Any]) -> Tensor:
        target = [int(k) for k in self._ints(names, attributes, 1, "shape")]
        old = self._tensor(names[0]).shape
        if not attributes.get("allowzero", 0):
            target = [old[i] if k == 0 else k for i, k in enumerate(target)]
        return self._moved(names[0], lambda places: places.reshape(target))

    def _op_transpose(self, names: list[str], attributes: dict[str, Any]) -> Tensor:
        order = attributes.get("perm")
        return self._moved(names[0], lambda places: places.transpose(order))

    def _op_squeeze(self, names: list[str], attributes: dict[str, Any]) -> Tensor:
        axes = tuple(int(k) for k in self._ints(names, attributes, 1, "axes", optional=True))
        return self._moved(names[0], lambda places: places.squeeze(axes or None))

    def _op_unsqueeze(self, names: list[str], attributes: dict[str, Any]) -> Tensor:
        axes = tuple(int(k) for k in self._ints(names, attributes, 1, "axes"))
        return self._moved(names[0], lambda places: np.expand_dims(places, axes))

    def _op_slice(self, names: list[str], attributes: dict[str, Any]) -> Tensor:
        starts = self._ints(names, attributes, 1, "starts")
        ends = self._ints(names, attributes, 2, "ends")
        axes = self._ints(names, attributes, 3, "axes", optional=True)
        steps = self._ints(names, attributes, 4, "steps", optional=True)
        axes = axes if len(axes) else np.arange(len(starts))
        steps = steps if len(steps) else np.ones(len(starts), np.int64)
        if not len(starts) == len(ends) == len(axes) == len(steps):
            raise ProblemError("the lists of a Slice have different lengths")
        rank = len(self._tensor(names[0]).shape)
        parts = [slice(None)] * rank
        for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
            # for a negative step an end before the first entry means "through the first"
            stop = None if step < 0 and end < -(2**31) + 1 else int(end)
            parts[int(axis)] = slice(int(start), stop, int(step))
        return self._moved(names[0], lambda places: places[tuple(parts)])

    def _ints(
        self,
        names: list[str],
        attributes: dict[str, Any],
        place: int,
        word: str,
        optional: bool = False,
    ) -> NDArray[np.int64]:
        """Integers from an attribute (old operator sets) or from a constant input."""
        if word in attributes:
            return np.asarray(attributes[word], dtype=np.int64)
        if len(names) > place and names[place]:
            if names[place] not in self.integers:
                raise ProblemError("shapes and axes must be constants", got=repr(names[place]))
            return self.integers[names[place]].ravel()
        if not optional:
            raise ProblemError(f"a node lacks its {word}")
        return np.zeros(0, np.int64)

    def _op_concat(self, names: list[str], attributes: dict[str, Any]) -> Tensor:
        parts = [self._tensor(name) for name in names]
        starts = np.cumsum([0, *(math.prod(part.shape) for part in parts)])
        places = [
            start + np.arange(math.prod(part.shape)).reshape(part.shape)
            for start, part in zip(starts, parts, strict=False)
        ]
        order = np.concatenate(places, axis=attributes["axis"])
        stacked = Tensor((int(starts[-1]),), {}, np.concatenate([part.offset for part in parts]))
        for number in sorted({number for part in parts for number in part.terms}):
            width = next(p.terms[number].shape[1] for p in parts if number in p.terms)
            self._count(int(starts[-1]) * width)
            stacked.terms[number] = np.concatenate(
                [p.terms.get(number, np.zeros((math.prod(p.shape), width))) for p in parts]
            )
        return _picked(stacked, order)


def _picked(tensor: Tensor, places: NDArray[np.int64]) -> Tensor:
    """The tensor whose entries are those at `places`."""
    flat = places.ravel()
    terms = {number: weight[flat] for number, weight in tensor.terms.items()}
    return Tensor(places.shape, terms, tensor.offset[flat])


def _spread(tensor: Tensor, shape: Shape) -> Tensor:
    """The tensor broadcast to a shape."""
    if tensor.shape == shape:
        return tensor
    if math.prod(shape) > MAX_NUMBERS:
        raise ProblemError("a tensor is too large", got=shape)
    places = np.arange(math.prod(tensor.shape)).reshape(tensor.shape)
    return _picked(tensor, np.broadcast_to(places, shape))


def _is_selection(tensor: Tensor) -> bool:
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


def _sum(a: Tensor, b: Tensor, sign: float) -> Tensor | None:
    """a ± b, or None where a number would be rounded."""
    offset = _exact_sum(a.offset, sign * b.offset)
    terms = dict(a.terms)
    for number, weight in b.terms.items():
        total = _exact_sum(terms[number], sign * weight) if number in terms else sign * weight
        if total is None:
            return None
        terms[number] = total
    return None if offset is None else Tensor(a.shape, terms, offset)


def _exact_sum(a: Array, b: Array) -> Array | None:
    """a + b where no entry is rounded (the error term of Knuth's two-sum), else None."""
    total = a + b
    rest = total - a
    error = (a - (total - rest)) + (b - rest)
    return None if error.any() or not np.isfinite(total).all() else total
