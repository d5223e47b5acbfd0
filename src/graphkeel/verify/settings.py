"""Settings of the engines, one frozen object each, and the limits on files.

They decide how time and memory are spent, and at most whether an answer is `unknown`: each bound,
counterexample and proof holds whatever they are. No stored study chose a number unless its line
says so."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(frozen=True)
class CellSettings:
    """Exact linear programs on the activation cells of a box, beside cheap cuts."""

    share: float = 0.1  # of the processor time so far that may go into cells
    max_share: float = 0.8  # the same, doubled after every box that its cells proved
    min_seconds: float = 1.0  # of one attempt: a tight box may need that much to be decided at all
    cuts: int = 12  # cuts that left a box with few units undecided, before its cells are tried
    cuts_per_axis: int = 6  # added to `cuts` for each axis of the box
    retry_after: int = 64  # cuts after an attempt that failed
    postpone: int = 3  # cuts after an attempt that the share of time did not allow
    nodes: int = 256  # of the tree of unit cuts of one box
    complete_nodes: int = 64  # of that tree with the sides that are only touched, for storing it
    negligible: float = 1e-9  # multipliers and slopes below this are taken for zero
    violation_price: float = 1e4  # of breaking a constraint, against the size of the row


@dataclass(frozen=True)
class CouplingSettings:
    """Matrices Θ that explain V∘F by V."""

    lp_units: int = 40  # units of V up to which a linear program with K² variables picks Θ
    samples: int = 64  # states for the mean slope of F and the mean value of V's units
    halvings: float = 4.0  # by which a box must have shrunk to get a coupling of its own
    nodes: int = 1500  # boxes explored a coupling: as long as its linear program takes
    slope_change: float = 0.25  # the share by which F's slope must differ there
    own_terms: float = 0.3  # weight of V's own terms against the remainder; tuned on trained loops


@dataclass(frozen=True)
class LevelSettings:
    """Decrease of a gauge by slices c₁ ≤ V ≤ c₂; levels are shares of c₂."""

    thinnest: float = 0.85  # a slice of one leaf reaches at least down to this
    thickest: float = 0.2  # and at most down to this
    halvings: int = 6  # steps of the search for the thickest slice of one leaf
    ratios: tuple[float, ...] = (0.8, 0.9, 0.96)  # lower ends of slices with cuts, tried in turn
    nodes: tuple[int, ...] = (600, 2000, 8000)  # bounded parts of a slice, for each of `ratios`
    candidates: int = 3  # units whose cut is tried out
    slices: int = 400  # of one row
    last: float = 0.5  # of the least V around the hole: the last level
    shared_gap: float = 0.5  # share of a unit's gap that counts for every chord behind it


@dataclass(frozen=True)
class SearchSettings:
    """Branch and bound over boxes."""

    first_piece: int = 1024  # nodes before a violation is searched for and other workers join
    piece: int = 8192  # nodes of one piece of work, at most
    piece_seconds: float = 0.25  # that a piece should take
    open_boxes: int = 4096  # of one worker
    stored_bytes: int = 1 << 30  # of a tree that is still stored
    stuck_boxes: int = 200  # too small to cut, after which a question is given up
    unconfirmed: int = 20  # states after which only clearly higher ones are tested
    narrowest: float = 2.0**-40  # share of the root's width below which an axis is not cut
    clipped_share: float = 0.2  # of an axis, clipped off, worth a cut where no proof is wanted
    cells: CellSettings = field(default_factory=CellSettings)


class KernelSettings(NamedTuple):
    """Settings that the compiled kernel reads; the defaults are those of loops."""

    few_units: int = 12  # undecided units up to which a box's cells can be taken one by one
    slope_steps: int = 24  # Polyak steps on the lower slopes of the units that read the inputs
    all_steps: int = 0  # before these, on the slopes of all units; each needs the whole network
    dual_every: int = 4  # steps between two tests whether any slopes can close the box
    combined_weight: float = 2.0  # of the combined inequality in the choice of a cut, one alone: 1
    near_zero: float = 0.0  # a violation missed by this little is worth an exact test


@dataclass(frozen=True)
class BranchSettings:
    """The branch engine. Seconds are those of the budget's clock."""

    first_turn: float = 0.1  # seconds of a condition before the next; doubled every round
    # seconds of boxes and then of levels, in turns; boxes have the rest
    turns: tuple[tuple[float, float], ...] = (
        (0.5, 1.0),
        (2.0, 2.0),
        (4.0, 4.0),
        (8.0, 8.0),
        (16.0, 32.0),
        (32.0, 64.0),
    )
    falsify_after: float = 0.8  # seconds of a condition before falsification from new states
    falsify_share: float = 0.15  # of the condition's seconds from then on
    falsify_runs: int = 50  # in one turn
    max_magnitude: float = 1e120  # of any product: NaN of an overflow would slip through max()
    max_margin: float = 1e-6  # on the faces of a homogeneous loop, as a share of V's size there
    kernel: KernelSettings = field(default_factory=KernelSettings)
    search: SearchSettings = field(default_factory=SearchSettings)
    couplings: CouplingSettings = field(default_factory=CouplingSettings)
    levels: LevelSettings = field(default_factory=LevelSettings)


