"""Row normalisation and PCA, against hand computation and a plain SVD."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from graphkeel.core.errors import DataError
from graphkeel.graph.features import FittedPca, row_normalise

X = np.array([[1, 3], [0, 0], [-1, 1]], dtype=np.float32)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_row_normalise_by_hand(kind):
    result = row_normalise(kind(X))
    result = result.toarray() if sparse.issparse(result) else result
    assert np.allclose(result, [[0.25, 0.75], [0, 0], [-0.5, 0.5]])
    assert result.dtype == np.float32


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_pca_is_the_centred_svd(kind):
    x = np.random.default_rng(0).random((40, 9)).astype(np.float32)
    fitted = FittedPca.fit(kind(x), 3)
    centred = x - x.mean(0)
    values = np.linalg.svd(centred, compute_uv=False)
    projected = fitted.transform(kind(x))
    assert np.allclose(np.linalg.norm(projected, axis=0), values[:3], rtol=1e-5)
    assert fitted.explained_ratio == pytest.approx((values[:3] ** 2).sum() / (values**2).sum())
    assert np.allclose(projected.mean(0), 0, atol=1e-6)


def test_transform_of_new_rows_uses_the_fitted_mean():
    rng = np.random.default_rng(0)
    train, new = rng.random((30, 5)), rng.random((4, 5)) + 1
    fitted = FittedPca.fit(train, 2)
    assert np.allclose(
        fitted.transform(new), (new - train.mean(0)) @ fitted.components.T, atol=1e-6
    )


def test_pca_says_what_does_not_fit():
    x = np.ones((5, 4), dtype=np.float32)
    with pytest.raises(DataError, match="between 1 and 3 components"):
        FittedPca.fit(x, 4)
    with pytest.raises(DataError, match="another width"):
        FittedPca.fit(np.random.default_rng(0).random((9, 4)), 2).transform(np.ones((2, 3)))
