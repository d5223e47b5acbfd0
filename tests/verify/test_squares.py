"""Quadratic outputs: known truth, bounds that contain sampled values, forged squares."""

from __future__ import annotations

import copy
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from graphkeel.certificate.encoding import certificate_bytes
from graphkeel.checker import check_bytes, relaxation
from graphkeel.checker.blocks import Block as CheckedBlock
from graphkeel.checker.blocks import row_of
from graphkeel.checker.exact import Matrix, Vector, Work, folded
from graphkeel.checker.reading import Unreadable
from graphkeel.checker.relaxation import Leaf, Relaxation
from graphkeel.verify.attack import CaseAttack
from graphkeel.verify.formats.vnnlib_reader import property_from
from graphkeel.verify.proof import encode
from graphkeel.verify.property.decide import Answer, decide
from graphkeel.verify.property.network import Block, BlockNetwork
from graphkeel.verify.property.proof import difference
from graphkeel.verify.property.question import Property
from graphkeel.verify.rational import rationals
from graphkeel.verify.result import Budget


def property_of(assertions: str, inputs: int, outputs: int = 1) -> Property:
    names = [f"X_{i}" for i in range(inputs)] + [f"Y_{i}" for i in range(outputs)]
    declared = "".join(f"(declare-const {name} Real)" for name in names)
    box = "".join(f"(assert (<= X_{i} 1))(assert (>= X_{i} -1))" for i in range(inputs))
    return property_from(declared + box + assertions)


def layer(source: int, rows: list[list[float]], bias: list[float], kind: str = "") -> Block:
    weight = np.array(rows)
    return Block(((source, weight),), np.array(bias), kind == "relu", square=kind == "square")


def form() -> BlockNetwork:
    """x₀² − x₀x₁ + x₁², between 0 and 3 on the box; 3 at (1, −1) and (−1, 1) alone."""
    squares = layer(0, [[1, 0], [0, 1], [1, -1]], [0, 0, 0], "square")
    return BlockNetwork(2, (squares, layer(1, [[0.5, 0.5, 0.5]], [0.0])))


def nested() -> BlockNetwork:
    """relu(x² − 1/4)², between 0 and 9/16: squares of squares, with a ReLU between."""
    parts = [layer(0, [[1.0]], [0.0], "square"), layer(1, [[1.0]], [-0.25], "relu")]
    parts += [layer(2, [[1.0]], [0.0], "square"), layer(3, [[1.0]], [0.0])]
    return BlockNetwork(1, tuple(parts))


def falling() -> BlockNetwork:
    """V(F(x)) − V(x) and V(x), V = x² and F(x) = relu(x/2): −3x²/4 or −x²."""
    blocks = (
        layer(0, [[0.5]], [0.0], "relu"),
        layer(1, [[1.0]], [0.0], "square"),
        layer(0, [[1.0]], [0.0], "square"),
        Block(((2, np.array([[1.0], [0.0]])), (3, np.array([[-1.0], [1.0]]))), np.zeros(2), False),
    )
    return BlockNetwork(1, blocks)


QUICK = Budget(20.0, threads=1, clock="processor")


@pytest.mark.parametrize(
    ("network", "assertions", "verdict"),
    [
        (form(), "(assert (<= Y_0 -0.001))", "unsat"),
        (form(), "(assert (>= Y_0 3.001))", "unsat"),
        (form(), "(assert (>= Y_0 2.999))", "sat"),
        (form(), "(assert (>= Y_0 3))", "sat"),
        (form(), "(assert (>= Y_0 0.3))(assert (<= Y_0 0.301))", "sat"),
        (form(), "(assert (or (and (<= Y_0 -0.01)) (and (>= Y_0 1.01) (>= X_0 X_1) (<= X_0 X_1))))",
         "unsat"),
        (nested(), "(assert (>= Y_0 0.563))", "unsat"),
        (nested(), "(assert (>= Y_0 0.5625))", "sat"),
        (nested(), "(assert (<= Y_0 -0.001))", "unsat"),
    ],
)  # fmt: skip
def test_known_truth(network: BlockNetwork, assertions: str, verdict: str) -> None:
    prop = property_of(assertions, network.inputs)
    answer = decide(network, prop, QUICK)
    assert answer.verdict == verdict, answer.reason
    if verdict == "unsat":
        assert check_bytes(certificate_bytes(answer.proof or {})).accepted


def test_bands_of_v() -> None:
    """V falls by 3/4 of itself or more: 1/16 ≤ V and V(F) − V ≥ −3/64 contradict each other."""
    band = "(assert (>= Y_1 0.0625))(assert (<= Y_1 0.5))"
    shown = decide(falling(), property_of(band + "(assert (>= Y_0 -0.046))", 1, 2), QUICK)
    assert shown.verdict == "unsat" and check_bytes(certificate_bytes(shown.proof or {})).accepted
    refuted = decide(falling(), property_of(band + "(assert (>= Y_0 -0.047))", 1, 2), QUICK)
    assert refuted.verdict == "sat" and 0.25 <= refuted.inputs[0] <= 0.2504
    assert np.float32(refuted.inputs[0]) == refuted.inputs[0]


