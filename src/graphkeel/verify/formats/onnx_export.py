"""The closed loop as an ONNX network in float64, built of MatMul, Add, Relu and Concat only."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphkeel.core.optional import import_optional
from graphkeel.verify.problem import Array, Network, Problem


def loop_model(problem: Problem) -> Any:
    """y (1, n) -> out (1, 2 + n) = [V(y), V(F(y)) − ρV(y), F(y)]."""
    graph = _Graph(import_optional("onnx", extra="export"))
    image = graph.network("F", problem.closed_loop, "y")
    here = graph.network("V_here", problem.lyapunov, "y")
    after = graph.network("V_after", problem.lyapunov, image)
    scaled = graph.matmul("rho", here, np.array([[-problem.rho]]))
    difference = graph.node("Add", [after, scaled], "difference")
    graph.node("Concat", [here, difference, image], "out", axis=1)
    return graph.model(problem.n, problem.n + 2)


def positivity_model(problem: Problem) -> Any:
    """y (1, n) -> out (1, 2n) = [V(y) − c(y_0 − Y_0), V(y) + c(y_0 − Y_0), V(y) − c(y_1 − Y_1),
    …]."""
    graph = _Graph(import_optional("onnx", extra="export"))
    here = graph.network("V_here", problem.lyapunov, "y")
    signs = np.kron(np.eye(problem.n), np.array([[-1.0], [1.0]])) * problem.positivity
    offsets = graph.constant("offsets", -signs @ problem.equilibrium)
    linear = graph.node("Add", [graph.matmul("side", "y", signs), offsets], "sides")
    spread = graph.matmul("spread", here, np.ones((2 * problem.n, 1)))
    graph.node("Add", [spread, linear], "out")
    return graph.model(problem.n, 2 * problem.n)


class _Graph:
    """Collects nodes and constants of an ONNX graph."""

    def __init__(self, onnx: Any) -> None:
        self._onnx = onnx
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def node(self, operator: str, inputs: list[str], output: str, **attributes: int) -> str:
        self._nodes.append(
            self._onnx.helper.make_node(operator, inputs, [output], name=output, **attributes)
        )
        return output

    def constant(self, name: str, values: Array) -> str:
        self._constants.append(
            self._onnx.numpy_helper.from_array(np.ascontiguousarray(values), name)
        )
        return name

    def matmul(self, name: str, value: str, weight: Array) -> str:
        """value @ weightᵀ."""
        return self.node(
            "MatMul", [value, self.constant(f"{name}_weight", weight.T)], f"{name}_product"
        )

    def network(self, name: str, network: Network, value: str) -> str:
        for k, layer in enumerate(network.layers):
            here = f"{name}_{k}"
            bias = self.constant(f"{here}_bias", layer.bias)
            value = self.node("Add", [self.matmul(here, value, layer.weight), bias], f"{here}_sum")
            if k + 1 < len(network.layers):
                value = self.node("Relu", [value], f"{here}_relu")
        return value

    def model(self, inputs: int, outputs: int) -> Any:
        helper, double = self._onnx.helper, self._onnx.TensorProto.DOUBLE
        graph = helper.make_graph(
            self._nodes,
            "graphkeel",
            [helper.make_tensor_value_info("y", double, [1, inputs])],
            [helper.make_tensor_value_info("out", double, [1, outputs])],
            self._constants,
        )
        # An old opset on purpose: every tool reads it, and it has all that is needed in float64.
        model = helper.make_model(
            graph, producer_name="graphkeel", opset_imports=[helper.make_opsetid("", 14)]
        )
        model.ir_version = 8
        self._onnx.checker.check_model(model)
        return model
