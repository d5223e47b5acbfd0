"""Nodes whose labels would help most: uncertain ones, as far as no label near them covers them
yet."""

from __future__ import annotations

import math
from numbers import Integral

import torch
from torch import Tensor

from graphkeel.core.errors import ConfigError, DataError
from graphkeel.graph.propagate.coverage import greedy_coverage
from graphkeel.graph.propagate.propagator import Propagator


def suggested_nodes(
    propagator: Propagator,
    probabilities: Tensor,
    serving: Tensor,
    judging: Tensor,
    k: object,
    among: object = None,
) -> Tensor:
    """Ids of k nodes, or fewer, best first, int64; none of them has a label: neither those that
    serve and so cover what is near them, ids (L,), nor those that only judge, ids (J,). `among`, a
    mask (N,) or ids, are the nodes to choose from (None: all); `probabilities` (N, n_classes) say
    how uncertain each is."""
    allowed = _allowed(among, len(probabilities))
    allowed[torch.cat([serving, judging])] = False
    wanted = _checked_count(k, int(allowed.sum()))
    return greedy_coverage(propagator, uncertainty(probabilities), serving, allowed, wanted)


def uncertainty(probabilities: Tensor) -> Tensor:
    """Entropy of every node's class probabilities (N, n_classes) as a share of the largest there
    is, shape (N,)."""
    wide = probabilities.double()
    entropy = -(wide * wide.clamp_min(1e-12).log()).sum(dim=1)
    return entropy / math.log(max(2, probabilities.shape[1]))


def _allowed(among: object, n_nodes: int) -> Tensor:
    """Which nodes may be suggested, bool, shape (N,)."""
    if among is None:
        return torch.ones(n_nodes, dtype=torch.bool)
    given = torch.as_tensor(among).cpu()
    if given.dtype == torch.bool:
        if given.shape != (n_nodes,):
            raise DataError(f"among must be a mask of {n_nodes} nodes", got=tuple(given.shape))
        return given.clone()
    is_ids = given.dim() == 1 and not given.is_floating_point()
    if not is_ids or (len(given) and not 0 <= int(given.min()) <= int(given.max()) < n_nodes):
        raise DataError(f"among must hold node ids in 0..{n_nodes - 1}", got=f"{among!r}"[:80])
    allowed = torch.zeros(n_nodes, dtype=torch.bool)
    allowed[given.long()] = True
    return allowed


def _checked_count(k: object, n_allowed: int) -> int:
    """How many suggestions are wanted, checked."""
    if isinstance(k, bool) or not isinstance(k, Integral) or k < 1:
        raise ConfigError("suggest needs a whole number of nodes, at least 1", got=repr(k))
    if not n_allowed:
        raise ConfigError("there is no node without a label to suggest", got=0)
    return int(k)
