"""ONNX networks as blocks: the same values as onnxruntime, no rounded weight, clear refusals."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphkeel.core.errors import KeelError, ProblemError
from graphkeel.verify.formats import onnx_reader
from graphkeel.verify.formats.onnx_reader import read_onnx
from graphkeel.verify.settings import FileLimits

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

helper = onnx.helper
FLOAT = onnx.TensorProto.FLOAT
RNG = np.random.default_rng(7)


def constant(name: str, values: Any) -> Any:
    return onnx.numpy_helper.from_array(np.asarray(values), name)


def weights(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(np.float32)


def model(
    nodes: list[Any],
    constants: list[Any],
    inputs: tuple[int, ...],
    outputs: tuple[int, ...],
    opset: int = 14,
) -> Any:
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info("x", FLOAT, inputs)],
        [helper.make_tensor_value_info("y", FLOAT, outputs)],
        constants,
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    made.ir_version = 8
    return made


def node(operator: str, inputs: list[str], output: str, **attributes: Any) -> Any:
    return helper.make_node(operator, inputs, [output], **attributes)


def ints(name: str, *values: int) -> Any:
    return constant(name, np.array(values, dtype=np.int64))


def gemm_relu_skip() -> Any:
    nodes = [
        node("Gemm", ["x", "w1", "b1"], "a", transB=1),
        node("Relu", ["a"], "r"),
        node("Gemm", ["r", "w2", "b2"], "c", alpha=0.5),
        node("Add", ["c", "x"], "y"),
    ]
    constants = [
        constant("w1", weights(5, 3)),
        constant("b1", weights(5)),
        constant("w2", weights(5, 3)),
        constant("b2", weights(3)),
    ]
    return model(nodes, constants, (1, 3), (1, 3))


def leaky_clip_abs() -> Any:
    nodes = [
        node("MatMul", ["x", "w"], "a"),
        node("Sub", ["a", "b"], "c"),
        node("LeakyRelu", ["c"], "d", alpha=0.1),
        node("Clip", ["d", "low", "high"], "e"),
        node("Abs", ["e"], "f"),
        node("Sub", ["f", "c"], "y"),
    ]
    constants = [
        constant("w", weights(3, 4)),
        constant("b", weights(4)),
        constant("low", np.float32(-0.3)),
        constant("high", np.float32(0.7)),
    ]
    return model(nodes, constants, (1, 3), (1, 4))


def pieces_moved() -> Any:
    nodes = [
        node("Slice", ["x", "zero", "two", "one"], "head"),
        node("Slice", ["x", "last", "far_back", "one", "back"], "tail"),
        node("Concat", ["tail", "head", "x"], "all", axis=1),
        node("Relu", ["all"], "r"),
        node("Reshape", ["r", "shape"], "square"),
        node("Transpose", ["square"], "turned", perm=[1, 0]),
        node("MatMul", ["turned", "w"], "p"),
        node("Flatten", ["p"], "flat", axis=0),
        node("Constant", [], "half", value=constant("", np.float32(0.5))),
        node("Mul", ["flat", "half"], "s"),
        node("Neg", ["s"], "n"),
        node("Identity", ["n"], "y"),
    ]
    constants = [
        ints("zero", 0),
        ints("one", 1),
        ints("two", 2),
        ints("last", -1),
        ints("far_back", -(2**62)),
        ints("back", -2),
        ints("shape", 2, -1),
        constant("w", weights(2, 3)),
    ]
    return model(nodes, constants, (1, 4), (1, 12))


@pytest.mark.parametrize("make", [gemm_relu_skip, leaky_clip_abs, pieces_moved])
def test_values_are_those_of_onnxruntime(make: Callable[[], Any], tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(make().SerializeToString())
    network = read_onnx(path)
    session = onnxruntime.InferenceSession(str(path))
    points = RNG.normal(size=(200, network.inputs)).astype(np.float32)
    shape = session.get_inputs()[0].shape
    wanted = [session.run(None, {"x": p.reshape(shape)})[0].ravel() for p in points]
    ours = network.outputs_at(points.astype(np.float64))
    assert np.abs(ours - np.stack(wanted)).max() < 1e-5
    exact = network.exact_outputs([Fraction(float(v)) for v in points[0]])
    assert np.allclose([float(v) for v in exact], ours[0], rtol=0, atol=1e-12)


def test_sums_that_would_round_become_blocks(tmp_path: Path) -> None:
    """(1·x + 2⁻⁶⁰) + 1: the sum of both constants is no float, so nothing may be merged."""
    nodes = [node("Add", ["x", "tiny"], "a"), node("Add", ["a", "one"], "y")]
    constants = [constant("tiny", np.float32([2.0**-60])), constant("one", np.float32([1.0]))]
    path = tmp_path / "net.onnx"
    path.write_bytes(model(nodes, constants, (1, 1), (1, 1)).SerializeToString())
    assert read_onnx(path).exact_outputs([Fraction(0)]) == [1 + Fraction(1, 2**60)]


def test_leaky_slope_without_a_float_complement(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    made = model([node("LeakyRelu", ["x"], "y", alpha=1e-30)], [], (1, 1), (1, 1))
    path.write_bytes(made.SerializeToString())
    network = read_onnx(path)
    slope = Fraction(float(np.float32(1e-30)))
    assert network.exact_outputs([Fraction(-3)]) == [-3 * slope]
    assert network.exact_outputs([Fraction(3)]) == [3]


def refused(path: Path, raw: bytes) -> str:
    path.write_bytes(raw)
    with pytest.raises(ProblemError) as caught:
        read_onnx(path)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_refusals_are_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    shape = ((1, 2), (1, 2))
    assert "not an ONNX model" in refused(path, b"\x0a\xff\xff\xff\xff\xff\xff")
    assert "one operator set" in refused(path, b"")
    nothing = model([], [], *shape)
    del nothing.graph.input[:]
    assert "checker of ONNX" in refused(path, nothing.SerializeToString())
    unknown = model([node("Sigmoid", ["x"], "y")], [], *shape)
    assert "Sigmoid" in refused(path, unknown.SerializeToString())
    missing = model([node("Relu", ["nothing"], "y")], [], *shape)
    assert "checker of ONNX" in refused(path, missing.SerializeToString())
    product = model([node("MatMul", ["x", "x"], "y")], [], *((2, 2),) * 2)
    assert "two values" in refused(path, product.SerializeToString())
    nan = constant("w", np.full((2, 2), np.nan, np.float32))
    assert "finite" in refused(
        path, model([node("MatMul", ["x", "w"], "y")], [nan], *shape).SerializeToString()
    )
    wrong = constant("w", weights(3, 2))
    assert "checker of ONNX" in refused(
        path, model([node("MatMul", ["x", "w"], "y")], [wrong], *shape).SerializeToString()
    )
    outside = constant("w", weights(2, 2))
    outside.data_location = onnx.TensorProto.EXTERNAL
    assert "another file" in refused(
        path, model([node("MatMul", ["x", "w"], "y")], [outside], *shape).SerializeToString()
    )
    huge = onnx.TensorProto(name="w", data_type=FLOAT, dims=[2**31, 2**31])
    assert "checker of ONNX" in refused(
        path, model([node("MatMul", ["x", "w"], "y")], [huge], *shape).SerializeToString()
    )
    wide = model([node("Relu", ["x"], "y")], [], (1, 2**40), (1, 2**40))
    assert "fixed shape" in refused(path, wide.SerializeToString())


# ---- valid or nearly so, and not one network that we read


def one(operator: str, *inputs: str, **attributes: Any) -> list[Any]:
    return [node(operator, ["x", *inputs], "y", **attributes)]


def of(nodes: list[Any], *constants: Any, opset: int = 14, sizes: tuple[int, ...] = (1, 2)) -> Any:
    return model(nodes, list(constants), sizes, sizes, opset)


def broadcast_by_attributes() -> Any:
    """Add of operator set 6 along axis 1: today's Add would take the last axis."""
    nodes = [
        node("Reshape", ["x", "square"], "r"),
        node("Add", ["r", "b"], "a", axis=1, broadcast=1),
        node("Flatten", ["a"], "y"),
    ]
    constants = [ints("square", 1, 2, 2), constant("b", np.float32([0.0, 10.0]))]
    made = model(nodes, constants, (1, 4), (1, 4), opset=6)
    made.graph.input.append(helper.make_tensor_value_info("b", FLOAT, [2]))
    made.graph.input.append(helper.make_tensor_value_info("square", onnx.TensorProto.INT64, [3]))
    onnx.checker.check_model(made, full_check=True)
    return made


