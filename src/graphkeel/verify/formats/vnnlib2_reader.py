"""VNN-LIB version 2, parsed by the optional package `vnnlib` and turned into version 1.

Supported is what version 1 can say: one network with one input and one output tensor, whose
entries X[i,j] are numbered in C order."""

from __future__ import annotations

import math
from typing import Any

from graphkeel.core.errors import ProblemError
from graphkeel.core.optional import import_optional
from graphkeel.verify.formats.reading import first_line
from graphkeel.verify.formats.vnnlib_reader import Node
from graphkeel.verify.settings import LIMITS

_COMPARISONS = {"LessEqual": "<=", "GreaterEqual": ">=", "LessThan": "<", "GreaterThan": ">"}
_LISTS = {"And": "and", "Or": "or", "Plus": "+"}


def commands_of_version_2(text: str) -> list[Node]:
    """The declarations and assertions of a version 2 text, as version 1 has them."""
    package = import_optional("vnnlib", extra="vnnlib")
    try:
        query = package.parse_query_string(text)
    except package.VNNLibException as error:
        raise ProblemError("the VNN-LIB 2 text cannot be read", got=first_line(error)) from None
    if len(query.networks) != 1:
        raise ProblemError("a property is about one network", got=len(query.networks))
    network = query.networks[0]
    if len(network.inputs) != 1 or len(network.outputs) != 1 or network.hidden:
        raise ProblemError("a network has one input, one output and no named hidden values")
    letters = {network.inputs[0].name: "X", network.outputs[0].name: "Y"}
    commands: list[Node] = []
    for tensor in (network.inputs[0], network.outputs[0]):
        size = math.prod(tensor.shape)
        if not 0 < size <= LIMITS.vnnlib_variables:
            raise ProblemError("a tensor is too large or empty", got=tensor.shape)
        letter = letters[tensor.name]
        commands += [["declare-const", f"{letter}_{i}", "Real"] for i in range(size)]
    return [*commands, *(["assert", _node(item.expr, letters)] for item in query.assertions)]


def _node(expression: Any, letters: dict[str, str]) -> Node:
    """An expression of the package as an s-expression."""
    kind = type(expression).__name__
    if kind == "Var":
        place = 0
        for index, size in zip(expression.indices, expression.shape, strict=True):
            place = place * size + index
        return f"{letters[expression.name]}_{place}"
    if kind in ("Float", "Int", "Literal", "IntExpr"):
        return str(expression.lexeme)
    if kind == "Negate":
        return ["-", _node(expression.expr, letters)]
    if kind == "Minus":
        parts = (expression.head, *expression.rest)
        return ["-", *(_node(part, letters) for part in parts)]
    if kind == "Multiply":
        product, *others = (_node(part, letters) for part in expression.args)
        for factor in others:
            product = ["*", product, factor]
        return product
    if kind in _LISTS:
        return [_LISTS[kind], *(_node(part, letters) for part in expression.args)]
    if kind in _COMPARISONS:
        sides = (expression.lhs, expression.rhs)
        return [_COMPARISONS[kind], *(_node(side, letters) for side in sides)]
    if kind == "Equal":
        left, right = _node(expression.lhs, letters), _node(expression.rhs, letters)
        return ["and", ["<=", left, right], [">=", left, right]]
    raise ProblemError("an expression of VNN-LIB 2 is not supported", got=kind)
