"""Feature reduction with a real fit/transform split, so that what was fitted applies to other
data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.decomposition import PCA

from graphkeel.core.errors import ConfigError, DataError
from graphkeel.core.memory import require_memory
from graphkeel.graph.propagate.local import STREAM, home_of
from graphkeel.graph.propagate.rowwise import fold, mean_row, rowwise

Dense = NDArray[np.float32]
Features: TypeAlias = Any  # a dense float32 array or a scipy CSR matrix (scipy ships no types)


@dataclass(frozen=True)
class _Preparation:
    """How features are prepared.

    Attributes:
        pca: components, the paper's.
        kept: numbers of random features up to which they are computed only once.
        sample: evenly spaced nodes on which means and spreads of random features are taken.
    """

    pca: int = 20
    kept: int = 1 << 24
    sample: int = 10_000


PREPARATION = _Preparation()


def row_normalise(x: Features) -> Features:
    """Divide each row of x (N, d), dense or CSR, by its sum of absolute values; all-zero rows stay
    zero."""
    totals: NDArray[np.float32] = np.asarray(abs(x).sum(axis=1)).ravel()
    scale = np.divide(1.0, totals, out=np.zeros_like(totals), where=totals > 0).astype(np.float32)
    if sparse.issparse(x):
        return sparse.diags(scale, dtype=np.float32) @ x
    return np.asarray(x * scale[:, None], dtype=np.float32)


def unit_rows(x: Dense, centred: bool = False) -> Dense:
    """Rows of length one; minus their mean first, if asked for."""
    return rowwise(np.asarray, UnitRows(x, centred=centred))  # type: ignore[no-any-return]


class UnitRows:
    """Rows of length one of arrays (N, d_k) side by side, each minus its mean row first if asked
    for; computed when they are asked for."""

    def __init__(self, *parts: Dense, centred: bool = False) -> None:
        self._parts = [(part, mean_row(part) if centred else np.float32(0)) for part in parts]
        self.shape = (len(parts[0]), sum(part.shape[1] for part in parts))
        self.home = home_of(*parts)

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, rows: Any) -> Dense:
        found = [_of_length_one(x[rows] - m) for x, m in self._parts]
        return found[0] if len(found) == 1 else np.concatenate(found, axis=1)


class _SparseRows:
    """Rows of an array that lives on a cluster, as sparse matrices."""

    def __init__(self, x: Any) -> None:
        self._x = x
        self.shape = x.shape
        self.home = home_of(x)

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, rows: Any) -> sparse.csr_matrix:
        return sparse.csr_matrix(self._x[rows])


def sparse_rows(x: Any) -> Any:
    """The rows as a sparse matrix, or as what gives sparse rows where they live on a cluster."""
    rows = _SparseRows(x)
    return rows if rows.home is not None else rows[:]


class ReluFeatures:
    """Random ReLU features of standardised columns, rows of length one about their mean, shape
    (N, units); computed when they are asked for.

    Args:
        x: shape (N, d); all that is asked of it is rows.
        units: how many.
        bias: of a unit, in standard deviations of its input.
        rng: of weights and biases.
    """

    def __init__(self, x: Any, units: int, bias: float, rng: np.random.Generator) -> None:
        self._x = x
        self.shape = (x.shape[0], units)
        self.home = home_of(x)
        weights = rng.standard_normal((x.shape[1], units)).astype(np.float32)
        self._offsets = bias * rng.standard_normal(units).astype(np.float32)
        some = x[:: max(1, x.shape[0] // PREPARATION.sample)]
        self._mean, spread = _moments(np.asarray, some)
        scale = x.shape[1] ** 0.5 * np.maximum(spread, 1e-9)
        self._weights = weights / scale[:, None]
        self._centre, _ = _moments(self._raw, some)
        self._kept = None
        if x.shape[0] * units <= PREPARATION.kept:
            self._kept = rowwise(self._computed, x)

    def __len__(self) -> int:
        return int(self.shape[0])

    def _raw(self, inputs: Dense) -> Dense:
        inputs = (inputs - self._mean) @ self._weights + self._offsets
        return np.maximum(inputs, 0.0, out=inputs)

    def __getitem__(self, rows: Any) -> Dense:
        return self._computed(self._x[rows]) if self._kept is None else self._kept[rows]

    def _computed(self, inputs: Dense) -> Dense:
        return _of_length_one(self._raw(inputs) - self._centre)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        found = rowwise(self._computed, self._x)
        return np.asarray(found, dtype=dtype or np.float32)


def _moments(function: Callable[[Dense], Dense], x: Any) -> tuple[Dense, Dense]:
    """Mean and standard deviation of each column of a function of rows."""
    near = function(x[: STREAM.part]).mean(axis=0)  # so that squares lose nothing

    def sums(part: Dense) -> NDArray[np.float64]:
        away = function(part).astype(np.float64) - near
        return np.stack([away.sum(axis=0), (away**2).sum(axis=0)])

    mean, square = fold(sums, x) / max(1, len(x))
    spread = np.sqrt(np.maximum(square - mean**2, 0.0))
    return (near + mean).astype(np.float32), spread.astype(np.float32)


def _of_length_one(x: Dense) -> Dense:
    """Written over the rows."""
    x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    return x


def dense(x: Features) -> Dense:
    """Features (N, d), dense or CSR, as a dense float32 array; a mapped file stays one."""
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
        """The features (N, d), dense or CSR, in the fitted components, shape (N, k)."""
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
