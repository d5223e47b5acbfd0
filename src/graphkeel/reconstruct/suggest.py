"""`suggest`: the nodes whose labels would help most. Uncertain nodes count, as far as no label near
them covers them yet."""

from __future__ import annotations

import math
from numbers import Integral

import torch
from torch import Tensor

from graphkeel.core.errors import ConfigError, DataError


def uncertainty(probabilities: Tensor) -> Tensor:
    """Entropy of every node's classes as a share of the largest there is, shape (N,).

    Args:
        probabilities: of the classes, shape (N, n_classes).
    """
    wide = probabilities.double()
    entropy = -(wide * wide.clamp_min(1e-12).log()).sum(dim=1)
    return entropy / math.log(max(2, probabilities.shape[1]))


def allowed_nodes(among: object, n_nodes: int) -> Tensor:
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


def checked_count(k: object, n_allowed: int) -> int:
    """How many suggestions are wanted, checked."""
    if isinstance(k, bool) or not isinstance(k, Integral) or k < 1:
        raise ConfigError("suggest needs a whole number of nodes, at least 1", got=repr(k))
    if not n_allowed:
        raise ConfigError("there is no node without a label to suggest", got=0)
    return int(k)
