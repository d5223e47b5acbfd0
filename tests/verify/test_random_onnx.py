"""Random ONNX graphs: the values of onnxruntime, verdicts that sampling does not contradict, and
every proof of `unsat` accepted."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from random_onnx import OPSETS, RandomGraph  # noqa: E402

from graphkeel.certificate.encoding import certificate_bytes  # noqa: E402
from graphkeel.core.errors import ProblemError  # noqa: E402
from graphkeel.property_checker import check_bytes  # noqa: E402
from graphkeel.verify.formats.onnx_model import OPERATORS  # noqa: E402
from graphkeel.verify.formats.onnx_reader import read_onnx  # noqa: E402
from graphkeel.verify.formats.vnnlib_reader import property_from  # noqa: E402
from graphkeel.verify.property.decide import decide  # noqa: E402
from graphkeel.verify.property.network import BlockNetwork  # noqa: E402
from graphkeel.verify.result import Budget  # noqa: E402
from tally import TALLY  # noqa: E402


class Session:
    """A graph in onnxruntime, one input at a time."""

    def __init__(self, raw: bytes) -> None:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        # operator by operator: the optimiser makes a Relu and a Clip to at most −1 a Clip from 0 to
        # −1 and then refuses it
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        self.session = onnxruntime.InferenceSession(raw, options)

    def __call__(self, points: Any) -> Any:
        run = self.session.run
        return np.stack([run(None, {"x": point[None]})[0].ravel() for point in points])


def looked_at(seed: int, path: Path) -> Counter[str]:
    """The result of one graph: its operators, its verdict."""
    opset = OPSETS[seed % len(OPSETS)]
    graph = RandomGraph(seed, opset)
    raw = graph.model().SerializeToString()
    path.write_bytes(raw)
    network, session = read_onnx(path), Session(raw)
    rng = np.random.default_rng(seed)
    points = (rng.integers(-64, 65, (40, graph.inputs)) / 32).astype(np.float32)
    values = session(points)
    check_values(network, points, values)
    verdict = check_verdict(network, session, values, random.Random(seed), rng)
    return Counter({node.op_type for node in graph.nodes} | {verdict, "graphs"})


def check_values(network: BlockNetwork, points: Any, values: Any) -> None:
    """Exact values against those in float32."""
    for point, value in zip(points, values, strict=True):
        exact = network.exact_outputs([Fraction(float(x)) for x in point])
        ours = np.array([float(y) for y in exact])
        assert ours.shape == value.shape
        assert np.abs(ours - value).max() <= 1e-4 * (1.0 + np.abs(ours).max())


class Ticking(Budget):
    """A clock that no busy machine can change."""

    ticks = itertools.count()

    def now(self) -> float:
        return float(next(self.ticks))


def check_verdict(
    network: BlockNetwork, session: Session, values: Any, rng: random.Random, draws: Any
) -> str:
    """A threshold near the largest value seen; the verdict against sampling, its proof checked."""
    n, place = network.inputs, rng.randrange(network.outputs)
    offset = rng.choice([0.02, 0.5, -0.02, 0.0])
    top = round(float(values[:, place].max()) + offset, 6)
    names = [f"X_{i}" for i in range(n)] + [f"Y_{j}" for j in range(network.outputs)]
    declared = "".join(f"(declare-const {name} Real)" for name in names)
    box = "".join(f"(assert (>= X_{i} -2))(assert (<= X_{i} 2))" for i in range(n))
    prop = property_from(f"{declared}{box}(assert (>= Y_{place} {top:.6f}))")
    answer = decide(network, prop, Ticking(20_000.0, threads=1))
    tolerance = 1e-4 * (1.0 + abs(top))
    if answer.verdict == "unsat":
        corners = np.stack(np.meshgrid(*[[-2.0, 0.0, 2.0]] * n), axis=-1).reshape(-1, n)
        tried = np.concatenate([draws.uniform(-2.0, 2.0, (200, n)), corners]).astype(np.float32)
        assert session(tried)[:, place].max() <= top + tolerance
        result = check_bytes(certificate_bytes(answer.proof or {}))
        assert result.accepted, result.reason
    if answer.verdict == "sat":
        there = session(np.array([answer.inputs], np.float32))[0, place]
        assert there >= top - tolerance
    return answer.verdict


def test_a_few_graphs(tmp_path: Path) -> None:
    for seed in range(3 * len(OPSETS)):
        looked_at(seed, tmp_path / "net.onnx")


@pytest.mark.slow
def test_a_thousand_graphs(tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for seed in range(1000):
        seen += looked_at(seed, tmp_path / "net.onnx")
    assert seen["graphs"] == 1000 and set(seen) >= set(OPERATORS)
    assert seen["unsat"] > 200 and seen["sat"] > 200
    for verdict in ("sat", "unsat", "unknown"):
        TALLY["random ONNX graphs", verdict] += seen[verdict]


@pytest.mark.parametrize("opset", range(1, 7))
def test_old_operator_sets_are_refused(opset: int, tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    for seed in range(20):
        path.write_bytes(RandomGraph(seed, opset).model().SerializeToString())
        with pytest.raises(ProblemError, match="operator sets from 7"):
            read_onnx(path)
