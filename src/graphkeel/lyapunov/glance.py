"""Invariance at a glance: is one leaf per row, the whole box, already a proof?

Training aims at interval bounds that keep F(D) inside D, so that the proof is a tree without a single cut. Whether it
is one, the certificate's own check says, rigorously and in milliseconds; no engine has to start, and none to compile.
"""

from __future__ import annotations

import time

import numpy as np

from graphkeel.certificates.branch_proof import check_branch
from graphkeel.certificates.schema import loop_of
from graphkeel.certificates.trees import Refused
from graphkeel.verify import ConditionReport, Problem, Verdict
from graphkeel.verify.query import rows_of
from graphkeel.verify.tree import Piece, tree_entry

WHOLE_BOX = -2  # a relaxed leaf with default slopes (docs/proof-format.md)


def glance(problem: Problem, condition: str = "invariance") -> ConditionReport:
    """Proved, with its proof, or unknown."""
    started = time.monotonic()
    units = problem.closed_loop.layers[0].n_out
    leaf = Piece(np.array([WHOLE_BOX], np.int8), np.zeros(0), np.zeros((0, units), np.uint8))
    trees = [tree_entry(row, leaf, []) for row in rows_of(problem, condition)]
    proof = {"version": 1, "kind": "branch", "condition": condition, "trees": trees}
    try:
        leaves = check_branch(loop_of(problem), condition, proof)
    except Refused as gap:
        return ConditionReport(condition, Verdict.UNKNOWN, "glance", str(gap), seconds=time.monotonic() - started)
    seconds, reason = time.monotonic() - started, f"bounded on the whole box, {leaves} rows"
    return ConditionReport(condition, Verdict.PROVED, "glance", reason, seconds=seconds, nodes=leaves, proof=proof)
