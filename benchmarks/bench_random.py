"""Random campaigns against the verifier: no verdict may be wrong. Everything is seeded.

    python benchmarks/bench_random.py                       2,000 loops, 1,000 networks, 500 tuned
    python benchmarks/bench_random.py --only tuned --count 50 --first 1000

loops     random and adversarial ones of the tests in turns: counterexamples are replayed in
          rationals, proofs re-proved by the checker, proved conditions sampled, and all of it held
          against what is known by hand of the adversarial ones, or against a twin.
networks  one input in two thirds of them: then the truth is known, since a piecewise linear
          function of one variable is worked out exactly, piece by piece. Half of these have a
          threshold within 1e-9 to 1e-16 of the truth's edge. With two or three inputs proofs are
          checked and counterexamples replayed.
tuned     loops whose ρ lies within 1e-9 to 1e-16 of the largest V(F(y))/V(y), known exactly: on the
          line, or beside axes of their own; units permuted, and scaled by powers of two.

`unknown` is never wrong. Exits 1 if a verdict is."""

# ruff: noqa: E402  the loops are those of the tests, whose folders have to be found first

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parents[1] / part) for part in ("tests", "tests/verify")]

from reproof import reprove
from scipy.linalg import block_diag
from test_no_wrong_verdict import check_adversary, checked
from test_properties import random_problem

from graphkeel.certificate.encoding import certificate_bytes
from graphkeel.checker import check_bytes
from graphkeel.verify import Budget, Network, Problem, Verdict, verify
from graphkeel.verify.problem import Array
from graphkeel.verify.property.decide import SAT, UNSAT, decide
from graphkeel.verify.property.network import Block, BlockNetwork, append_network
from graphkeel.verify.property.question import Case, Inequality, Property
from graphkeel.verify.rational import nearest_float, rational, rationals, violates
from tally import TALLY

BUDGET = Budget(seconds=600.0, nodes=4000, threads=1)  # nodes end a search, not the clock
COUNTS = {"loops": 2000, "networks": 1000, "tuned": 500}
SHARE = Fraction(1, 8)  # of a state that the other axes keep
Rng = np.random.Generator
Points = list[Fraction]


# ---- exact values of a network of one variable


def values_at(network: BlockNetwork, x: Fraction) -> list[Points]:
    """Values of every block at an input, before its ReLU."""
    outputs, before = [[x]], []
    for block in network.blocks:
        row = rationals(block.bias)
        for source, weight in block.terms:
            for i, line in enumerate(weight):
                row[i] += sum(rational(w) * v for w, v in zip(line, outputs[source], strict=True))
        before.append(row)
        outputs.append([max(v, Fraction(0)) for v in row] if block.relu else row)
    return before


def kinks(network: BlockNetwork, low: Fraction, high: Fraction) -> Points:
    """Inputs from low to high, between neighbours of which the network is affine."""
    points = [low, high]
    for k, block in enumerate(network.blocks):
        if not block.relu:
            continue
        lines = [values_at(network, x)[k] for x in points]
        found = set(points)
        for a, b, here, there in zip(points, points[1:], lines, lines[1:], strict=False):
            signs = [(u, v) for u, v in zip(here, there, strict=True) if u * v < 0]
            found |= {a + (b - a) * u / (u - v) for u, v in signs}
        points = sorted(found)
    return points


def has_member(network: BlockNetwork, low: Fraction, high: Fraction) -> bool:
    """Whether all outputs are ≥ 0 somewhere between low and high."""
    points = kinks(network, low, high)
    lines = [values_at(network, x)[-1] for x in points]
    for here, there in zip(lines, lines[1:] or lines, strict=False):
        first, last = Fraction(0), Fraction(1)
        for u, v in zip(here, there, strict=True):
            if u < 0 and v < 0:
                last = Fraction(-1)
            elif u < 0 or v < 0:
                cross = u / (u - v)
                first, last = (max(first, cross), last) if u < 0 else (first, min(last, cross))
        if first <= last:
            return True
    return False


# ---- networks


def random_network(rng: Rng, inputs: int) -> BlockNetwork:
    """Up to three ReLU blocks, each of which may read the input and any block before it."""
    blocks: list[Block] = []
    widths = [inputs]
    for last in [False] * int(rng.integers(1, 4)) + [True]:
        width = int(rng.integers(1, 3)) if last else int(rng.integers(2, 6))
        reads = sorted({len(blocks), *(k for k in range(len(blocks)) if rng.random() < 0.3)})
        terms = tuple((k, coarse(rng, width, widths[k])) for k in reads)
        blocks.append(Block(terms, coarse(rng, width), relu=not last))
        widths.append(width)
    return BlockNetwork(inputs, tuple(blocks))


