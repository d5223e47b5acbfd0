"""Networks written down by hand, as a certificate's chains of factors."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from graphkeel.certificate import Source, chain


def anchored_lyapunov(R: ArrayLike, v: ArrayLike, equilibrium: ArrayLike) -> Source:
    """V(y) = vᵀrelu(R(y − Y)), R of shape (units, n)."""
    outer = np.atleast_2d(np.asarray(v))
    return (chain((None, -np.asarray(equilibrium)), (R, None)), chain((outer, None)))
