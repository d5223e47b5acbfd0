"""Arrays from an untrusted `.npz` file: what they unpack to is known, and refused, before it is
allocated."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import IO

import numpy as np

from graphkeel.core.errors import DataError, KeelError
from graphkeel.core.memory import require_memory

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
            members = {
                key: info for info in archive.infolist() if (key := _key(info.filename)) in names
            }
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


def _key(filename: str) -> str:
    return filename.removesuffix(".npy")


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
