"""A graph of the user's own as an `.npz` file, or as a folder of `.npy` files whose features stay
on disk.

Keys: `x` (N, d) float, `edge_index` (2, E) int, `y` (N,) int with -1 where the label is unknown;
optionally `train_mask`, `val_mask`, `test_mask` (N,) bool and `n_classes`. Without masks a biased
split is drawn."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import IO

import numpy as np

from graphkeel.core.errors import DataError, KeelError
from graphkeel.core.files import is_there
from graphkeel.core.memory import require_memory
from graphkeel.graph.datasets.raw import RawGraph

REQUIRED = ("x", "edge_index", "y")
_MASKS = ("train_mask", "val_mask", "test_mask")
_KINDS = {"x": "fiub", "edge_index": "iu", "y": "iu"}


def load_npz(path: Path, labels: bool = True) -> RawGraph:
    """Read a graph; the detailed checks (ranges, NaN, overlaps) are `GraphTask`'s. Where labels are
    not asked for, y may be missing."""
    if not is_there(path.is_file):
        raise DataError(
            "there is no such graph file", got=path, fix="Give the path of an .npz file."
        )
    arrays = read_arrays(path, (*REQUIRED, *_MASKS, "n_classes"), source=str(path))
    missing = [key for key in _required(labels) if key not in arrays]
    if missing:
        raise DataError(
            f"{path} misses the key(s) {', '.join(missing)}",
            got=f"keys {', '.join(sorted(arrays)) or 'none'}",
            fix="Write it with numpy.savez(path, x=…, edge_index=…, y=…, train_mask=…, "
            "val_mask=…, test_mask=…).",
        )
    return _graph(path, arrays)


def _required(labels: bool) -> tuple[str, ...]:
    return REQUIRED if labels else REQUIRED[:2]


def _graph(path: Path, arrays: dict[str, np.ndarray]) -> RawGraph:
    arrays.setdefault("y", np.full(arrays["x"].shape[:1], -1))
    for key, kinds in _KINDS.items():
        if arrays[key].dtype.kind not in kinds:
            raise DataError(
                f"{path}: {key} has the wrong type of number",
                got=f"dtype {arrays[key].dtype}",
                fix="Classes are whole numbers from 0 on, -1 where unknown."
                if key == "y"
                else None,
            )
    _check_memory(path, arrays)
    y = arrays["y"].astype(np.int64).reshape(-1)
    if arrays["x"].shape[:1] != y.shape:
        got = f"{len(y)} labels, x of shape {arrays['x'].shape}"
        raise DataError(f"{path}: y must have one entry per node, -1 where unknown", got=got)
    return RawGraph(
        name=path.stem,
        x=arrays["x"].astype(np.float32, copy=False),
        edge_index=arrays["edge_index"].astype(np.int64),
        y=y,
        n_classes=_n_classes(path, arrays.get("n_classes"), y),
        public_split=_split(path, arrays, y.shape[0]),
    )


def load_folder(path: Path, labels: bool = True) -> RawGraph:
    """A graph from a folder with a file for each key: `x.npy`, `edge_index.npy`, `y.npy`, …;
    float32 features are mapped, not read. Where labels are not asked for, y may be missing."""
    if not is_there(path.is_dir):
        raise DataError(
            "there is no such folder with a graph",
            got=path,
            fix="Give an .npz file or such a folder.",
        )
    arrays = {}
    for key in (*REQUIRED, *_MASKS, "n_classes"):
        file = path / f"{key}.npy"
        if file.is_file() or key in _required(labels):
            arrays[key] = _mapped(file)
    return _graph(path, arrays)


def _mapped(file: Path) -> np.ndarray:
    try:  # not np.load, which would open an archive as well
        return np.lib.format.open_memmap(file, mode="r")
    except Exception as error:  # a damaged header can raise nearly anything
        raise DataError(f"{file} cannot be read as an .npy file", got=str(error)[:200]) from error


def _check_memory(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """The features as float32 and the edges as int64, once here and once in the task; mapped
    features stay on disk."""
    x = arrays["x"]
    on_disk = isinstance(x, np.memmap) and x.dtype == np.float32
    numbers = 8 * arrays["edge_index"].size + 8 * arrays["y"].size + (0 if on_disk else 4 * x.size)
    fix = "Use a smaller graph, or a machine with more memory."
    require_memory(2 * numbers, f"the graph of {path}", fix)


def _n_classes(path: Path, given: np.ndarray | None, y: np.ndarray) -> int:
    """How many classes there are; more than nodes there cannot be, as each needs a training
    node."""
    if given is not None and (given.size != 1 or given.dtype.kind not in "iu"):
        raise DataError(
            f"{path}: n_classes must be one whole number",
            got=f"dtype {given.dtype}, shape {given.shape}",
        )
    n_classes = int(y.max(initial=0)) + 1 if given is None else int(given.reshape(()))
    if not int(y.max(initial=0)) < n_classes <= max(len(y), 2):
        got = f"{n_classes} classes, {len(y)} nodes, largest label {int(y.max(initial=0))}"
        raise DataError(
            f"{path}: classes are numbered from 0 on, and there are no more of them than nodes",
            got=got,
        )
    return n_classes


def _split(
    path: Path, arrays: dict[str, np.ndarray], n_nodes: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    if "train_mask" not in arrays:
        return None
    masks = [arrays.get(key, np.zeros(n_nodes, dtype=bool)) for key in _MASKS]
    for key, mask in zip(_MASKS, masks, strict=True):
        if mask.dtype != bool or mask.shape != (n_nodes,):
            raise DataError(
                f"{path}: {key} must be a boolean array with one entry per node",
                got=f"dtype {mask.dtype}, shape {mask.shape}, {n_nodes} nodes",
            )
    train, val, test = (np.flatnonzero(mask) for mask in masks)
    return train, val, test


# ---- arrays from an untrusted `.npz` file: what they unpack to is known, and refused, before it is
# allocated

_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read_arrays(
    file: Path | IO[bytes], names: Collection[str], *, source: str
) -> dict[str, np.ndarray]:
    """Those of the named arrays that the file has; pickled objects are refused, other members are
    not touched.

    Raises:
        MemoryLimitError: if they would not fit into memory.
        DataError: if anything is wrong with the file.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            found = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            members = {key: info for key, info in found.items() if key in names}
            sizes = [_checked_size(archive, info) for info in members.values()]
            require_memory(
                sum(sizes),
                f"{source}, unpacked,",
                "Use a smaller graph, or a machine with more memory.",
            )
            return {key: _array(archive, info) for key, info in members.items()}
    except KeelError:
        raise
    except Exception as error:
        # A damaged archive can raise nearly anything: BadZipFile, zlib.error, struct.error,
        # RuntimeError, MemoryError …
        got = f"{type(error).__name__}: {error}"[:200]
        raise DataError(
            f"{source} cannot be read as an .npz file", got=got, fix="Pickled objects are refused."
        ) from error


def _checked_size(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> int:
    """Bytes of the array, by its header, which must agree with those of the member: a header can
    announce anything."""
    with archive.open(info) as member:
        version = np.lib.format.read_magic(member)
        if version not in _HEADERS:
            raise ValueError(f"version {version} of the array format")
        shape, _, dtype = _HEADERS[version](member)
        header = member.tell()
    if dtype.hasobject:
        raise ValueError("an array of Python objects")
    size = math.prod(shape) * dtype.itemsize
    if header + size != info.file_size:
        raise ValueError(f"an array of shape {shape} in {info.file_size} bytes")
    return size


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    with archive.open(info) as member:
        return np.asarray(np.lib.format.read_array(member, allow_pickle=False))