# ---- other squares, and bounds


def random_network(rng: np.random.Generator) -> BlockNetwork:
    """ReLUs, squares of them, and squares of the inputs; sometimes ReLUs of squares."""
    n, width = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    first = Block(((0, rng.normal(size=(width, n))),), rng.normal(size=width), True)
    both = ((0, rng.normal(size=(3, n))), (1, rng.normal(size=(3, width))))
    blocks = [first, Block(both, rng.normal(size=3), False, square=True)]
    if rng.random() < 0.5:
        blocks.append(Block(((2, rng.normal(size=(2, 3))),), rng.normal(size=2), True))
        blocks.append(Block(((3, rng.normal(size=(3, 2))),), rng.normal(size=3), square=True,
                            relu=False))  # fmt: skip
    last = ((0, rng.normal(size=(2, n))), (len(blocks), rng.normal(size=(2, 3))))
    return BlockNetwork(n, (*blocks, Block(last, rng.normal(size=2), False)))


@pytest.mark.parametrize("seed", range(12))
def test_other_squares_are_within_their_error(seed: int) -> None:
    """The exact value of every inequality, and of the network that is searched in its place."""
    rng = np.random.default_rng(seed)
    network = random_network(rng)
    prop = property_of("(assert (>= Y_0 0.5))(assert (<= Y_1 (* 2 Y_0)))", network.inputs, 2)
    attack = CaseAttack(network, prop.cases[0])
    other, joined = attack.network, prop.cases[0].joined(network)
    assert attack.rewritten.squares is not None
    allowed = other.blocks[-1].bias_error
    for point in rng.uniform(-1.0, 1.0, (20, network.inputs)):
        exact = rationals(point)
        pairs = zip(joined.exact_outputs(exact), other.exact_outputs(exact), strict=True)
        # units between are rounded, too, which their own errors cover
        assert all(abs(float(a - b)) <= e + 1e-12 for (a, b), e in zip(pairs, allowed, strict=True))
    assert (allowed < 1e-9).all()


def matrix(weight: np.ndarray) -> Matrix:
    flat = Vector.of(weight.ravel().tolist())
    return Matrix(folded(flat.ints, weight.shape[1]), flat.exp)


def checked_row(network: BlockNetwork) -> Any:
    blocks = []
    for block in network.blocks:
        terms = [(source, matrix(weight)) for source, weight in block.terms]
        bias = Vector.of(block.bias.tolist())
        blocks.append(CheckedBlock(terms, bias, block.relu, block.square))
    return row_of(blocks[:-1], blocks[-1], network.inputs, network.unit_blocks, Work(10**12))


def bound_holds(seed: int) -> bool:
    """Whether the checker's bound of a random leaf is above all sampled values."""
    rng, dice = np.random.default_rng(seed), random.Random(seed)
    network = random_network(rng)
    row = checked_row(network)
    low = np.round(rng.uniform(-1, 1, network.inputs) * 16) / 16
    high = low + dice.choice([0.0, 0.0625, 0.5, 2.0])
    ends = [int(x * 16) for x in low], [int(x * 16) for x in high]
    made = Relaxation(row, -4, Work(10**12), set(), False, 8)
    slopes = {unit: dice.choice([0, 255, dice.randrange(256)]) for unit in range(row.units)}
    weights = [dice.randrange(3), 1]
    points = [*rng.uniform(low, high, (20, network.inputs)), low, high]
    values = [network.exact_outputs(rationals(point)) for point in points]
    most = max(sum(w * v for w, v in zip(weights, value, strict=True)) for value in values)
    leaves = [Leaf(weights), Leaf(weights, slopes=slopes)]
    return all(made.upper(made.root, ends, leaf) >= most for leaf in leaves)


def test_bounds_contain_sampled_values() -> None:
    assert all(bound_holds(seed) for seed in range(25))


def too_high(least: int, most: int, exp: int, place: Fraction) -> tuple[int, int]:
    """A tangent lifted off the square."""
    slope, drop = TANGENT(least, most, exp, place)
    return slope, drop - drop // 8


def too_low(least: int, most: int, exp: int) -> Any:
    """A chord that the square crosses."""
    lower, upper, drop, lift, ends = SQUARE_LINE(least, most, exp)
    return lower, upper, drop, lift - abs(lift) // 8, ends


