"""Every derived sentence is true: parsed, and tried on states by exact simulation."""

from __future__ import annotations

import copy
import json
import random
import types
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import graph_cases
import hand_loops
import pytest
from checker_cases import CASES, square
from hand_loops import Hand, Json, array, branch, certificate, line, sealed_bytes, tree
from random_certificates import Floats, Shape, proofs, random_certificate, shaped_loop
from sentence_semantics import Contradicted, check_sentences

from graphkeel import checker
from graphkeel.checker import certificate as derivation
from graphkeel.checker import conclusion
from tally import TALLY

KINDS = {
    "asymptotic, everywhere",
    "asymptotic, D",
    "asymptotic, sublevel",
    "practical, D",
    "practical, sublevel",
    "recurrent",
    "nothing",
    "vacuous",
    "nothing together",
    "together",
    "each in its D",
    "message passing",
}


def accepted_cases() -> list[str]:
    found = [name for name, (_, expected) in CASES.items() if expected == "accepted"]
    return [name for name in found if b'"format": "graphkeel-certificate"' in CASES[name][0]()]


@pytest.mark.parametrize("name", accepted_cases())
def test_sentences_of_the_cases_are_true(name: str) -> None:
    check_sentences(json.loads(CASES[name][0]()), random.Random(name))


def simulate(seeds: range) -> Counter[str]:
    kinds: Counter[str] = Counter()
    for seed in seeds:
        content = random_certificate(seed)
        result = checker.check_bytes(sealed_bytes(content))
        assert result.accepted, (seed, result.reason)
        try:
            kinds.update(set(check_sentences(content, random.Random(seed))))
        except Contradicted as found:
            pytest.fail(f"certificate {seed}: {found}")
    for kind, count in kinds.items():
        TALLY["certificates simulated, by sentence", kind] += count
    TALLY["certificates simulated", "sentences contradicted: 0"] += len(seeds)
    return kinds


def test_sentences_of_random_certificates_are_true() -> None:
    assert set(simulate(range(150))) <= KINDS


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_sentences_of_many_random_certificates_are_true(part: int) -> None:
    assert set(simulate(range(2_000 * part, 2_000 * (part + 1)))) == KINDS


# ---- the semantics can fail: words that say too much


def two_domains() -> Json:
    """Class 1 has a small box of its own, and flies off a little outside of it."""
    large, small = bent_square(0, 8.0, 16.0), bent_square(1, 2.0**-6, 2.0**-5)
    return certificate(large, small)


def made(shape: Shape, rooms: list[Floats], outer: Floats | None = None, **question: Any) -> Hand:
    """A loop with all of its proofs."""
    weights = outer or [1.0] * 2 * len(shape.centre)
    loop = shaped_loop(shape, rooms, weights, **question)
    return replace(loop, proofs=proofs(random.Random(0), loop, shape))


def bent_square(label: int, half: float, kink: float) -> Hand:
    """z → z/4 on a box of half a width around Y = e_label, and −64·relu(−z_label − kink)."""
    centre = [float(label == 0), float(label == 1)]
    kinks = [(label, -1, kink, -64.0)]
    shape = Shape("shifted", centre, [0.25] * 2, [0.25] * 2, [0.0] * 2, 0.0, kinks)
    return made(shape, [[half, half]] * 2, hole_radius=half / 8, rho=0.5, label=label)


def contradicted(content: Json) -> bool:
    """Whether any of some samples of states shows a sentence to be false."""
    for seed in range(8):
        try:
            check_sentences(content, random.Random(seed))
        except Contradicted:
            return True
    return False


def with_text(content: Json, *path: Any, **changes: Any) -> Json:
    content = copy.deepcopy(content)
    place: Any = content
    for name in path:
        place = place[name]
    for old, new in changes.pop("words", ()):
        assert old in place["sentence"], place["sentence"]
        place["sentence"] = place["sentence"].replace(old, new)
    place.update(changes)
    return content


def test_two_domains_are_not_one() -> None:
    """The former sentence about them is false; the present one is true, and names each D."""
    content = two_domains()
    result = checker.check_bytes(sealed_bytes(content))
    assert result.accepted and "lies in the D of its class" in result.together
    assert not content["together"]["everywhere"]
    assert not contradicted(content)
    for states in ("D", "D that belongs to class 0, 1"):
        said = (
            f"Every state of {states} flows to the equilibrium of its own class, that of its"
            " largest logit, to within 0 in the sup norm, with the controller chosen anew at every"
            " step: the choice never changes."
        )
        assert contradicted(with_text(content, "together", sentence=said))
    now = "Every state of class 0, 1 that lies in the D of its class"
    wide = with_text(content, "together", words=[(now, "Every state of D")], everywhere=True)
    assert contradicted(wide)