def coarse(rng: Rng, *shape: int) -> Array:
    """Weights, of eight binary digits in half of the calls."""
    found: Array = rng.normal(size=shape)
    return np.round(256 * found) / 256 if rng.random() < 0.5 else found


def threshold(rng: Rng, network: BlockNetwork) -> float:
    """A threshold for output 0 over [−1, 1]: near its maximum, or anywhere."""
    points = kinks(network, Fraction(-1), Fraction(1))
    top = max(values_at(network, x)[-1][0] for x in points)
    if rng.random() < 0.5:
        return float(top) + float(rng.normal())
    return nearest_float(top * (1 + Fraction(nudge(rng))))


def nudge(rng: Rng) -> float:
    """±10^-k, k from 9 to 16, or 0."""
    return float(rng.choice([-1.0, 0.0, 1.0])) * 10.0 ** -int(rng.integers(9, 17))


def network_case(seed: int) -> str:
    """Decide whether output 0 reaches a threshold while the others are ≥ 0: how that went."""
    rng = np.random.default_rng([seed, 11])
    inputs = 1 if seed % 3 else int(rng.integers(2, 4))
    network = random_network(rng, inputs)
    level = threshold(rng, network) if inputs == 1 else float(rng.normal())
    ends = [(Fraction(-1), Fraction(1))] * inputs
    one = Fraction(1)
    asked = [Inequality({inputs: one}, -Fraction(level))]
    asked += [Inequality({inputs + j: one}, Fraction(0)) for j in range(1, network.outputs)]
    case = Case.of(ends, asked, network.outputs)
    answer = decide(network, Property(inputs, network.outputs, (case,)), BUDGET)
    if answer.verdict == SAT and not case.holds_at(network, np.array(answer.inputs)):
        return "WRONG: the counterexample is none"
    if answer.proof is not None and not check_bytes(certificate_bytes(answer.proof)).accepted:
        return "WRONG: the proof is rejected"
    if inputs > 1:
        return f"{answer.verdict}, 2 or 3 inputs"
    truth = SAT if has_member(case.joined(network), *ends[0]) else UNSAT
    if answer.verdict not in (truth, "unknown"):
        return f"WRONG: {answer.verdict}, and {truth} is true"
    return f"{answer.verdict}, {truth} is true"


# ---- loops with ρ near the largest rate


def line_loop(rng: Rng) -> tuple[Network, Network, Fraction]:
    """F and V on [−1, 1] with V > 0 but at 0, and the radius of the hole."""
    inner, outer = coarse(rng, int(rng.integers(2, 6)), 1), coarse(rng, 1, 1)
    hidden = len(inner)
    loop = Network.of((inner, coarse(rng, hidden)), (coarse(rng, 1, hidden), 0.1 * outer[0]))
    bends = int(rng.integers(0, 3))
    rows = np.vstack([[[1.0]], [[-1.0]], coarse(rng, bends, 1)])
    offsets = np.concatenate([np.zeros(2), -np.abs(coarse(rng, bends)) / 4])
    weights = np.abs(coarse(rng, 1, bends + 2)) + 0.25
    lyapunov = Network.of((rows, offsets), (weights, np.zeros(1)))
    return loop, lyapunov, Fraction(1, 2 ** int(rng.integers(2, 5)))


def composed(loop: Network, lyapunov: Network) -> BlockNetwork:
    """y -> (V(F(y)), V(y))."""
    blocks: list[Block] = []
    there = append_network(blocks, lyapunov, append_network(blocks, loop, 0))
    here = append_network(blocks, lyapunov, 0)
    place = np.eye(2)
    blocks.append(Block(((there, place[:, :1]), (here, place[:, 1:])), np.zeros(2), relu=False))
    return BlockNetwork(1, tuple(blocks))


def largest_rate(both: BlockNetwork, radius: Fraction) -> Fraction:
    """max V(F(y))/V(y) outside the hole: between kinks the rate is monotone."""
    ends = ((Fraction(-1), -radius), (radius, Fraction(1)))
    rates = []
    for low, high in ends:
        for x in kinks(both, low, high):
            after, before = values_at(both, x)[-1]
            rates.append(after / before)
    return max(rates)


def holds(both: BlockNetwork, radius: Fraction, rho: Fraction, beside: bool) -> bool:
    """Whether V falls by ρ outside the hole. Beside other axes, with V + Σ|y_i|, a state is outside
    it, too, where some |y_i| ≥ r, whatever y_0 is, and then has (ρ − 1/8)·r or more in hand."""
    if largest_rate(both, radius) > rho:
        return False
    if not beside:
        return True
    spare = (rho - SHARE) * radius
    inside = [values_at(both, x)[-1] for x in kinks(both, -radius, radius)]
    return rho >= SHARE and all(after - rho * before <= spare for after, before in inside)