def narrow(least: int, most: int, exp: int) -> Any:
    """The lines of a narrower interval."""
    return SQUARE_LINE(least + (most - least) // 4, most - (most - least) // 4, exp)


TANGENT, SQUARE_LINE = relaxation._tangent, relaxation._square_line


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("_tangent", too_high), ("_square_line", too_low), ("_square_line", narrow)],
)
def test_wrong_lines_are_noticed(name: str, wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relaxation, name, wrong)
    assert not all(bound_holds(seed) for seed in range(25))


# ---- forged proofs


@pytest.fixture(scope="module")
def proved() -> Answer:
    answer = decide(form(), property_of("(assert (>= Y_0 3.01))", 2), QUICK)
    assert answer.proof is not None and "squares" in answer.proof["cases"][0]
    return answer


def accepted(proof: Any) -> bool:
    try:
        return check_bytes(certificate_bytes(proof)).accepted
    except Unreadable:
        return False


def array(entry: Any) -> np.ndarray:
    import base64

    raw = np.frombuffer(base64.b64decode(entry["base64"]), np.dtype(entry["dtype"]))
    return raw.reshape(entry["shape"]).copy()


@pytest.mark.parametrize("name", ["squares", "outputs"])
@pytest.mark.parametrize("factor", [0.0, 0.5, 0.9, -1.0])
def test_squares_that_are_others_are_rejected(proved: Answer, name: str, factor: float) -> None:
    """Smaller squares or weights would make every bound better."""
    forged = copy.deepcopy(proved.proof) or {}
    case = forged["cases"][0]
    values = array(case[name])
    case[name] = encode(values * factor)
    if name == "squares" and factor == -1.0:
        assert accepted(forged)  # (−l·x)² is the same square
    else:
        assert not accepted(forged)


def test_squares_of_another_shape_are_rejected(proved: Answer) -> None:
    for name in ("squares", "outputs"):
        for part in (np.s_[:, 1:], np.s_[:0]):
            forged = copy.deepcopy(proved.proof) or {}
            forged["cases"][0][name] = encode(array(forged["cases"][0][name])[part])
            assert not accepted(forged)
        forged = copy.deepcopy(proved.proof) or {}
        del forged["cases"][0][name]
        assert not accepted(forged)


def test_a_square_that_nothing_reads_beside_one_that_is_read() -> None:
    """(x + x²)² where a second square stands in the block of x²: the proof is readable."""
    squares = layer(0, [[1.0], [2.0]], [0.0, 0.0], "square")
    whole = Block(
        ((0, np.array([[1.0]])), (1, np.array([[1.0, 0.0]]))), np.zeros(1), False, square=True
    )
    network = BlockNetwork(1, (squares, whole, layer(2, [[1.0]], [0.0])))
    answer = decide(network, property_of("(assert (>= Y_0 4.5))", 1), Budget(20, threads=1))
    assert answer.proof is not None
    assert check_bytes(certificate_bytes(answer.proof)).accepted


def test_a_square_that_is_called_linear_is_another_network(proved: Answer) -> None:
    prop = property_of("(assert (>= Y_0 3.01))", 2)
    assert difference(proved.proof or {}, form(), prop) is None
    forged = copy.deepcopy(proved.proof) or {}
    forged["network"]["blocks"][0]["square"] = False
    assert difference(forged, form(), prop) is not None
    forged["network"]["blocks"][0] |= {"square": True, "relu": True}
    assert not accepted(forged)


def test_a_smaller_box_of_the_file_is_noticed(proved: Answer) -> None:
    forged = copy.deepcopy(proved.proof) or {}
    forged["cases"][0]["upper"] = encode(np.array([0.5, 0.5]))
    assert difference(forged, form(), property_of("(assert (>= Y_0 3.01))", 2)) is not None


def test_a_wrong_claim_with_the_same_leaves_is_rejected(proved: Answer) -> None:
    """Y_0 ≥ 2.99 has members; the leaves are those of 3.01."""
    forged = copy.deepcopy(proved.proof) or {}
    case = forged["cases"][0]
    case["constant"] = encode(array(case["constant"]) + 0.02)
    case["outputs"] = encode(array(case["outputs"]) + np.eye(1, 1)[0] * 0)
    assert not accepted(forged)


def test_chains_of_squares_are_refused_before_they_get_long() -> None:
    """x ↦ x² thirty times of 2: a number of 2³⁰ bits."""
    blocks = [layer(k, [[1.0]], [2.0 if k == 0 else 0.0], "square") for k in range(30)]
    network = BlockNetwork(1, (*blocks, layer(30, [[1.0]], [0.0])))
    row = checked_row(network)
    made = Relaxation(row, 0, Work(10**12), set(), False, 8)
    with pytest.raises(ArithmeticError, match="too large"):
        made.upper(made.root, ([0], [1]), Leaf([1]))
