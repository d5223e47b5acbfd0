"""Mutants of the checker by rule: every place of its syntax trees where one small change gives
another program.

Left out is what no verdict and no sentence can depend on: annotations, decorators, documentation,
the words of a refusal, measured seconds, and what the type checker alone reads."""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

PACKAGES = ("checker",)
Spot = tuple[ast.AST, str, int | None]  # a parent, its field, and the place in it if it is a list

COMPARISONS: dict[type, type] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
ARITHMETIC: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
NAMES = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "ceil": "floor",
    "rise": "drop",
    "drop": "rise",
    "abs": "int",
    "ROUND_CEILING": "ROUND_FLOOR",
    "ROUND_FLOOR": "ROUND_CEILING",
}
# Calls whose arguments have no order, or where another order cannot run at all.
UNCHANGED = ("min", "max", "same", "_fits", "isinstance", "Row")
UNORDERED = {"sorted": "list", "reversed": "list"}


class Change(NamedTuple):
    """One mutant: where, by which rule, and the statement before and after."""

    file: str
    place: str  # the function
    rule: str
    old: str
    new: str
    tree: ast.Module
    spot: Spot
    other: ast.AST

    def code(self) -> CodeType:
        """The mutant, compiled; the tree is left as it was."""
        before = _at(self.spot)
        _put(self.spot, self.other)
        code = compile(self.tree, self.file, "exec")
        _put(self.spot, before)
        return code

    def key(self) -> tuple[str, str, str, str]:
        """Its name, whatever its line is."""
        return self.file, self.place, self.old, self.new

    def rank(self, seed: int) -> bytes:
        """Its place in the sample: a change elsewhere does not move it."""
        return hashlib.sha256(repr((seed, self.key())).encode()).digest()


def sample(sources: Path, seed: int, count: int) -> list[Change]:
    """So many of all mutants, by lot; all of them if `count` is 0."""
    every = sorted(all_changes(sources), key=lambda change: change.rank(seed))
    return every[: count or None]


def all_changes(sources: Path) -> list[Change]:
    """Every mutant of both packages."""
    found: list[Change] = []
    for package in PACKAGES:
        for path in sorted((sources / package).glob("*.py")):
            found += _numbered(_changes(path, f"{package}/{path.name}"))
    return found


def _numbered(changes: Iterator[Change]) -> Iterator[Change]:
    """Changes with the same text are distinguished by their number."""
    seen: Counter[Any] = Counter()
    for change in changes:
        seen[change.key()] += 1
        number = seen[change.key()]
        yield change if number == 1 else change._replace(place=f"{change.place} ({number})")


def _changes(path: Path, file: str) -> Iterator[Change]:
    tree = ast.parse(path.read_text())
    for spot, statement, place in _spots(tree, tree, ""):
        node, old = _at(spot), _shown(statement)
        for rule, other in _others(node, spot):
            _put(spot, ast.fix_missing_locations(ast.copy_location(other, node)))
            new = _shown(other if node is statement else statement)
            _put(spot, node)
            if new != old:
                yield Change(file, place or "module", rule, old, new, tree, spot, other)


# ---- where


def _spots(node: ast.AST, statement: ast.AST, place: str) -> Iterator[tuple[Spot, ast.AST, str]]:
    """All places below a node, with the statement and the function that they stand in."""
    for name, value in ast.iter_fields(node):
        if _silent(node, name):
            continue
        entries = value if isinstance(value, list) else [value]
        for number, child in enumerate(entries):
            if not isinstance(child, ast.AST) or _dead(child):
                continue
            spot = (node, name, number if isinstance(value, list) else None)
            own = child if isinstance(child, ast.stmt) else statement
            yield spot, own, place
            if isinstance(child, ast.Raise):
                continue  # the words of a refusal
            named = isinstance(child, (ast.FunctionDef, ast.ClassDef))
            inner = f"{place}.{child.name}".lstrip(".") if named else place
            yield from _spots(child, own, inner)


