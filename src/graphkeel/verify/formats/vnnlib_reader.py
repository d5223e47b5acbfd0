"""VNN-LIB version 1, read by an s-expression reader of our own.

Supported is what the standard's queries are made of: `declare-const` of X_i and Y_j, and `assert`
of `and`, `or`, `<=` and `>=` over linear terms. Assertions that bound one input make the box; all
others are inequalities ≥ 0. Nothing is rounded here: decimals are rationals."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from graphkeel.core.errors import ProblemError
from graphkeel.verify.formats.reading import read_limited
from graphkeel.verify.property.question import Case, Inequality, Property, Terms
from graphkeel.verify.settings import LIMITS

Node = str | list["Node"]
_Atoms = list[Inequality]  # a conjunction

# Digits and spaces are those of ASCII; a comment ends at either line break, as in SMT-LIB, and a
# variable has one name: X_01 is not X_1.
_TOKEN = re.compile(r"\s+|;[^\r\n]*|([()])|([^\s();]+)", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_VARIABLE = re.compile(r"([XY])_(0|[1-9]\d{0,5})", re.ASCII)
_VERSION_2 = "vnnlib-version"


def read_vnnlib(path: str | Path) -> Property:
    """Read a property."""
    raw = read_limited(Path(path), LIMITS.vnnlib_bytes)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise ProblemError(f"{path} is not a text", fix="VNN-LIB files are plain text.") from None
    try:
        return property_from(text)
    except ProblemError as error:
        raise ProblemError(f"{path}: {error.what}", got=error.got, fix=error.fix) from None


def property_from(text: str) -> Property:
    """The property that a VNN-LIB text describes."""
    commands = _parse(text)
    if any(command[:1] == [_VERSION_2] for command in commands if isinstance(command, list)):
        from graphkeel.verify.formats.vnnlib2_reader import commands_of_version_2

        commands = commands_of_version_2(text)
    return _Script(commands).property()


def _parse(text: str) -> list[Node]:
    """The s-expressions of a text."""
    top: list[Node] = []
    stack = [top]
    place = 0
    while place < len(text):
        token = _TOKEN.match(text, place)
        if token is None:  # pragma: no cover
            raise ProblemError("the text is not VNN-LIB", got=repr(text[place : place + 20]))
        place = token.end()
        bracket, word = token.groups()
        if word:
            stack[-1].append(word)
        elif bracket == "(":
            inner: list[Node] = []
            stack[-1].append(inner)
            stack.append(inner)
            if len(stack) > LIMITS.vnnlib_depth:
                raise ProblemError(f"brackets are nested deeper than {LIMITS.vnnlib_depth}")
        elif bracket == ")":
            stack.pop()
            if not stack:
                raise ProblemError("a bracket is closed that was never opened")
    if len(stack) != 1:
        raise ProblemError("a bracket is never closed")
    return top


@dataclass
class _Script:
    """The commands of a file, one after the other."""

    commands: list[Node]
    sizes: dict[str, int] = field(default_factory=dict)  # declared X and Y

    def property(self) -> Property:
        declared: dict[str, set[int]] = {"X": set(), "Y": set()}
        cases: list[_Atoms] = [[]]
        asserted = [self._assertion(command, declared) for command in self.commands]
        self.sizes = {kind: self._size(kind, numbers) for kind, numbers in declared.items()}
        for node in asserted:
            if node is not None:
                cases = _both(cases, self._cases(node))
        made = [self._case(atoms) for atoms in cases]
        kept = tuple(case for case in made if case is not None)
        return Property(self.sizes["X"], self.sizes["Y"], kept)

    def _assertion(self, command: Node, declared: dict[str, set[int]]) -> Node | None:
        """The formula that a command asserts; None for a declaration, which is recorded."""
        match command:
            case ["declare-const", str(name), "Real"] | ["declare-fun", str(name), [], "Real"]:
                kind, number = _variable(name)
                if number in declared[kind]:
                    raise ProblemError("a variable is declared twice", got=name)
                declared[kind].add(number)
                return None
            case ["assert", node]:
                return node
            case ["check-sat"] | ["exit"] | ["get-model"] | ["set-logic", str()]:
                return None
        raise ProblemError("a command is not one of VNN-LIB", got=_shown(command))

    def _size(self, kind: str, numbers: set[int]) -> int:
        if (
            numbers != set(range(len(numbers)))
            or not numbers
            or len(numbers) > LIMITS.vnnlib_variables
        ):
            raise ProblemError(
                f"the variables {kind}_0, {kind}_1, … must be declared without a gap",
                got=f"{len(numbers)} of them",
            )
        return len(numbers)

    def _cases(self, node: Node) -> list[_Atoms]:
        """A formula as a disjunction of conjunctions."""
        match node:
            case ["and", *parts] if parts:
                cases: list[_Atoms] = [[]]
                for part in parts:
                    cases = _both(cases, self._cases(part))
                return cases
            case ["or", *parts] if parts:
                every = [case for part in parts for case in self._cases(part)]
                if len(every) > LIMITS.vnnlib_cases:
                    raise ProblemError(f"the property has more than {LIMITS.vnnlib_cases} cases")
                return every
            case ["<=", left, right]:
                return [[_inequality(self._term(right), self._term(left))]]
            case [">=", left, right]:
                return [[_inequality(self._term(left), self._term(right))]]
            case ["<" | ">" as sign, *_]:
                raise ProblemError(
                    "VNN-LIB compares with <= and >= only", got=sign, fix="Write <= or >=."
                )
        raise ProblemError("an assertion is not understood", got=_shown(node))

    def _term(self, node: Node) -> Inequality:
        """A linear term."""
        match node:
            case str(word) if _NUMBER.fullmatch(word):
                if len(word) > LIMITS.vnnlib_digits:
                    raise ProblemError(
                        "a number has too many digits", got=word[: LIMITS.vnnlib_digits]
                    )
                return Inequality({}, Fraction(word))
            case str(word):
                kind, number = _variable(word)
                if number >= self.sizes[kind]:
                    raise ProblemError("a variable is used and not declared", got=word)
                place = number if kind == "X" else self.sizes["X"] + number
                return Inequality({place: Fraction(1)}, Fraction(0))
            case ["+", *parts] if parts:
                total = self._term(parts[0])
                for part in parts[1:]:
                    total = _combined(total, self._term(part), Fraction(1))
                return total
            case ["-", part]:
                return _combined(Inequality({}, Fraction(0)), self._term(part), Fraction(-1))
            case ["-", first, *parts] if parts:
                total = self._term(first)
                for part in parts:
                    total = _combined(total, self._term(part), Fraction(-1))
                return total
            case ["*", left, right]:
                a, b = self._term(left), self._term(right)
                a, b = (b, a) if a.terms else (a, b)
                if a.terms:
                    raise ProblemError("a product of two variables is not linear", got=_shown(node))
                return _combined(Inequality({}, Fraction(0)), b, a.constant)
        raise ProblemError("a term is not linear", got=_shown(node))

    def _case(self, atoms: _Atoms) -> Case | None:
        """A box and the inequalities that are not part of it; None where the box is empty."""
        inputs = self.sizes["X"]
        low: list[Fraction | None] = [None] * inputs
        high: list[Fraction | None] = [None] * inputs
        rest = []
        for atom in atoms:
            places = list(atom.terms)
            if len(places) != 1 or places[0] >= inputs:
                rest.append(atom)
                continue
            factor = atom.terms[places[0]]
            end = -atom.constant / factor
            ends, best = (low, max) if factor > 0 else (high, min)
            old = ends[places[0]]
            ends[places[0]] = end if old is None else best(old, end)
        box = []
        for i, (a, b) in enumerate(zip(low, high, strict=True)):
            if a is None or b is None:
                raise ProblemError("every input needs a lower and an upper bound", got=f"X_{i}")
            box.append((a, b))
        if any(a > b for a, b in box):
            return None
        return Case.of(box, rest, self.sizes["Y"])


def _variable(name: str) -> tuple[str, int]:
    match = _VARIABLE.fullmatch(name)
    if match is None:
        raise ProblemError("a variable must be called X_i or Y_j", got=name[: LIMITS.vnnlib_digits])
    return match[1], int(match[2])


def _inequality(left: Inequality, right: Inequality) -> Inequality:
    """left − right ≥ 0."""
    return _combined(left, right, Fraction(-1))


def _combined(a: Inequality, b: Inequality, factor: Fraction) -> Inequality:
    """a + factor·b."""
    terms: Terms = dict(a.terms)
    for place, number in b.terms.items():
        terms[place] = terms.get(place, Fraction(0)) + factor * number
    kept = {place: number for place, number in terms.items() if number}
    return Inequality(kept, a.constant + factor * b.constant)


def _both(a: list[_Atoms], b: list[_Atoms]) -> list[_Atoms]:
    """The conjunction of two disjunctions."""
    if len(a) * len(b) > LIMITS.vnnlib_cases:
        raise ProblemError(f"the property has more than {LIMITS.vnnlib_cases} cases")
    return [[*first, *second] for first in a for second in b]


def _shown(node: Node) -> str:
    """The beginning of an s-expression."""
    text = node if isinstance(node, str) else f"({' '.join(map(_shown, node[:6]))})"
    return text[:80]
