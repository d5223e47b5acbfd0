"""Planetoid's raw files are pickles; this reads them while executing nothing but array constructors."""

from __future__ import annotations

import collections
import io
import pickle
from typing import Any

import numpy as np
from numpy._core.multiarray import _reconstruct  # the one function numpy's own array pickles call
from scipy import sparse

from graphkeel.errors import DataError

# The names as Python 2, numpy 1 and old scipy wrote them, and what they are allowed to mean here.
_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("scipy.sparse.csr", "csr_matrix"): sparse.csr_matrix,
    ("collections", "defaultdict"): collections.defaultdict,
    ("__builtin__", "list"): list,  # an overridden find_class sees the Python 2 name
}


class _AllowListUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"{module}.{name} is not on the allow-list")
        return _ALLOWED[module, name]


def safe_unpickle(content: bytes, *, source: str) -> Any:
    """The object pickled in `content`; anything but plain arrays, lists and dicts is refused."""
    try:
        return _AllowListUnpickler(io.BytesIO(content), encoding="latin1").load()
    except Exception as error:
        # A damaged pickle can raise nearly anything: IndexError, KeyError, MemoryError, struct.error …
        raise DataError(
            f"{source} cannot be read as a Planetoid file",
            got=f"{type(error).__name__}: {error}",
            fix="Fetch it again.",
        ) from error