def _silent(node: ast.AST, field: str) -> bool:
    """Annotations, decorators, and what the format of an f-string is."""
    return field in ("annotation", "returns", "decorator_list", "format_spec", "type_params")


def _dead(node: ast.AST) -> bool:
    """Documentation, imports, aliases of types, the clock, how a message shows a value, and the end
    of a program's file."""
    if isinstance(node, (ast.Import, ast.ImportFrom, ast.Assert)):
        return True
    if isinstance(node, ast.FunctionDef) and node.name == "shown":
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    if isinstance(node, ast.BinOp) and "perf_counter" in ast.dump(node):
        return True
    if isinstance(node, ast.Assign) and (_alias(node.value) or _words(node.targets)):
        return True
    return isinstance(node, ast.If) and "__name__" in ast.dump(node.test)


def _alias(value: ast.expr) -> bool:
    """Whether a name is given to a type: `Box = tuple[Ints, Ints]`."""
    value = value.left if isinstance(value, ast.BinOp) else value
    base = value.value if isinstance(value, ast.Subscript) else None
    return isinstance(base, ast.Name) and base.id in ("tuple", "list", "dict")


def _words(targets: list[ast.expr]) -> bool:
    """Whether a place of the file is named for a message."""
    return any(isinstance(name, ast.Name) and name.id in ("where", "words") for name in targets)


def _at(spot: Spot) -> Any:
    parent, field, number = spot
    value = getattr(parent, field)
    return value if number is None else value[number]


def _put(spot: Spot, node: ast.AST) -> None:
    parent, field, number = spot
    if number is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[number] = node


def _shown(statement: ast.AST) -> str:
    """A statement, of a block its head alone."""
    if not hasattr(statement, "body"):
        return ast.unparse(statement)
    fields = {name: value for name, value in ast.iter_fields(statement) if name != "body"}
    fields |= {name: [] for name in ("orelse", "handlers", "finalbody") if name in fields}
    if isinstance(statement, ast.Try):
        return "try:"
    if "decorator_list" in fields:
        fields["decorator_list"] = []
    head = type(statement)(**fields, body=[ast.Pass()], lineno=1, col_offset=0)
    return ast.unparse(head).rsplit("\n", 1)[0]


# ---- what else could stand there


def _others(node: ast.AST, spot: Spot) -> Iterator[tuple[str, ast.AST]]:
    """The mutants of one node, with the names of their rules."""
    makers = {
        ast.Compare: _compare,
        ast.BinOp: _binary,
        ast.AugAssign: _augmented,
        ast.UnaryOp: _unary,
        ast.BoolOp: _boolean,
        ast.Constant: _constant,
        ast.Name: _name,
        ast.Call: _call,
        ast.Slice: _slice,
        ast.IfExp: _choice,
        ast.If: _condition,
        ast.While: _condition,
        ast.comprehension: _filter,
        ast.Raise: _omitted,
        ast.Continue: _omitted,
        ast.Expr: _omitted,
        ast.Tuple: _pair,
    }
    if type(node) is ast.Expr and isinstance(node.value, (ast.Yield, ast.YieldFrom)):
        return
    if type(node) in makers:
        yield from makers[type(node)](node, spot)


def _compare(node: ast.Compare, _spot: Spot) -> Iterator[tuple[str, ast.AST]]:
    for k, op in enumerate(node.ops):
        ops = list(node.ops)
        ops[k] = COMPARISONS[type(op)]()
        yield "comparison", ast.Compare(node.left, ops, node.comparators)


def _binary(node: ast.BinOp, _spot: Spot) -> Iterator[tuple[str, ast.AST]]:
    if type(node.op) in ARITHMETIC:
        yield "arithmetic", ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)


def _augmented(node: ast.AugAssign, _spot: Spot) -> Iterator[tuple[str, ast.AST]]:
    if type(node.op) in ARITHMETIC:
        yield "arithmetic", ast.AugAssign(node.target, ARITHMETIC[type(node.op)](), node.value)
    yield "omitted", ast.Pass()


