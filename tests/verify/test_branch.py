"""The branch engine on loops with known truth, and what its answers must carry."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from known_loops import ALL
from loops import (
    Known,
    base,
    corner_only,
    no_hole,
    norm_one,
    rounding_trap,
    stable,
    tangent,
)
from reproof import reprove

from graphkeel.core.files import user_cache
from graphkeel.verify import Budget, Network, Problem, Verdict, verify
from graphkeel.verify.attack import ConditionAttack
from graphkeel.verify.boxes.explore import explore
from graphkeel.verify.boxes.question import row_question
from graphkeel.verify.branch import NOT_STORED, BranchVerifier
from graphkeel.verify.conditions import rows_of
from graphkeel.verify.gauge import simplex
from graphkeel.verify.rational import violates
from graphkeel.verify.search import Outcome, Search
from graphkeel.verify.settings import BranchSettings, SearchSettings
from graphkeel.verify.warm import load_kernels


@pytest.fixture(autouse=True)
def boxes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Levels of V take over after some time on a clock; what is tested here are the boxes."""
    monkeypatch.setattr(BranchVerifier, "settings", BranchSettings(turns=()))


# The nodes end a search that does not; the seconds are for a busy machine.
BUDGET = Budget(seconds=600.0, nodes=200_000)
EXPECTED = {True: Verdict.PROVED, False: Verdict.REFUTED, None: Verdict.UNKNOWN}
ENGINES = ("auto", "branch", "contraction", "falsify")


@pytest.mark.parametrize("known", ALL, ids=lambda known: known.name)
@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_is_right_or_says_unknown(known: Known, engine: str) -> None:
    report = verify(known.problem, engine, BUDGET)
    for condition in report.conditions:
        truth = known.truth[condition.condition]
        assert condition.verdict in (EXPECTED[truth], Verdict.UNKNOWN), condition.condition
        if condition.verdict is Verdict.REFUTED:
            assert condition.counterexample is not None
            assert violates(known.problem, condition.condition, condition.counterexample)
        if condition.verdict is Verdict.UNKNOWN:
            assert condition.reason


@pytest.mark.parametrize("known", ALL, ids=lambda known: known.name)
def test_branch_decides_what_can_be_decided(known: Known) -> None:
    report = verify(known.problem, "branch", BUDGET)
    for condition in known.decisive:
        assert report[condition].verdict is EXPECTED[known.truth[condition]], condition


@pytest.mark.parametrize("known", ALL, ids=lambda known: known.name)
def test_every_proof_is_accepted_by_exact_arithmetic(known: Known) -> None:
    for condition in verify(known.problem, "branch", BUDGET).conditions:
        if condition.verdict is Verdict.PROVED and condition.reason != NOT_STORED:
            assert reprove(known.problem, condition.proof) > 0


def test_a_violation_below_every_tolerance_is_not_proved_away() -> None:
    problem = rounding_trap().problem
    assert verify(problem, "branch", BUDGET)["decrease"].verdict is not Verdict.PROVED
    assert verify(problem, "auto", BUDGET)["decrease"].verdict is not Verdict.PROVED


def test_a_violation_of_1e_12_is_not_proved_away_without_homogeneity() -> None:
    """That trap where the loop has real offsets, so that only the trees over the whole box are
    left."""
    eye = np.eye(1)
    loop = Network.of(
        (eye, np.array([2.0])), (0.5 * eye, np.array([-1.0 + 1e-12]))
    )  # 0.5·y + 1e-12 for y ≥ −2
    problem = Problem(
        loop,
        norm_one(np.zeros(1)),
        -np.ones(1),
        np.ones(1),
        np.zeros(1),
        0.25,
        rho=0.5,
        positivity=0.5,
    )
    report = verify(problem, "branch", BUDGET)["decrease"]
    assert report.verdict is Verdict.REFUTED
    relaxed = replace(problem, rho=0.5 + 1e-11)
    assert verify(relaxed, "branch", BUDGET)["decrease"].verdict is Verdict.PROVED


def test_unknown_names_the_budget_that_ran_out() -> None:
    rng = np.random.default_rng(0)
    n = 6
    loop = Network.of(
        (rng.normal(size=(16, n)), rng.normal(size=16)),
        (0.02 * rng.normal(size=(n, 16)), np.zeros(n)),
    )
    v = Network.of((rng.normal(size=(16, n)), np.zeros(16)), (np.ones((1, 16)), np.zeros(1)))
    problem = Problem(loop, v, -np.ones(n), np.ones(n), np.zeros(n), 1e-3, rho=1.0)
    report = BranchVerifier().solve(problem, Budget(seconds=600.0, nodes=50), ("decrease",))
    if report.verdict is Verdict.UNKNOWN:
        assert "node budget" in report["decrease"].reason
    timed_out = BranchVerifier().solve(tangent().problem, Budget(seconds=0.0), ("decrease",))
    assert timed_out.verdict is Verdict.UNKNOWN
    assert timed_out["decrease"].reason


