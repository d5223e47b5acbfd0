"""`propagate`: features spread over a graph, in memory or from disk to disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from graphkeel.core.errors import ConfigError, DataError
from graphkeel.graph.propagate.adjacency import normalise
from graphkeel.graph.propagate.local import stream

Array = NDArray[np.float32]
Graph: TypeAlias = Any  # an integer array (2, E) or a scipy sparse matrix (scipy ships no types)


def propagate(
    graph: Graph,
    x: Array,
    hops: int = 1,
    *,
    norm: str = "sym",
    teleport: float = 0.0,
    block: int | None = None,
    out: Array | Path | str | None = None,
) -> Array:
    """Ŝ^K X, or personalised smoothing Z ← (1−a)·ŜZ + a·X with a `teleport` a > 0.

    Args:
        graph: `edge_index` of shape (2, E), taken both ways and once each, with a loop added at
            every node; or a square sparse matrix, used as it is.
        x: features, one row a node; a memory-mapped array is streamed, never read as a whole.
        hops: K.
        norm: `sym` or `row`, for an `edge_index`.
        teleport: a.
        block: columns worked on at once; None: as many as fit into 2 GiB of working memory.
        out: an array to fill, or the path of an `.npy` file to write; None: an array in memory.

    Returns:
        The array that was filled; for a path, the file mapped for reading.
    """
    if isinstance(hops, bool) or not isinstance(hops, int | np.integer) or hops < 0:
        raise ConfigError("hops must be a whole number, at least 0", got=repr(hops))
    if not 0.0 <= teleport < 1.0:
        raise ConfigError("teleport must lie in [0, 1)", got=teleport)
    if block is not None and block < 1:
        raise ConfigError("block must be at least one column", got=block)
    if getattr(x, "ndim", None) != 2:
        raise DataError(
            "x must have shape (nodes, features)", got=getattr(x, "shape", type(x).__name__)
        )
    matrix = _matrix(graph, x.shape[0], norm)

    def fill(result: Array) -> Array:
        stream(matrix, x, result, hops, teleport, block)
        return result

    if isinstance(out, str | Path):
        return _into_file(Path(out), x.shape, fill)
    result = np.empty(x.shape, dtype=np.float32) if out is None else out
    if result.shape != x.shape or result.dtype != np.float32:
        raise DataError(
            "out must be float32 of x's shape", got=f"{result.dtype}, {result.shape} for {x.shape}"
        )
    return fill(result)


def _into_file(path: Path, shape: tuple[int, ...], fill: Callable[[Array], Array]) -> Array:
    """Written beside its place, then renamed: a file of that name is always a whole one."""
    unfinished = path.with_name(f"{path.name}.part")
    try:
        out = np.lib.format.open_memmap(unfinished, mode="w+", dtype=np.float32, shape=shape)
        fill(out)
        out.flush()
        unfinished.replace(path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise DataError(f"{path} cannot be written", got=error.strerror or str(error)) from error
    return np.load(path, mmap_mode="r")


def _matrix(graph: Graph, n_nodes: int, norm: str) -> sparse.csr_matrix:
    if not sparse.issparse(graph):
        return normalise(graph, n_nodes, norm)
    if graph.shape != (n_nodes, n_nodes):
        raise DataError(
            f"the matrix must have a row and a column for each of {n_nodes} nodes", got=graph.shape
        )
    return graph.tocsr().astype(np.float32, copy=False)
