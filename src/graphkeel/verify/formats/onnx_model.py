"""ONNX files that mean one network: whatever the reader does not read is refused here.

The format's own checker goes first: types, shapes, arities, attributes. It lets through what is
valid and yet not read, or read in several ways: definitions of operators that we have not read,
values in other files, functions, a tensor that two nodes make. An operator's definition has the
number of the operator set that introduced it; a later one may mean something else."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from graphkeel.core.errors import ProblemError
from graphkeel.verify.formats.reading import first_line

# Of each operator: the definitions that are read, and the attributes that are read in them.
# Before 7, Add, Sub, Mul and Gemm broadcast by attributes, and Dropout may be in training mode.
_TYPES = (21, 23, 24, 25)  # definitions that only admit more types
OPERATORS: dict[str, tuple[tuple[int, ...], tuple[str, ...]]] = {
    "Abs": ((6, 13), ()),
    "Add": ((7, 13, 14), ()),
    "Cast": ((6, 9, 13, *_TYPES), ("to",)),
    "Clip": ((6, 11, 12, 13), ("min", "max")),
    "Concat": ((4, 11, 13), ("axis",)),
    "Constant": (
        (1, 9, 11, 12, 13, 19, *_TYPES),
        ("value", "value_float", "value_floats", "value_int", "value_ints"),
    ),
    "Div": ((7, 13, 14), ()),
    "Dropout": ((7, 10, 12, 13, 22), ("ratio", "seed")),
    "Flatten": ((1, 9, 11, 13, *_TYPES), ("axis",)),
    "Gather": ((1, 11, 13), ("axis",)),
    "Gemm": ((7, 9, 11, 13), ("alpha", "beta", "transA", "transB")),
    "Identity": ((1, 13, 14, 16, 19, *_TYPES), ()),
    "LeakyRelu": ((6, 16), ("alpha",)),
    "MatMul": ((1, 9, 13), ()),
    "Mul": ((7, 13, 14), ()),
    "Neg": ((6, 13), ()),
    "Pow": ((7, 12, 13, 15), ()),
    "ReduceSum": ((1, 11, 13), ("axes", "keepdims", "noop_with_empty_axes")),
    "Relu": ((6, 13, 14), ()),
    "Reshape": ((5, 13, 14, 19, *_TYPES), ("allowzero",)),
    "Slice": ((1, 10, 11, 13), ("starts", "ends", "axes")),
    "Squeeze": ((1, 11, 13, *_TYPES), ("axes",)),
    "Sub": ((7, 13, 14), ()),
    "Transpose": ((1, 13, *_TYPES), ("perm",)),
    "Unsqueeze": ((1, 11, 13, *_TYPES), ("axes",)),
}
_OUR_DOMAIN = ("", "ai.onnx")  # two names of one domain


class Node(NamedTuple):
    """A node whose definition is read."""

    operator: str  # one of `OPERATORS`
    version: int  # of its definition
    inputs: list[str]  # "" for an optional one that is left out
    output: str  # the first one
    attributes: dict[str, Any]


def checked_graph(onnx: Any, raw: bytes, most_nodes: int) -> tuple[Any, list[Node]]:
    """The graph of a file and its nodes in their order."""
    try:
        model = onnx.load_model_from_string(raw)
    except Exception as error:  # protobuf's own errors share no base class
        raise ProblemError("the file is not an ONNX model", got=first_line(error)) from None
    graph = model.graph
    if len(graph.node) > most_nodes:
        raise ProblemError(f"a network has at most {most_nodes} nodes", got=len(graph.node))
    _refuse_other_parts(model)
    opset = _opset(onnx, model)
    for node in graph.node:
        _check_operator(onnx, node, opset)
    _refuse_other_files(onnx, graph)
    _refuse_second_makers(graph)
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception as error:  # of the checker, of shape inference, of protobuf
        raise ProblemError(
            "the file is not valid ONNX, says the checker of ONNX", got=first_line(error)
        ) from None
    return graph, [_node(onnx, node, opset) for node in graph.node]


def _refuse_other_parts(model: Any) -> None:
    parts = {
        "functions of its own": model.functions,
        "parts for training": model.training_info,
        "sparse constants": model.graph.sparse_initializer,
        "remarks on quantization": model.graph.quantization_annotation,
    }
    for name, found in parts.items():
        if len(found):
            raise ProblemError(f"a network with {name} is not supported", got=len(found))


def _opset(onnx: Any, model: Any, oldest: int = 7) -> int:
    """The operator set of the file, from `oldest` to the newest one that the package knows."""
    found = [entry.version for entry in model.opset_import if entry.domain in _OUR_DOMAIN]
    if len(found) != 1:
        raise ProblemError("a network must import one operator set of ONNX", got=len(found))
    newest = onnx.defs.onnx_opset_version()
    if not oldest <= found[0] <= newest:
        raise ProblemError(
            f"operator sets from {oldest} to {newest} are read",
            got=found[0],
            fix="Export the network again, or convert it with onnx.version_converter.",
        )
    return int(found[0])


def _check_operator(onnx: Any, node: Any, opset: int) -> None:
    if node.op_type not in OPERATORS or node.domain not in _OUR_DOMAIN or node.overload:
        shown = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
        name = next(iter(node.output), node.name)
        raise ProblemError(
            f"node {name!r}: its operator is not supported",
            got=shown,
            fix=f"Known: {', '.join(OPERATORS)}.",
        )
    version = _version(onnx, node, opset)
    versions, attributes = OPERATORS[node.op_type]
    if version not in versions:
        raise ProblemError(
            f"the definition of {node.op_type} in operator set {opset} is not read", got=version
        )
    names = [attribute.name for attribute in node.attribute]
    others = [name for name in names if name not in attributes or names.count(name) > 1]
    if others or any(attribute.ref_attr_name for attribute in node.attribute):
        raise ProblemError(f"an attribute of {node.op_type} is not read", got=others or names)


def _version(onnx: Any, node: Any, opset: int) -> int:
    try:
        schema = onnx.defs.get_schema(node.op_type, max_inclusive_version=opset)
    except onnx.defs.SchemaError:
        raise ProblemError(f"operator set {opset} has no such operator", got=node.op_type) from None
    return int(schema.since_version)


def _refuse_other_files(onnx: Any, graph: Any) -> None:
    for tensor in _tensors(graph):
        if tensor.data_location == onnx.TensorProto.EXTERNAL or len(tensor.external_data):
            raise ProblemError(
                "the weights are in another file", fix="Save the model with its weights inside."
            )


def _tensors(graph: Any) -> Iterator[Any]:
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            yield attribute.t
            yield from attribute.tensors


def _refuse_second_makers(graph: Any) -> None:
    """Every tensor has one origin; an old file also lists its constants among the inputs."""
    constants = [tensor.name for tensor in graph.initializer]
    inputs = [value.name for value in graph.input]
    made = [name for node in graph.node for name in node.output if name]
    free = [name for name in inputs if name not in set(constants)]
    twice = [name for name, count in Counter(constants + free + made).items() if count > 1]
    twice += [name for name, count in Counter(inputs).items() if count > 1]
    if twice:
        raise ProblemError("a tensor is made twice", got=repr(twice[0]))


def _node(onnx: Any, node: Any, opset: int) -> Node:
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    floats = [value for value in attributes.values() if isinstance(value, float)]
    if not all(map(math.isfinite, floats)):
        raise ProblemError(f"an attribute of {node.op_type} is not finite", got=floats)
    version = _version(onnx, node, opset)
    return Node(node.op_type, version, list(node.input), node.output[0], attributes)