def test_the_answer_does_not_depend_on_the_number_of_threads() -> None:
    problem = replace(corner_only().problem, rho=0.75)
    one = BranchVerifier().solve(problem, Budget(threads=1))
    many = BranchVerifier().solve(problem, Budget(threads=4))
    assert [c.verdict for c in one.conditions] == [c.verdict for c in many.conditions]
    assert [c.proof for c in one.conditions] == [c.proof for c in many.conditions]


def test_a_homogeneous_loop_is_proved_without_a_hole() -> None:
    report = verify(no_hole().problem, "branch", BUDGET)
    assert report.verdict is Verdict.PROVED
    proof = report["decrease"].proof
    assert proof is not None and proof["kind"] == "homogeneous"
    assert len(proof["faces"]) == 4


def test_a_residual_needs_a_hole_that_outweighs_it() -> None:
    """F(Y) misses Y by 2⁻³⁰: no hole, no proof; a hole of 1/8 is enough."""
    first, last = base("x", 0.5 * np.eye(2)).closed_loop.layers
    loop = Network.of((first.weight, first.bias), (last.weight, np.array([2.0**-30, 0.0])))
    problem = base("missed", 0.5 * np.eye(2), closed_loop=loop)
    report = verify(problem, "branch", BUDGET)["decrease"]
    assert report.verdict is Verdict.PROVED and report.proof is not None
    assert report.proof["kind"] == "homogeneous"
    tight = verify(replace(problem, hole_radius=0.0), "branch", BUDGET)["decrease"]
    assert tight.verdict is Verdict.REFUTED


def nearly_linear(n: int, seed: int) -> Problem:
    """A trained loop's shape: F close to 0.45·y, V a gauge whose directions are no axes, a hole, ρ
    = 0.8."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(n, n)))[0]
    rows = np.vstack(
        [turn, -turn @ np.diag(0.5 + rng.random(n)), rng.normal(size=(2, n)) / np.sqrt(n)]
    )
    v = Network.of((rows, np.zeros(len(rows))), (0.5 + rng.random((1, len(rows))), np.zeros(1)))
    kinks = rng.normal(size=(6, n)) / np.sqrt(n)
    first = np.vstack([np.eye(n), kinks])
    offsets = np.concatenate([np.full(n, 2.0), 0.3 * rng.normal(size=6)])
    last = np.hstack([0.45 * np.eye(n), 0.05 * rng.normal(size=(n, 6))])
    loop = Network.of((first, offsets), (last, -last @ np.maximum(offsets, 0.0)))
    return Problem(loop, v, -np.ones(n), np.ones(n), np.zeros(n), 0.1, rho=0.8, positivity=0.05)


def test_couplings_shrink_the_tree_and_are_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = nearly_linear(5, seed=1)
    seen = verify(problem, "branch", BUDGET, ("decrease",))["decrease"]
    assert seen.verdict is Verdict.PROVED and seen.proof is not None
    assert seen.proof["trees"][0]["couplings"]["shape"][0] >= 1
    assert reprove(problem, seen.proof) > 0
    monkeypatch.setattr("graphkeel.verify.boxes.coupling.find_coupling", lambda *_: None)
    blind = verify(problem, "branch", BUDGET, ("decrease",))["decrease"]
    assert blind.nodes > 4 * seen.nodes


@pytest.mark.parametrize("known", ALL, ids=lambda known: known.name)
def test_boxes_alone_decide_what_can_be_decided(
    known: Known, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refutations mostly come from gradients; without these, the boxes must reach the same
    verdicts."""
    for name in ("quick", "search_from"):
        monkeypatch.setattr(ConditionAttack, name, lambda *_: None)
    test_branch_decides_what_can_be_decided(known)


def test_many_pieces_from_many_threads_fit_together() -> None:
    settings = BranchSettings(turns=(), search=SearchSettings(first_piece=16, piece=16))
    problem = nearly_linear(4, seed=2)
    report = BranchVerifier(settings).decide(problem, "decrease", Budget(threads=4))
    assert report.verdict is Verdict.PROVED and report.proof is not None and report.nodes > 100
    leaves = reprove(problem, report.proof)
    assert 2 * leaves - 1 == report.nodes


def test_a_failing_worker_is_an_error_and_not_a_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    problem = nearly_linear(4, seed=2)
    kernel = row_question(rows_of(problem, "decrease")[0], problem)
    settings = SearchSettings(first_piece=16, piece=16)
    search = Search(kernel, Budget(threads=2), 1e18, NoSearch(), settings=settings)
    monkeypatch.setattr(kernel, "number_for", lambda *a: a[1] or 0 if search.nodes == 0 else fail())
    with pytest.raises(MemoryError):
        search.run()


class NoSearch:
    def __call__(self, point: object) -> None:
        return None

    def search(self) -> None:
        return None