def widened(rng: Rng, network: Network, axes: int, last: Array) -> Network:
    """A network on the line beside other axes, its units permuted and scaled.

    Args:
        last: the outer weights of the new units, shape (outputs of an axis, 2).
    """
    first, outer = network.layers
    pair = np.array([[1.0], [-1.0]])
    rows = block_diag(first.weight, *[pair] * axes)
    offsets = np.concatenate([first.bias, np.zeros(2 * axes)])
    if outer.weight.shape[0] == 1 and last.min() >= 0.0:  # V: a sum
        weight = np.hstack([outer.weight, *[last] * axes])
        bias = outer.bias
    else:
        weight = block_diag(outer.weight, *[last] * axes)
        bias = np.concatenate([outer.bias, np.zeros(axes)])
    order = rng.permutation(len(rows))
    gains = 2.0 ** rng.integers(-30, 31, size=len(rows))
    inner = (rows[order] * gains[:, None], offsets[order] * gains)
    return Network.of(inner, (weight[:, order] / gains, bias))


def tuned_case(seed: int) -> str:
    """Decide the decrease of a tuned loop: how that went."""
    rng = np.random.default_rng([seed, 13])
    loop, lyapunov, radius = line_loop(rng)
    rate = Fraction(1)
    while rate >= 1:  # nearer to Y, until there is room below 1
        first, last = loop.layers
        loop = Network.of((first.weight, first.bias), (last.weight / 2, last.bias / 2))
        both = composed(loop, lyapunov)
        rate = largest_rate(both, radius)
    rho = min(nearest_float(rate * (1 + Fraction(nudge(rng)))), 1.0 - 2.0**-53)
    axes = int(rng.integers(0, 3))
    truth = holds(both, radius, Fraction(rho), axes > 0)
    wide = (
        widened(rng, loop, axes, float(SHARE) * np.array([[1.0, -1.0]])),
        widened(rng, lyapunov, axes, np.ones((1, 2))),
    )
    n = 1 + axes
    problem = Problem(
        *wide, -np.ones(n), np.ones(n), np.zeros(n), hole_radius=float(radius), rho=rho
    )
    answer = verify(problem, "auto", BUDGET, ("decrease",))["decrease"]
    if answer.counterexample is not None and not violates(
        problem, "decrease", answer.counterexample
    ):
        return "WRONG: the counterexample is none"
    if answer.proof is not None:
        reprove(problem, answer.proof)
    if answer.verdict is (Verdict.REFUTED if truth else Verdict.PROVED):
        return f"WRONG: {answer.verdict.value}, and it {'holds' if truth else 'fails'}"
    return f"{answer.verdict.value}, it {'holds' if truth else 'fails'}"


def loop_case(seed: int) -> str:
    """A random loop and an adversarial one in turns: how that went."""
    TALLY.clear()
    if seed % 2:
        check_adversary(seed, peers=False)
    else:
        checked("random", random_problem(seed), seed, peers=False)
    kinds = [part for (of, part), _ in TALLY.items() if of == "verdicts, by loop"]
    return "adversarial" if seed % 2 else ", ".join(sorted(kinds))


CASES: dict[str, Callable[[int], str]] = {
    "loops": loop_case,
    "networks": network_case,
    "tuned": tuned_case,
}


def campaign(name: str, first: int, count: int) -> int:
    """Run the cases of one kind: how many verdicts were wrong."""
    began = time.process_time()
    found: Counter[str] = Counter()
    for seed in range(first, first + count):
        try:
            outcome = CASES[name](seed)
        except Exception as error:
            outcome = f"WRONG: {type(error).__name__} {error}"
        found[outcome] += 1
        if outcome.startswith("WRONG"):
            print(f"{name}, seed {seed}: {outcome}", flush=True)
    wrong = sum(times for outcome, times in found.items() if outcome.startswith("WRONG"))
    seconds = time.process_time() - began
    print(f"{name}, seeds {first} to {first + count - 1}: {wrong} wrong, {seconds:.0f} s")
    for outcome, times in sorted(found.items()):
        print(f"  {times:>5}  {outcome}")
    sys.stdout.flush()
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=CASES, help="one of the campaigns")
    parser.add_argument("--count", type=int, help="how many cases (default: all)")
    parser.add_argument("--first", type=int, default=1_000_000, help="the first seed")
    args = parser.parse_args()
    names = [args.only] if args.only else list(CASES)
    wrong = [campaign(name, args.first, args.count or COUNTS[name]) for name in names]
    return int(any(wrong))


if __name__ == "__main__":
    sys.exit(main())