def _unary(node: ast.UnaryOp, _spot: Spot) -> Iterator[tuple[str, ast.AST]]:
    yield "sign" if isinstance(node.op, ast.USub) else "not", node.operand


def _boolean(node: ast.BoolOp, _spot: Spot) -> Iterator[tuple[str, ast.AST]]:
    other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    yield "and or", ast.BoolOp(other, node.values)
    for k in range(len(node.values)):
        rest = node.values[:k] + node.values[k + 1 :]
        yield "omitted", rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)


def _constant(node: ast.Constant, _spot: Spot) -> Iterator[tuple[str, ast.AST]]:
    if type(node.value) is bool:
        yield "constant", ast.Constant(not node.value)
    elif type(node.value) in (int, float):
        yield "constant", ast.Constant(node.value + 1)


def _name(node: ast.Name, _spot: Spot) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node.ctx, ast.Load) and node.id in NAMES:
        yield "order", ast.Name(NAMES[node.id], ast.Load())


def _call(node: ast.Call, _spot: Spot) -> Iterator[tuple[str, ast.AST]]:
    kinds = (ast.Starred, ast.JoinedStr, ast.Set, ast.Dict)
    plain = not any(isinstance(entry, kinds) or _is_text(entry) for entry in node.args[:2])
    if plain and len(node.args) >= 2 and ast.unparse(node.func) not in UNCHANGED:
        first, second, *rest = node.args
        yield "order", ast.Call(node.func, [second, first, *rest], node.keywords)
    if isinstance(node.func, ast.Name) and node.func.id in UNORDERED:
        other = ast.Name(UNORDERED[node.func.id], ast.Load())
        yield "order", ast.Call(other, node.args, [])
    for k in range(len(node.keywords)):
        if node.keywords[k].arg == "strict":
            continue  # the same as strict=False
        rest = node.keywords[:k] + node.keywords[k + 1 :]
        yield "omitted", ast.Call(node.func, node.args, rest)


def _is_text(node: ast.expr) -> bool:
    """An argument that no other one is like."""
    named = isinstance(node, ast.Name) and node.id in ("where", "condition", "name")
    return named or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_single(node: ast.expr) -> bool:
    """A text or a name: of `x in (a, b)`, where the order says nothing."""
    return isinstance(node, (ast.Name, ast.Constant))


def _slice(node: ast.Slice, _spot: Spot) -> Iterator[tuple[str, ast.AST]]:
    for name in ("lower", "upper", "step"):
        if getattr(node, name) is not None:
            ends = {"lower": node.lower, "upper": node.upper, "step": node.step, name: None}
            yield "slice", ast.Slice(**ends)


def _choice(node: ast.IfExp, _spot: Spot) -> Iterator[tuple[str, ast.AST]]:
    yield "condition", node.body
    yield "condition", node.orelse


def _condition(node: Any, _spot: Spot) -> Iterator[tuple[str, ast.AST]]:
    for value in (True, False) if isinstance(node, ast.If) else (False,):
        yield "condition", type(node)(ast.Constant(value), node.body, node.orelse)


def _filter(node: ast.comprehension, _spot: Spot) -> Iterator[tuple[str, ast.AST]]:
    if node.ifs:
        yield "omitted", ast.comprehension(node.target, node.iter, [], node.is_async)


def _omitted(_node: ast.AST, _spot: Spot) -> Iterator[tuple[str, ast.AST]]:
    yield "omitted", ast.Pass()


def _pair(node: ast.Tuple, spot: Spot) -> Iterator[tuple[str, ast.AST]]:
    """The first two of some values exchanged; not where they are a type, or one of them is asked
    for."""
    asked = spot[1] in ("slice", "comparators") and all(map(_is_single, node.elts))
    if isinstance(node.ctx, ast.Load) and len(node.elts) >= 2 and not asked:
        first, second, *rest = node.elts
        yield "order", ast.Tuple([second, first, *rest], ast.Load())
