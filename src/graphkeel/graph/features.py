"""Feature reduction with a real fit/transform split, so that what was fitted applies to other
data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.decomposition import PCA

from graphkeel.core.errors import ConfigError, DataError
from graphkeel.core.memory import require_memory

Dense = NDArray[np.float32]
Features: TypeAlias = Any  # a dense float32 array or a scipy CSR matrix (scipy ships no types)


@dataclass(frozen=True)
class _Preparation:
    """How features are prepared.

    Attributes:
        pca: components, the paper's.
    """

    pca: int = 20


PREPARATION = _Preparation()


def row_normalise(x: Features) -> Features:
    """Divide each row by its sum of absolute values; all-zero rows stay zero.

    Args:
        x: dense or CSR, shape (N, d).
    """
    totals: NDArray[np.float32] = np.asarray(abs(x).sum(axis=1)).ravel()
    scale = np.divide(1.0, totals, out=np.zeros_like(totals), where=totals > 0).astype(np.float32)
    if sparse.issparse(x):
        return sparse.diags(scale, dtype=np.float32) @ x
    return np.asarray(x * scale[:, None], dtype=np.float32)


def unit_rows(x: Dense, centred: bool = False) -> Dense:
    """Rows of length one; minus their mean first, if asked for."""
    moved = x - x.mean(axis=0) if centred else x
    return moved / np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), 1e-12)


def relu_features(x: Dense, units: int, bias: float, rng: np.random.Generator) -> Dense:
    """Random ReLU features of standardised columns, rows of length one, shape (N, units)."""
    spread = np.maximum(x.std(axis=0), 1e-9)
    weights = rng.standard_normal((x.shape[1], units)).astype(np.float32)
    offsets = bias * rng.standard_normal(units).astype(np.float32)
    inputs = ((x - x.mean(axis=0)) / spread) @ (weights / x.shape[1] ** 0.5)
    return unit_rows(np.maximum(inputs + offsets, 0.0), centred=True)


def dense(x: Features) -> Dense:
    """The features as a dense float32 array; a mapped file stays one.

    Args:
        x: dense or CSR, shape (N, d).
    """
    if isinstance(x, np.memmap) and x.dtype == np.float32:
        return x  # stays on disk, and stays known as a mapped file
    if sparse.issparse(x):
        require_memory(
            4 * x.shape[0] * x.shape[1],
            f"a dense {x.shape[0]} × {x.shape[1]} feature matrix",
            "Reduce it by PCA.",
        )
    return np.asarray(x.toarray() if sparse.issparse(x) else x, dtype=np.float32)


@dataclass(frozen=True, eq=False)
class FittedPca:
    """x -> (x − mean) @ components.T: centred, not whitened."""

    mean: NDArray[np.float64]  # (d,)
    components: NDArray[np.float64]  # (k, d), orthonormal rows
    explained_ratio: float  # share of the variance that is kept

    @classmethod
    def fit(cls, x: Features, n_components: int, *, seed: int = 0) -> FittedPca:
        """Fit on the rows of x, dense or CSR, shape (N, d); sparse x is never made dense."""
        limit = min(x.shape)
        if not 1 <= n_components < limit:
            raise DataError(
                f"PCA of a {x.shape[0]} × {x.shape[1]} matrix takes between 1 and {limit - 1} "
                "components",
                got=n_components,
            )
        cells = x.nnz if sparse.issparse(x) else x.size
        require_memory(
            16 * cells,
            f"PCA of a {x.shape[0]} × {x.shape[1]} matrix",
            "Use --features raw or rownorm.",
        )
        # The Lanczos solver takes sparse input and only computes what is asked for; the seed fixes
        # its start.
        pca = PCA(n_components, svd_solver="arpack", random_state=seed).fit(x.astype(np.float64))
        return cls(pca.mean_, pca.components_, float(pca.explained_variance_ratio_.sum()))

    def transform(self, x: Features) -> Dense:
        """The features in the fitted components, shape (N, k).

        Args:
            x: dense or CSR, shape (N, d).
        """
        if x.shape[1] != self.mean.shape[0]:
            raise DataError(
                "the features have another width than PCA was fitted on",
                got=(x.shape[1], self.mean.shape[0]),
            )
        return np.asarray(x @ self.components.T - self.mean @ self.components.T, dtype=np.float32)


def parse_features(name: str) -> tuple[str, int]:
    """The kind of features and the number of components that a name such as "pca20" stands for."""
    if name.startswith("pca") and name not in ("pca", "pca-raw"):
        if not name[3:].isdecimal() or int(name[3:]) < 1:
            raise ConfigError(
                "features of the name pcaN need a number", got=repr(name), fix="For instance pca20."
            )
        return "pca", int(name[3:])
    return name, PREPARATION.pca