VACUOUS = {
    "D in the hole": "vacuous: D holds no state but Y and those of the hole.\nEvery trajectory",
    "D in the hole, F flies off": "Vacuous: D holds no state but Y",
    "D is one state in the hole": "chosen anew at every step: D is a single state.",
    "D is one state, F flies off": "Vacuous: D holds no state but Y",
    "D is Y, without a hole": "Vacuous: D holds no state but Y",
    "a margin that no state has": "no state of D in which this class's logit leads by at least 4.1",
}


@pytest.mark.parametrize("name", VACUOUS)
def test_what_is_said_of_no_state_is_called_vacuous(name: str) -> None:
    result = checker.check_bytes(CASES[name][0]())
    (entry,) = result.classes
    assert result.accepted
    assert VACUOUS[name] in f"{entry['setting']}\n{entry['sentence']}"
    assert "steps" not in entry["sentence"] or name == "a margin that no state has"
    spoken = name == "D in the hole"  # everywhere in Rⁿ, though positivity and decrease are empty
    assert result.together.startswith("Every state of D" if spoken else "Nothing follows")


SENTENCE = ("classes", 0, "conclusion")
FALSE_WORDS: dict[str, Callable[[], Json]] = {
    "a step too few": lambda: with_text(
        certificate(edge()), *SENTENCE, words=[("within 4 steps", "within 3 steps")], steps=3
    ),
    "a radius too small": lambda: with_text(
        certificate(moved()), *SENTENCE, words=[("within 0.0625 of", "within 0.0612 of")]
    ),
    "Y for a point near it": lambda: with_text(
        certificate(moved()),
        *SENTENCE,
        words=[("one fixed point, which lies within 0.0625 of Y in the sup norm", "Y")],
    ),
    "anywhere for D": lambda: with_text(
        certificate(bent_square(0, 8.0, 16.0)),
        *SENTENCE,
        words=[("starts in D", "starts anywhere in Rⁿ")],
        region="everywhere",
    ),
    "all classes by the smallest radius": lambda: with_text(
        certificate(square(0), shifted_square(1)), "together", words=[("within 0.0834", "within 0")]
    ),
    "a margin left out": lambda: with_text(
        certificate(pushed()),
        *SENTENCE,
        words=[
            (
                "this class's logit leads by at least 0.5",
                "this class is chosen first, as its logit is the largest,",
            )
        ],
    ),
    "D for a part of it": lambda: with_text(
        certificate(line()), "classes", 0, setting=line_setting("D = [0, 3]")
    ),
    "D rounded outwards": lambda: with_text(
        certificate(line()), "classes", 0, setting=line_setting("D ⊇ [-0.001, 2]")
    ),
    "Y rounded, and called equal": lambda: with_text(
        certificate(line()), "classes", 0, setting=line_setting("D = [0, 2]", "Y = (1.00001)")
    ),
    "controllers mixed in any way": lambda: with_text(
        graph_cases.passing(graph_cases.HALVES),
        "graph",
        words=[
            (
                "at any nodes, mixed in fixed shares ≥ 0 whose sum at a node is at most 1, and"
                " given features for the rest",
                "mixed in any fixed way at any nodes and given features at the others",
            )
        ],
    ),
    "a smaller factor": lambda: with_text(
        graph_cases.passing(graph_cases.HALVES), "graph", words=[("factor 0.25", "factor 0.24")]
    ),
    "a word of its own": lambda: with_text(
        certificate(line()), *SENTENCE, words=[("trajectory", "bounded trajectory")]
    ),
}


def edge() -> Hand:
    """Y on a face of D = [1, 2]: the bound of four steps is met."""
    root = ([1.0], [2.0])
    proofs = {
        "decrease": branch("decrease", tree("decrease", *root, [-2])),
        "positivity": hand_loops.contraction("positivity"),
        "invariance": branch("invariance", *[tree(f"{s} 0", *root, [-2]) for s in SIDES]),
    }
    return line(lower=[1.0], proofs=proofs)


SIDES = ("upper", "lower")


