"""Random ONNX graphs of all operators that are read, in the forms that each operator set has.

A graph is a chain: each operator works on the last tensor, some on an earlier one or on a constant,
too. Shapes are worked out here with numpy, independently of the reader."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import onnx
from onnx import helper

MOST = 24  # entries of a tensor
OPSETS = tuple(range(7, 27))  # as far as onnxruntime goes
FLOAT = onnx.TensorProto.FLOAT
Shape = tuple[int, ...]


class RandomGraph:
    """A graph in the making.

    Writes: constants, nodes, the shapes of tensors by name, and the last tensor's name.
    """

    def __init__(self, seed: int, opset: int) -> None:
        self.rng = random.Random(seed)
        self.opset = opset
        self.constants: list[Any] = []
        self.nodes: list[Any] = []
        self.shapes: dict[str, Shape] = {"x": (1, self.rng.randint(1, 4))}
        self.last = "x"
        for _ in range(self.rng.randint(2, 9)):
            self.rng.choice(STEPS)(self)
        if self.last == "x":
            relu(self)

    @property
    def shape(self) -> Shape:
        return self.shapes[self.last]

    @property
    def inputs(self) -> int:
        return math.prod(self.shapes["x"])

    def floats(self, *shape: int) -> Any:
        values = [self.rng.randint(-8, 8) / 4 for _ in range(math.prod(shape))]
        return np.array(values, np.float32).reshape(shape)

    def constant(self, values: Any) -> str:
        """The name of a constant: an initialiser, or now and then the output of a node."""
        name = f"c{len(self.shapes)}_{len(self.constants)}_{len(self.nodes)}"
        tensor = onnx.numpy_helper.from_array(np.asarray(values), name)
        is_node = tensor.data_type == FLOAT or self.opset >= 9  # before, a Constant is of floats
        if is_node and self.rng.random() < 0.2:
            self.nodes.append(helper.make_node("Constant", [], [name], value=tensor))
        else:
            self.constants.append(tensor)
        return name

    def ints(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def axis(self, rank: int) -> int:
        """Of a tensor; a negative one where the operator set has it."""
        return self.rng.randrange(0 if self.opset < 11 else -rank, rank)

    def put(self, operator: str, inputs: list[str], shape: Shape, **attributes: Any) -> None:
        """A node, unless its output would be empty or large."""
        if not 0 < math.prod(shape) <= MOST or len(shape) > 4:
            return
        name = f"v{len(self.shapes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        self.shapes[name] = tuple(shape)
        self.last = name

    def model(self) -> Any:
        """The file; its weights are constants of the graph, never inputs."""
        ends = [
            helper.make_tensor_value_info(name, FLOAT, self.shapes[name])
            for name in ("x", self.last)
        ]
        graph = helper.make_graph(self.nodes, "random", ends[:1], ends[1:], self.constants)
        imports = [helper.make_opsetid("", self.opset)]
        return helper.make_model(
            graph, opset_imports=imports, ir_version=8 if self.opset < 19 else 10
        )


def gemm(g: RandomGraph) -> None:
    if len(g.shape) != 2:
        return
    rows, width = g.shape
    height, turned = g.rng.randint(1, 4), g.rng.randint(0, 1)
    weight = g.floats(height, width) if turned else g.floats(width, height)
    inputs = [g.last, g.constant(weight)]
    if g.opset < 11 or g.rng.random() < 0.8:
        bias = g.rng.choice([(height,), (1, height), (rows, height), (1,), ()])
        inputs.append(g.constant(g.floats(*bias)))
    attributes: dict[str, Any] = {"transB": turned}
    if g.rng.random() < 0.3:
        attributes["alpha"] = g.rng.choice([0.5, 2.0, -1.0, 0.3])
    if g.rng.random() < 0.1:
        attributes["beta"] = 0.0
    g.put("Gemm", inputs, (rows, height), **attributes)


def matmul(g: RandomGraph) -> None:
    height = g.rng.randint(1, 4)
    if len(g.shape) == 2 and g.rng.random() < 0.4:
        weight = g.constant(g.floats(height, g.shape[0]))
        g.put("MatMul", [weight, g.last], (height, g.shape[1]))
    elif g.shape:
        weight = g.constant(g.floats(g.shape[-1], height))
        g.put("MatMul", [g.last, weight], (*g.shape[:-1], height))


def arithmetic(g: RandomGraph) -> None:
    """With a constant that may be broadcast, or that the value is broadcast to."""
    last = g.shape[-1:]
    other = g.rng.choice([g.shape, (1,), last, (), (2, *g.shape), (*g.shape[:-1], 1)])
    pair = [g.last, g.constant(g.floats(*other))]
    g.rng.shuffle(pair)
    shape = np.broadcast_shapes(g.shape, other)
    g.put(g.rng.choice(["Add", "Sub", "Mul"]), pair, shape)


def skip(g: RandomGraph) -> None:
    """A sum or difference with an earlier tensor."""
    other = g.rng.choice(list(g.shapes))
    try:
        shape = np.broadcast_shapes(g.shape, g.shapes[other])
    except ValueError:
        return
    pair = [g.last, other]
    g.rng.shuffle(pair)
    g.put(g.rng.choice(["Add", "Sub"]), pair, shape)


def relu(g: RandomGraph) -> None:
    g.put("Relu", [g.last], g.shape)


def one_by_one(g: RandomGraph) -> None:
    g.put(g.rng.choice(["Neg", "Abs", "Identity"]), [g.last], g.shape)


def leaky(g: RandomGraph) -> None:
    slope = g.rng.choice([0.01, 0.1, 0.25, 1.5, -0.5, None])
    g.put("LeakyRelu", [g.last], g.shape, **({} if slope is None else {"alpha": slope}))


def clip(g: RandomGraph) -> None:
    low, high = sorted(g.rng.randint(-4, 4) / 2 for _ in range(2))
    has_low, has_high = g.rng.choice([(True, True), (True, False), (False, True), (False, False)])
    if g.opset < 11:
        given = {"min": low} if has_low else {}
        g.put("Clip", [g.last], g.shape, **given, **({"max": high} if has_high else {}))
        return
    ends = [g.constant(np.float32(low)) if has_low else ""]
    ends += [g.constant(np.float32(high))] if has_high else []
    g.put("Clip", [g.last, *ends] if any(ends) else [g.last], g.shape)


def dropout(g: RandomGraph) -> None:
    if g.opset < 12:
        g.put("Dropout", [g.last], g.shape, ratio=0.5)
        return
    inputs = [g.last, g.constant(np.float32(0.5)), g.constant(np.array(False))]
    g.put("Dropout", inputs[: g.rng.randint(1, 3)], g.shape)


def reshape(g: RandomGraph) -> None:
    size = math.prod(g.shape)
    targets = [(-1,), (1, -1), (size, 1), (1, 1, -1), (size,)]
    targets += [(0, -1)] if g.shape else []
    targets += [(2, -1), (-1, 2)] if size % 2 == 0 else []
    target = g.rng.choice(targets)
    known = [g.shape[i] if k == 0 else k for i, k in enumerate(target)]
    zero = {"allowzero": 0} if g.opset >= 14 and g.rng.random() < 0.3 else {}
    g.put("Reshape", [g.last, g.ints(*target)], np.zeros(g.shape).reshape(known).shape, **zero)


def transpose(g: RandomGraph) -> None:
    order = list(range(len(g.shape)))
    g.rng.shuffle(order)
    if not order or g.rng.random() < 0.3:
        g.put("Transpose", [g.last], g.shape[::-1])
    else:
        g.put("Transpose", [g.last], tuple(g.shape[i] for i in order), perm=order)


def flatten(g: RandomGraph) -> None:
    rank = len(g.shape)
    axis = g.rng.randint(0 if g.opset < 11 else -rank, rank)
    at = axis + rank if axis < 0 else axis
    shape = (math.prod(g.shape[:at]), math.prod(g.shape[at:]))
    g.put("Flatten", [g.last], shape, axis=axis)


def concat(g: RandomGraph) -> None:
    if not g.shape:
        return
    axis = g.axis(len(g.shape))
    others = [name for name, shape in g.shapes.items() if shape == g.shape]
    parts = [g.last, g.rng.choice([*others, g.constant(g.floats(*g.shape))])]
    g.rng.shuffle(parts)
    shape = np.concatenate([np.zeros(g.shape)] * 2, axis).shape
    g.put("Concat", parts, shape, axis=axis)


def slices(g: RandomGraph) -> None:
    """Of one axis or two; the numbers of entries are counted by the rule of the operator."""
    rank = len(g.shape)
    if not rank:
        return
    axes = g.rng.sample(range(rank), g.rng.randint(1, min(2, rank)))
    far = [2**31 - 1, -(2**31), 2**62, -(2**62)]
    starts = [g.rng.choice([g.rng.randint(-9, 9), g.rng.choice(far)]) for _ in axes]
    ends = [g.rng.choice([g.rng.randint(-9, 9), g.rng.choice(far)]) for _ in axes]
    steps = [g.rng.choice([1, 1, 2] if g.opset < 11 else [1, -1, 2, -2]) for _ in axes]
    steps = steps if g.opset >= 10 else [1] * len(axes)
    shape = list(g.shape)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        shape[axis] = taken(start, end, step, g.shape[axis])
    if g.opset < 10:
        g.put("Slice", [g.last], tuple(shape), starts=starts, ends=ends, axes=axes)
        return
    named = [k - rank if g.opset >= 11 and g.rng.random() < 0.5 else k for k in axes]
    lists = [g.ints(*values) for values in (starts, ends, named, steps)]
    g.put("Slice", [g.last, *lists], tuple(shape))


def taken(start: int, end: int, step: int, size: int) -> int:
    """How many entries a slice takes, counted one by one."""
    start, end = (k + size if k < 0 else k for k in (start, end))
    place = min(max(start, 0), size if step > 0 else size - 1)
    count = 0
    while 0 <= place < size and (place < end if step > 0 else place > end):
        count, place = count + 1, place + step
    return count


def unsqueeze(g: RandomGraph) -> None:
    axis = g.axis(len(g.shape) + 1)
    shape = np.expand_dims(np.zeros(g.shape), axis).shape
    if g.opset < 13:
        g.put("Unsqueeze", [g.last], shape, axes=[axis])
    else:
        g.put("Unsqueeze", [g.last, g.ints(axis)], shape)


def squeeze(g: RandomGraph) -> None:
    single = [i for i, size in enumerate(g.shape) if size == 1]
    if len(g.shape) < 2 or not single:
        return
    axis = g.rng.choice(single)
    named = axis - len(g.shape) if g.opset >= 11 and g.rng.random() < 0.5 else axis
    if g.rng.random() < 0.2:
        g.put("Squeeze", [g.last], np.zeros(g.shape).squeeze().shape)
    elif g.opset < 13:
        g.put("Squeeze", [g.last], np.zeros(g.shape).squeeze(axis).shape, axes=[named])
    else:
        g.put("Squeeze", [g.last, g.ints(named)], np.zeros(g.shape).squeeze(axis).shape)


STEPS = (
    *(gemm, gemm, matmul, arithmetic, arithmetic, skip, relu, relu, one_by_one, one_by_one, leaky),
    *(clip, dropout, reshape, transpose, flatten, concat, slices, unsqueeze, squeeze),
)
