"""Compiled kernels, loaded before a question is asked: compiling them takes half a minute once."""

from __future__ import annotations

import time
from functools import cache

import numpy as np


@cache
def load_kernels() -> float:
    """Load the kernels, compiled if they are not in the cache, so that no search pays for it; the
    seconds that the first call took."""
    from graphkeel.verify.attack import ConditionAttack
    from graphkeel.verify.boxes.question import row_question
    from graphkeel.verify.conditions import rows_of
    from graphkeel.verify.gauge.simplex import load_simplex
    from graphkeel.verify.problem import Network, Problem
    from graphkeel.verify.result import Budget
    from graphkeel.verify.search import Search

    start = time.monotonic()
    network = Network.of((np.eye(1), np.zeros(1)), (np.eye(1), np.zeros(1)))
    tiny = Problem(network, network, np.array([1.0]), np.array([2.0]), np.array([1.0]), rho=0.5)
    question = row_question(rows_of(tiny, "decrease")[0], tiny)
    attack = ConditionAttack(tiny, "decrease")
    attack.searched = True
    Search(question, Budget(threads=1), start + 1.0, attack).run()
    load_simplex()
    return time.monotonic() - start