def moved() -> Hand:
    """F halves the distance to 1 + 1/16."""
    return line(
        forward=[([[0.5]], [0.53125])],
        anchor=[1.0],
        proofs={"none": {}},
    )


def shifted_square(label: int) -> Hand:
    """A fixed point that is 1/12 away."""
    loop = square(label)
    (weight, bias), *_ = loop.forward
    moved = [b + 0.0625 * (k == label) for k, b in enumerate(bias)]
    proofs = dict(loop.proofs)
    del proofs["decrease"]
    loop = replace(loop, forward=[(weight, moved)], anchor=loop.equilibrium, hole_radius=0.5)
    return replace(loop, proofs={**proofs, "decrease": hand_loops.contraction("decrease")})


def pushed() -> Hand:
    """F_0 = 1 + z_0/4 − 3/2·relu(y_1 − 1/2) on [−1, 1] × [0, 1]: a lead of a half is kept, and
    from (1, 1), where there is none, F leads to a tie."""
    first = [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], [1.0, 0.0, -0.5]
    last = [[0.25, 0.0, -1.5], [0.0, 0.25, 0.0]], [0.5, 0.0]
    low, high = [-1.0, 0.0], [1.0, 1.0]
    loop = square(0, margin=0.5)
    rows = ("upper 0", "lower 0", "upper 1", "lower 1")
    halves = {row: tree(row, low, high, [1, -2, -2], (0.5,)) for row in (*rows, "class 1")}
    proofs = {
        **loop.proofs,
        "invariance": branch("invariance", *[halves[row] for row in rows]),
        "region": branch("region", halves["class 1"], multipliers=array([[0.0, 1.0]])),
    }
    gauge = [loop.lyapunov[0], ([[1.0, 8.0, 1.0, 8.0]], [0.0])]
    return replace(
        loop, forward=[first, last], lyapunov=gauge, lower=low, upper=high, proofs=proofs
    )


def line_setting(box: str, place: str = "Y = (1)") -> str:
    return (
        f"{place}; {box}; the hole is the box of radius 0.125 around Y; δ is 0, and ‖C(h*) − Y‖ is"
        " at most 0."
    )


@pytest.mark.parametrize("name", FALSE_WORDS)
def test_false_words_are_contradicted(name: str) -> None:
    content = FALSE_WORDS[name]()
    assert contradicted(content)
    true = hand_loops.rederived(content)
    assert checker.check_bytes(sealed_bytes({**true, **regraphed(content)})).accepted
    assert not contradicted({**true, **regraphed(content)})


def regraphed(content: Json) -> Json:
    """The graph's part with its true words."""
    return {"graph": graph_cases.passing(graph_cases.HALVES)["graph"]} if "graph" in content else {}


# ---- the semantics can fail: sentences of a checker with one place wrong


def ray(up: float, down: float, shift: float = 0.0, **question: Any) -> Hand:
    """One axis, Y = 1: F = Y + shift + up·z above, + down·z below, through two units."""
    rooms, outer = question.pop("rooms", [1.0, 1.0]), question.pop("outer", None)
    form = question.pop("form", "conic")
    shape = Shape(form, [1.0], [down], [up], [shift], 0.0, question.pop("kinks", []))
    return made(shape, [rooms], outer, **{"rho": 0.875, "positivity": 1.0, **question})


def see_saw() -> Hand:
    """A small shift, and a cycle instead of a fixed point: −3z above, −z/8 below."""
    return ray(-3.0, -0.125, 2.0**-10, rooms=[1.0, 4.0], outer=[4.0, 1.0])


def leaving(**question: Any) -> Hand:
    """z = 4 goes to −2, outside of D, where F flies off."""
    kinks = [(0, -1, 1.0, -64.0)]
    return ray(-0.5, -0.5, form="shifted", rooms=[4.0, 1.0], kinks=kinks, **question)


def odd() -> Hand:
    """Numbers that a few digits do not hold."""
    shape = Shape("affine", [1 / 3], [0.5], [0.5], [0.0], 0.0, [])
    return made(shape, [[1 / 7, 1 / 7]], hole_radius=1 / 77, delta=1 / 77, rho=0.75)


def corner_square(label: int) -> Hand:
    """The other class on the box of `pushed`."""
    shape = Shape("affine", [0.0, 1.0], [0.25] * 2, [0.25] * 2, [0.0] * 2, 0.0, [])
    return made(shape, [[1.0, 1.0], [0.0, 1.0]], label=label)


