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
    nodes: list[Any], constants: list[Any], inputs: tuple[int, ...], outputs: tuple[int, ...]
) -> Any:
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info("x", FLOAT, inputs)],
        [helper.make_tensor_value_info("y", FLOAT, outputs)],
        constants,
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)])
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
    assert "one input" in refused(path, b"")
    unknown = model([node("Sigmoid", ["x"], "y")], [], *shape)
    assert "Sigmoid" in refused(path, unknown.SerializeToString())
    missing = model([node("Relu", ["nothing"], "y")], [], *shape)
    assert "no node has made" in refused(path, missing.SerializeToString())
    product = model([node("Mul", ["x", "x"], "y")], [], *shape)
    assert "not linear" in refused(path, product.SerializeToString())
    nan = constant("w", np.full((2, 2), np.nan, np.float32))
    assert "finite" in refused(
        path, model([node("MatMul", ["x", "w"], "y")], [nan], *shape).SerializeToString()
    )
    wrong = constant("w", weights(3, 2))
    assert "fit" in refused(
        path, model([node("MatMul", ["x", "w"], "y")], [wrong], *shape).SerializeToString()
    )
    outside = constant("w", weights(2, 2))
    outside.data_location = onnx.TensorProto.EXTERNAL
    assert "another file" in refused(
        path, model([node("MatMul", ["x", "w"], "y")], [outside], *shape).SerializeToString()
    )
    huge = onnx.TensorProto(name="w", data_type=FLOAT, dims=[2**31, 2**31])
    assert "at most" in refused(
        path, model([node("MatMul", ["x", "w"], "y")], [huge], *shape).SerializeToString()
    )
    wide = model([node("Relu", ["x"], "y")], [], (1, 2**40), (1, 2**40))
    assert "fixed shape" in refused(path, wide.SerializeToString())


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
    monkeypatch.setattr(onnx_reader, "MAX_BYTES", 10)
    assert "too large" in refused(tmp_path / "net.onnx", b"x" * 11)