@dataclass(frozen=True)
class PropertySettings:
    """The attack on a property's cases and their branch and bound."""

    first_turn: float = 0.5  # seconds of a case before the next; doubled every round
    attack_share: float = 0.1  # of the time, for attacks from new inputs
    max_magnitude: float = 1e100  # of any value: NaN of an overflow would slip through max()
    kernel: KernelSettings = field(
        default_factory=lambda: KernelSettings(-1, slope_steps=0, all_steps=6, near_zero=1e-9)
    )
    search: SearchSettings = SearchSettings(first_piece=64, stored_bytes=180 << 20)


@dataclass(frozen=True)
class SquareSettings:
    """The choice of squares for quadratic outputs."""

    samples: int = 8_000  # random inputs
    nearest: int = 100  # of these, those nearest to a violation, which the choice is made for
    width: float = 0.05  # of the boxes that it is made for, as a share of the root's half
    ridge: float = 1e-3  # added to the moments, as a share of them
    floor: float = 1e-4  # what is added at least, as a share of that of their mean
    most_error: float = 1e-6  # of the remainder, as a share of the output; else nothing is changed
    least: float = 1e-13  # of the largest eigenvalue; what is smaller is left to the remainder
    most_places: int = 400  # inputs and units up to which it is made, in rational numbers


@dataclass(frozen=True)
class AttackSettings:
    """The search for a violation by sampling, gradients and linear programs; the defaults are those
    of loops."""

    samples: int = 1024  # random inputs
    starts: int = 1024  # of these, how many begin a gradient search
    steps: int = 40  # of the gradient search
    eager: bool = False  # whether the best point of every step is tested
    near_zero: float = 0.0  # a violation missed by this little is worth an exact test
    quick_samples: int = 64  # of the attempt before any solver
    quick_steps: int = 12
    climbs: int = 6  # half of the points taken into linear programs
    cells: int = 8  # that one climb may walk through
    confirming_climbs: int = 40  # from points that boxes point to
    chunk: int = 256  # inputs whose values fit into the processor's cache
    doubt: float = 1e-6  # relative margin beyond which floats cannot be wrong about the sign


@dataclass(frozen=True)
class FileLimits:
    """Limits on untrusted files, tested before anything is allocated."""

    problem_bytes: int = 64 << 20  # of a problem file, and of what an .npz unpacks to
    problem_layers: int = 32
    onnx_bytes: int = 64 << 20
    onnx_nodes: int = 2_000
    onnx_numbers: int = 8_000_000  # elements of one constant; a quarter of all weights
    vnnlib_bytes: int = 16 << 20
    vnnlib_cases: int = 10_000
    vnnlib_depth: int = 64  # of brackets
    vnnlib_digits: int = 60  # of a number
    vnnlib_variables: int = 100_000


SEARCH = SearchSettings()
BRANCH = BranchSettings()
PROPERTY = PropertySettings()
SQUARES = SquareSettings()
FALSIFY = AttackSettings()
CASE_ATTACK = AttackSettings(starts=128, steps=24, eager=True, near_zero=1e-9, climbs=0, doubt=1e-9)
LIMITS = FileLimits()