def in_training() -> Any:
    half, on = constant("half", np.float32(0.5)), constant("on", np.array(True))
    return of(one("Dropout", "half", "on"), half, on)


def maybe_in_training() -> Any:
    """The mode is an input that a caller may set; its default is off."""
    made = of(one("Dropout", "half", "on"), constant("half", np.float32(0.5)))
    made.graph.input.append(helper.make_tensor_value_info("on", onnx.TensorProto.BOOL, []))
    return made


def made_twice() -> Any:
    return of([node("Relu", ["x"], "y"), node("Neg", ["x"], "y")])


def constant_twice() -> Any:
    return of(one("Add", "b"), *(constant("b", np.float32([k, k])) for k in range(2)))


def shadows_a_constant() -> Any:
    nodes = [node("Relu", ["x"], "b"), node("Add", ["x", "b"], "y")]
    return of(nodes, constant("b", np.float32([1.0, 1.0])))


def with_function() -> Any:
    """A function of the file that is called like an operator."""
    made = of(one("Relu"))
    body = [helper.make_node("Neg", ["a"], ["b"])]
    imports = [helper.make_opsetid("", 14)]
    made.functions.append(helper.make_function("", "Relu", ["a"], ["b"], body, imports))
    return made


def two_operator_sets() -> Any:
    made = of(one("Relu"))
    made.opset_import.append(helper.make_opsetid("ai.onnx", 6))
    return made