def high_margin() -> Hand:
    shape = Shape("affine", [1.0, 0.0], [0.25] * 2, [0.25] * 2, [0.0] * 2, 0.0, [])
    return made(shape, [[1.0, 1.0]] * 2, margin=4096.0)


Loops = Callable[[], Sequence[Hand]]
MUTANTS: dict[str, tuple[str, str, Loops]] = {
    "smallest radius of all classes": (
        "radius = max(Fraction(entry[",
        "radius = min(Fraction(entry[",
        lambda: [square(0), shifted_square(1)],
    ),
    "everywhere with the smallest margin": (
        "margin = max(margins)",
        "margin = min(margins)",
        lambda: [pushed(), corner_square(1)],
    ),
    "everywhere in spite of a margin": (
        " and margin == 0\n",
        "\n",
        lambda: [pushed(), corner_square(1)],
    ),
    "one D for all": (
        "everywhere = complete and all(box == boxes[0] for box in boxes)",
        "everywhere = complete",
        lambda: [bent_square(0, 8.0, 16.0), bent_square(1, 2.0**-6, 2.0**-5)],
    ),
    "everywhere from some classes": (
        "complete = classes ==",
        "complete = True or classes ==",
        lambda: [square(0)],
    ),
    "a set that leaves D": (
        "problem.positivity * min(problem.clearance()",
        "problem.positivity * max(problem.clearance()",
        lambda: [leaving()],
    ),
    "D without invariance": (
        'if hole.kind == "homogeneous" and every:',
        'if hole.kind == "homogeneous":',
        lambda: [leaving()],
    ),
    "recurrence without invariance": (
        "if every and problem.radius > 0:",
        'if {"positivity", "decrease"} <= proved and problem.radius > 0:',
        lambda: [leaving(positivity=0.0)],
    ),
    "a step too few": ("    steps = 0\n", "    steps = -1\n", lambda: [edge()]),
    "steps from a larger floor": (
        "floor = problem.positivity * problem.radius",
        "floor = problem.positivity * problem.radius * 4",
        lambda: [edge()],
    ),
    "steps from a smaller V": (
        "ratio = high.fractions()[0]",
        "ratio = low.fractions()[0]",
        lambda: [edge()],
    ),
    "radius without 1 − κ": (
        "/ ((1 - factor) * gauge.floor)",
        "/ gauge.floor",
        lambda: [moved()],
    ),
    "radius without 1 − ρ": (
        "/ ((1 - problem.rho) * c)",
        "/ c",
        lambda: [ray(0.75, 0.75, 2.0**-10, hole_radius=0.125)],
    ),
    "a fixed point always": (
        'fixed = end == 0 or (shape == "affine" and problem.rho + back < 1)',
        "fixed = True",
        lambda: [see_saw()],
    ),
    "rounded to the good side": (
        "ROUND_CEILING if up else ROUND_FLOOR",
        "ROUND_FLOOR if up else ROUND_CEILING",
        lambda: [odd()],
    ),
    "Y always exact": ("'=' if exact else '≈'", "'='", lambda: [odd()]),
    "D always exact": ("'=' if whole else '⊇'", "'='", lambda: [odd()]),
    "numbers always exact": ('else f"at most {text}"', "else text", lambda: [odd()]),
    "recurrence in a hole that holds D": (
        "    if vacuous:\n",
        "    if False:\n",
        lambda: [ray(0.75, 0.75, hole_radius=2.0)],
    ),
    "steps into a hole that holds D": (
        "if every and not vacuous else None",
        "if every else None",
        lambda: [line(hole_radius=2.0, proofs=ray(0.5, 0.5, hole_radius=2.0).proofs)],
    ),
    "a region without a state": (
        " or any(own - rival < Fraction(margin)",
        " or any(False",
        lambda: [high_margin()],
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_conclusion_is_contradicted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Path(str(conclusion.__file__)).read_text()
    old, new, loops = MUTANTS[name]
    assert source.count(old) == 1, old
    content = certificate(*loops())
    assert checker.check_bytes(sealed_bytes(content)).accepted
    assert not contradicted(content)
    wrong = types.ModuleType("graphkeel.checker.wrong")
    wrong.__package__ = "graphkeel.checker"
    exec(compile(source.replace(old, new), name, "exec"), wrong.__dict__)
    monkeypatch.setattr(derivation, "words", wrong)
    monkeypatch.setattr(hand_loops, "all_together", wrong.all_together)
    assert contradicted(hand_loops.rederived(content))