def test_magnitudes_near_overflow_are_left_alone() -> None:
    huge = Network.of((1e100 * np.eye(2), np.zeros(2)), (1e100 * np.eye(2), np.zeros(2)))
    problem = replace(stable().problem, closed_loop=huge)
    assert BranchVerifier().supports(problem) is not None
    assert verify(problem, "branch").verdict is Verdict.UNKNOWN


class Endless:
    """Searches of some rows that never end, on a clock that only they move."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, names: Callable[[str], bool]) -> None:
        self.seconds = 0.0
        self.names = names
        self.real = Search.run
        monkeypatch.setattr(Search, "run", lambda search: self.run(search))
        monkeypatch.setattr(Search, "resume", lambda search, deadline, last: self.until(deadline))
        monkeypatch.setattr(Budget, "now", lambda budget: self.seconds)
        for name in ("quick", "search_from"):
            monkeypatch.setattr(ConditionAttack, name, lambda *_: None)

    def run(self, search: Search) -> Outcome:
        return self.until(search.deadline) if self.names(search.kernel.name) else self.real(search)

    def until(self, deadline: float) -> Outcome:
        self.seconds = max(self.seconds, deadline)
        return Outcome(reason="time budget: stub", timed_out=True)


def growing() -> Problem:
    """F doubles the distance; V has weights of both signs, so that only boxes know of it."""
    first = np.concatenate([np.eye(2), -np.eye(2), np.ones((1, 2))])
    v = Network.of((first, np.zeros(5)), (np.array([[1.0, 1.0, 1.0, 1.0, -0.01]]), np.zeros(1)))
    loop = Network.of((np.eye(2), np.zeros(2)), (2.0 * np.eye(2), np.zeros(2)))
    return Problem(loop, v, -np.ones(2), np.ones(2), np.zeros(2), 0.1, rho=0.9, positivity=0.1)


def test_no_condition_waits_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Positivity would use up all of the time; decrease is refuted after the first turn of it."""
    endless = Endless(monkeypatch, lambda name: name != "decrease")
    alone = BranchVerifier().solve(growing(), Budget(20.0, threads=1), ("positivity",))
    assert alone["positivity"].reason == "time budget: stub" and endless.seconds == 20.0
    endless.seconds = 0.0
    budget = Budget(20.0, threads=1, first_refutation=True)
    both = BranchVerifier().solve(growing(), budget, ("positivity", "decrease"))
    assert both["decrease"].verdict is Verdict.REFUTED
    assert both["positivity"].reason == "not asked: decrease is refuted"
    assert endless.seconds < 1.0


def test_what_one_sample_of_states_misses_another_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Boxes never end, and the first two samples show nothing."""
    endless = Endless(monkeypatch, lambda name: True)
    seeds = []

    def find(_: ConditionAttack, seed: int) -> np.ndarray | None:
        seeds.append(seed)
        return np.ones(2) if seed == 2 else None

    monkeypatch.setattr(ConditionAttack, "search_from", find)
    report = BranchVerifier().solve(growing(), Budget(60.0, threads=1), ("decrease",))
    assert report["decrease"].verdict is Verdict.REFUTED
    assert seeds == [1, 2] and endless.seconds < 10.0


def test_looking_again_does_not_use_up_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Falsification that takes five seconds and finds nothing, beside boxes that never end."""
    endless = Endless(monkeypatch, lambda name: True)
    seeds = []

    def find(_: ConditionAttack, seed: int) -> None:
        seeds.append(seed)
        endless.seconds += 5.0

    monkeypatch.setattr(ConditionAttack, "search_from", find)
    report = BranchVerifier().solve(growing(), Budget(100.0, threads=1), ("decrease",))
    assert report["decrease"].reason == "time budget: stub"
    assert seeds == list(range(1, len(seeds) + 1)) and 1 <= len(seeds) <= 4


def test_conditions_share_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    Endless(monkeypatch, lambda name: True)
    names = ("positivity", "decrease", "invariance")
    report = BranchVerifier().solve(growing(), Budget(60.0, threads=1), names)
    assert [answer.reason for answer in report.conditions] == ["time budget: stub"] * 3
    assert report.seconds == pytest.approx(60.0)
    assert [answer.seconds for answer in report.conditions] == pytest.approx([20.0] * 3, abs=1.0)


def test_the_portfolio_shares_the_time_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    endless = Endless(monkeypatch, lambda name: name != "decrease")
    budget = Budget(20.0, threads=1, first_refutation=True)
    report = verify(growing(), "auto", budget, ("positivity", "decrease"))
    assert report.verdict is Verdict.REFUTED and endless.seconds < 1.0


def test_all_kernels_load_and_are_cached_in_the_users_folder() -> None:
    assert load_kernels() >= 0.0
    folder = os.environ.get("NUMBA_CACHE_DIR") or user_cache() / "kernels"
    for kernel in (explore, simplex.maximise):
        assert kernel._cache.cache_path.startswith(str(folder))