def two_slopes() -> Any:
    made = of(one("LeakyRelu", alpha=0.5))
    made.graph.node[0].attribute.append(helper.make_attribute("alpha", 0.25))
    return made


def integer_input() -> Any:
    made = of(one("Relu"))
    for value in (*made.graph.input, *made.graph.output):
        value.type.tensor_type.elem_type = onnx.TensorProto.INT32
    return made


def empty_batch() -> Any:
    return model(one("Relu"), [], (0, 2), (0, 2))


SCALE = constant("w", np.eye(2, dtype=np.float32))
REFUSED = {
    "broadcasting by attributes": (broadcast_by_attributes, "from 7 to"),
    "an old operator set": (lambda: of(one("Relu"), opset=6), "from 7 to"),
    "an operator set to come": (lambda: of(one("Relu"), opset=999), "from 7 to"),
    "two operator sets": (two_operator_sets, "one operator set"),
    "another domain": (lambda: of(one("Relu", domain="evil")), "evil.Relu"),
    "another spelling": (lambda: of(one("relu")), "not supported"),
    "a loop": (lambda: of(one("Add", "y")), "checker of ONNX"),
    "an attribute of another set": (lambda: of(one("Add", "w", axis=1), SCALE), "not read"),
    "an attribute twice": (two_slopes, "not read"),
    "a slope that is none": (lambda: of(one("LeakyRelu", alpha=float("nan"))), "not finite"),
    "an infinite factor": (lambda: of(one("Gemm", "w", alpha=float("inf")), SCALE), "not finite"),
    "training": (in_training, "training mode"),
    "maybe training": (maybe_in_training, "one input"),
    "made twice": (made_twice, "made twice"),
    "a constant twice": (constant_twice, "made twice"),
    "a constant shadowed": (shadows_a_constant, "made twice"),
    "a function": (with_function, "functions"),
    "integers": (integer_input, ""),
    "an empty batch": (empty_batch, "fixed shape"),
    "a bias beyond a Gemm": (
        lambda: of(one("Gemm", "w", "b"), SCALE, constant("b", weights(3, 2))),
        "",
    ),
    "an axis beyond": (lambda: of(one("Flatten", axis=3)), ""),
    "a negative axis, early": (lambda: of(one("Flatten", axis=-1), opset=9), ""),
    "a negative permutation": (lambda: of(one("Transpose", perm=[0, -1])), ""),
    "a size of -2": (lambda: of(one("Reshape", "s"), ints("s", 1, -2)), ""),
    "an axis sliced twice": (
        lambda: of(
            one("Slice", "zero", "two", "axes"),
            ints("zero", 0, 0),
            ints("two", 2, 2),
            ints("axes", 1, 1),
        ),
        "",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_read_is_refused(name: str, tmp_path: Path) -> None:
    make, word = REFUSED[name]
    assert word in refused(tmp_path / "net.onnx", make().SerializeToString())


def test_a_dropout_that_is_off_is_read(tmp_path: Path) -> None:
    off = [constant("half", np.float32(0.5)), constant("on", np.array(False))]
    path = tmp_path / "net.onnx"
    path.write_bytes(of(one("Dropout", "half", "on"), *off).SerializeToString())
    assert read_onnx(path).exact_outputs([Fraction(1), Fraction(-2)]) == [1, -2]


def test_values_in_another_file_are_refused_unread(tmp_path: Path) -> None:
    """Also those of a Constant, and where the location of the data does not say so."""
    outside = constant("", weights(1, 2))
    outside.external_data.add(key="location", value="../secret")
    made = of([node("Constant", [], "b", value=outside), node("Add", ["x", "b"], "y")])
    assert "another file" in refused(tmp_path / "net.onnx", made.SerializeToString())


def test_truncated_files_are_refused_or_read(tmp_path: Path) -> None:
    raw = gemm_relu_skip().SerializeToString()
    path = tmp_path / "net.onnx"
    for end in range(0, len(raw), 7):
        path.write_bytes(raw[:end])
        with pytest.raises(KeelError):
            read_onnx(path)


def test_large_files_and_folders_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ProblemError, match="regular file"):
        read_onnx(tmp_path)
    monkeypatch.setattr(onnx_reader, "LIMITS", FileLimits(onnx_bytes=10))
    assert "too large" in refused(tmp_path / "net.onnx", b"x" * 11)
