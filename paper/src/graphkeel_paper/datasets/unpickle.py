"""Planetoid's raw files are pickles; this reads them while executing nothing but array
constructors."""

from __future__ import annotations

import collections
import io
import pickle
from typing import Any

import numpy as np
from numpy._core.multiarray import _reconstruct  # the one function numpy's own array pickles call
from scipy import sparse

from graphkeel.core.errors import DataError

# The names as Python 2, numpy 1 and old scipy wrote them, and what they are allowed to mean here.
_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("collections", "defaultdict"): collections.defaultdict,
    ("__builtin__", "list"): list,  # an overridden find_class sees the Python 2 name
}
_MATRIX = ("scipy.sparse.csr", "csr_matrix")


class _AllowListUnpickler(pickle._Unpickler):  # type: ignore[name-defined]
    """In Python, not in C: the C one fills gigabytes with zeros when six bytes of a pickle tell it
    to."""

    def __init__(self, content: bytes) -> None:
        super().__init__(io.BytesIO(content), encoding="latin1")
        # A pickle may set attributes of any class it can name, so it names one that ends with this
        # reader.
        self.matrix = type("StoredMatrix", (), {})

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == _MATRIX:
            return self.matrix
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"{module}.{name} is not on the allow-list")
        return _ALLOWED[module, name]

    def result(self) -> Any:
        found = self.load()
        return _csr(found) if isinstance(found, self.matrix) else found


def safe_unpickle(content: bytes, *, source: str) -> Any:
    """The object pickled in `content`; anything but plain arrays, lists, dicts and sparse matrices
    is refused."""
    try:
        return _AllowListUnpickler(content).result()
    except Exception as error:
        # A damaged pickle can raise nearly anything: IndexError, KeyError, MemoryError,
        # struct.error …
        raise DataError(
            f"{source} cannot be read as a Planetoid file",
            got=f"{type(error).__name__}: {error}"[:200],
            fix="Fetch it again.",
        ) from error


def _csr(stored: Any) -> sparse.csr_matrix:
    parts = (stored.data, stored.indices, stored.indptr)
    matrix = sparse.csr_matrix(parts, shape=stored._shape)
    matrix.check_format(full_check=True)  # compiled code trusts the indices
    return matrix
