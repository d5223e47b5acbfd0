"""A verification problem as a file: `.json` for reading by eye, `.npz` for size
(docs/formats.md).

Files are untrusted: sizes are limited before anything is allocated, pickles are refused, and every
fault becomes one `ProblemError` that says where."""

from __future__ import annotations

import base64
import binascii
import io
import json
import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from graphkeel.core.errors import ProblemError
from graphkeel.verify.formats.reading import first_line, read_limited
from graphkeel.verify.problem import Affine, Array, Network, Problem, Region, Sublevel
from graphkeel.verify.proof import encode as encode_array
from graphkeel.verify.settings import LIMITS

_FORMAT = "graphkeel-problem"
_VERSION = 1

_NETWORKS = {"F": "closed_loop", "V": "lyapunov"}
_VECTORS = ("lower", "upper", "equilibrium")
_NUMBERS = {"hole_radius": 0.0, "rho": 1.0, "positivity": 0.0}
_LAYERS = tuple(map(str, range(LIMITS.problem_layers)))  # by these names only: 01 is not 1
_PARTS = ("weight", "bias", "weight_error", "bias_error")
_OPTIONAL = ("region_axis", "region_margin", "sublevel", "sublevel_floor")
_HEAD = ("format", "version", "name", "hole_norm")
_TOP_LEVEL = {*_HEAD, *_NETWORKS, *_VECTORS, *_NUMBERS, *_OPTIONAL}


def read_problem(path: str | Path) -> Problem:
    """Read a `.json` or `.npz` problem file.

    Args:
        path: of the file.
    """
    path = Path(path)
    readers = {".npz": _read_npz, ".json": _read_json}
    if path.suffix not in readers:
        raise ProblemError("a problem file ends in .json or .npz", got=path.name)
    raw = read_limited(path, LIMITS.problem_bytes)
    return _problem(readers[path.suffix](raw, path.name), path.stem)


def write_problem(problem: Problem, path: str | Path, *, readable: bool = False) -> None:
    """Write a `.json` or `.npz` problem file; both keep every bit, `readable` JSON has plain nested
    lists.

    Args:
        problem: the problem.
        path: of the file.
        readable: whether arrays are nested lists of digits.
    """
    path = Path(path)
    if path.suffix == ".npz":
        np.savez_compressed(path, **_flat(problem))
    elif path.suffix == ".json":
        path.write_text(
            json.dumps(to_dict(problem, readable=readable), indent=1) + "\n", encoding="utf-8"
        )
    else:
        raise ProblemError("a problem file ends in .json or .npz", got=path.name)


def to_dict(problem: Problem, *, readable: bool = False) -> dict[str, Any]:
    """The JSON object of a problem."""

    def encode(array: Array) -> Any:
        return array.tolist() if readable else encode_array(array.astype(np.float64))

    def layers(network: Network) -> list[dict[str, Any]]:
        return [
            {part: encode(values) for part, values in _parts(layer)} for layer in network.layers
        ]

    return {
        "format": _FORMAT,
        "version": _VERSION,
        "name": problem.name,
        **{key: layers(getattr(problem, attribute)) for key, attribute in _NETWORKS.items()},
        **{key: encode(getattr(problem, key)) for key in _VECTORS},
        **{key: float(getattr(problem, key)) for key in _NUMBERS},
        "hole_norm": problem.hole_norm,
        **_optional_entries(problem),
    }


def _parts(layer: Affine) -> list[tuple[str, Array]]:
    """The arrays of a layer by name; an exact one has no error bounds."""
    arrays = ((part, getattr(layer, part)) for part in _PARTS)
    return [(part, values) for part, values in arrays if values is not None]


def _optional_entries(problem: Problem) -> dict[str, float]:
    """The region and the sublevel set, where the problem has them."""
    region, sublevel = problem.region, problem.sublevel
    entries: dict[str, float | None] = {}
    if region is not None:
        entries = {"region_axis": region.axis, "region_margin": float(region.margin)}
    if sublevel is not None:
        entries |= {"sublevel": float(sublevel.level), "sublevel_floor": sublevel.floor}
    return {key: value for key, value in entries.items() if value is not None}


# ---- JSON


def _read_json(raw: bytes, name: str) -> dict[str, Any]:
    try:
        content = json.loads(
            raw.decode("utf-8"),
            parse_constant=_refuse_constant,
            object_pairs_hook=_refuse_duplicates,
        )
    except (ValueError, RecursionError, MemoryError) as error:
        raise ProblemError(f"{name} is not a JSON file", got=first_line(error)) from error
    if not isinstance(content, dict):
        raise ProblemError("a problem file holds one JSON object", got=type(content).__name__)
    return content


def _refuse_constant(word: str) -> float:
    raise ProblemError("a problem holds finite numbers only", got=word)


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ProblemError(
            "a key stands twice in one JSON object", got=next(k for k in keys if keys.count(k) > 1)
        )
    return content


# ---- NPZ


def _read_npz(raw: bytes, name: str) -> dict[str, Any]:
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            unpacked = sum(info.file_size for info in archive.infolist())
            names = archive.namelist()
        if unpacked > LIMITS.problem_bytes:
            raise ProblemError(
                f"a problem may unpack to {LIMITS.problem_bytes >> 20} MiB",
                got=f"{unpacked >> 20} MiB",
            )
        if len(set(names)) < len(names):
            raise ProblemError("an array stands twice in one .npz file", got=len(names))
        with np.load(io.BytesIO(raw), allow_pickle=False) as arrays:
            flat = {key: arrays[key] for key in arrays.files}
    except ProblemError:
        raise
    except Exception as error:  # a damaged archive raises nearly anything, zlib.error for one
        raise ProblemError(f"{name} is not a readable .npz file", got=first_line(error)) from error
    return _nested(flat)


def _nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Turn F_weight_0, F_bias_0, … into lists of layers; scalars become Python numbers and
    strings."""
    content: dict[str, Any] = {}
    layers: dict[str, dict[int, dict[str, Any]]] = {key: {} for key in _NETWORKS}
    for key, value in flat.items():
        network, _, rest = key.partition("_")
        part, _, number = rest.rpartition("_")
        if network in _NETWORKS and part in _PARTS and number in _LAYERS:
            layers[network].setdefault(int(number), {})[part] = value
        elif key in _TOP_LEVEL and key not in _NETWORKS:
            content[key] = (
                value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
            )
        else:
            raise ProblemError("an .npz problem has an unknown array", got=key)
    for key, numbered in layers.items():
        if sorted(numbered) != list(range(len(numbered))):
            raise ProblemError(
                f"the layers of {key} must be numbered 0, 1, …", got=sorted(numbered)
            )
        content[key] = [numbered[i] for i in range(len(numbered))]
    return content


def _flat(problem: Problem) -> dict[str, Any]:
    flat: dict[str, Any] = {"format": _FORMAT, "version": _VERSION, "name": problem.name}
    for key, attribute in _NETWORKS.items():
        for i, layer in enumerate(getattr(problem, attribute).layers):
            flat |= {f"{key}_{part}_{i}": values for part, values in _parts(layer)}
    for key in (*_VECTORS, *_NUMBERS, "hole_norm"):
        flat[key] = getattr(problem, key)
    return flat | _optional_entries(problem)


# ---- from the nested content to the problem


def _problem(content: Mapping[str, Any], name: str) -> Problem:
    _check_header(content)
    lower, upper, equilibrium = (_array(_needed(content, key), key) for key in _VECTORS)
    hole_radius, rho, positivity = (
        _number(content.get(key, default), key) for key, default in _NUMBERS.items()
    )
    return Problem(
        closed_loop=_network(content, "F"),
        lyapunov=_network(content, "V"),
        lower=lower,
        upper=upper,
        equilibrium=equilibrium,
        hole_radius=hole_radius,
        hole_norm=str(content.get("hole_norm", "inf")),
        rho=rho,
        positivity=positivity,
        name=str(content.get("name", name))[:200],
        region=_region(content),
        sublevel=_sublevel(content),
    )


def _region(content: Mapping[str, Any]) -> Region | None:
    axis, margin = _pair(content, "region_axis", "region_margin")
    if axis is None:
        return None
    if axis != int(axis):
        raise ProblemError("region_axis must be a whole number", got=axis)
    return Region(int(axis), 0.0 if margin is None else margin)


def _sublevel(content: Mapping[str, Any]) -> Sublevel | None:
    level, floor = _pair(content, "sublevel", "sublevel_floor")
    return None if level is None else Sublevel(level, floor)


def _pair(content: Mapping[str, Any], key: str, other: str) -> tuple[float | None, float | None]:
    """Two optional numbers, of which the second one needs the first."""
    if key not in content and other in content:
        raise ProblemError(f"a {other} needs a {key}", got="none")
    first, second = (_number(content[k], k) if k in content else None for k in (key, other))
    return first, second


def _check_header(content: Mapping[str, Any]) -> None:
    name, version = content.get("format", _FORMAT), content.get("version", _VERSION)
    if not isinstance(name, str) or name != _FORMAT:
        raise ProblemError(f"the file's format must be {_FORMAT!r}", got=repr(name)[:80])
    if type(version) not in (int, float) or version != _VERSION:
        raise ProblemError(
            f"this program reads version {_VERSION} of the problem format", got=repr(version)[:80]
        )
    unknown = sorted(set(content) - _TOP_LEVEL)
    if unknown:
        # A misspelt optional key ("hole-radius") would otherwise silently decide another problem.
        raise ProblemError("a problem has unknown keys", got=", ".join(unknown)[:200])


def _needed(content: Mapping[str, Any], key: str) -> Any:
    if key not in content:
        raise ProblemError(
            f"a problem needs the key {key!r}", got=f"only {', '.join(sorted(content))[:200]}"
        )
    return content[key]


def _network(content: Mapping[str, Any], key: str) -> Network:
    layers = _needed(content, key)
    if not isinstance(layers, list) or len(layers) > LIMITS.problem_layers:
        raise ProblemError(
            f"{key} must be a list of at most {LIMITS.problem_layers} layers",
            got=type(layers).__name__,
        )
    return Network(tuple(_layer(layer, f"{key}[{i}]") for i, layer in enumerate(layers)))


def _layer(layer: Any, where: str) -> Affine:
    if not isinstance(layer, dict) or not {"weight", "bias"} <= set(layer) <= set(_PARTS):
        got = sorted(map(str, layer)) if isinstance(layer, dict) else type(layer).__name__
        raise ProblemError(
            f"{where} needs weight and bias, and may have weight_error and bias_error", got=got
        )
    return Affine(**{part: _array(value, f"{where}.{part}") for part, value in layer.items()})


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ProblemError(f"{where} must be a number", got=repr(value)[:100])
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ProblemError(f"{where} must be a finite float64", got=repr(value)[:100])
    return number


def _array(value: Any, where: str) -> Array:
    """An array from an ndarray (.npz), nested lists, or base64; never from strings or objects."""
    if isinstance(value, dict):
        return _decoded(value, where)
    if isinstance(value, list):
        value = _listed(value, where)
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiu":
        got = value.dtype if isinstance(value, np.ndarray) else type(value).__name__
        raise ProblemError(f"{where} must be an array of numbers", got=got)
    result = value.astype(np.float64)
    exact = value.dtype.kind == "f" and value.dtype.itemsize <= 8
    if not exact and not (result.astype(value.dtype) == value).all():
        raise ProblemError(f"{where} holds numbers that are no float64", got=value.dtype)
    return result


def _listed(value: list[Any], where: str) -> Array:
    rows = value if value and all(isinstance(row, list) for row in value) else [value]
    numbers = [[_number(entry, where) for entry in row] for row in rows]
    if any(len(row) != len(numbers[0]) for row in numbers):
        raise ProblemError(
            f"the rows of {where} must have one length", got=sorted({len(row) for row in numbers})
        )
    array = np.array(numbers, dtype=np.float64)
    return array if rows is value else array[0]


def _decoded(value: dict[str, Any], where: str) -> Array:
    shape = value.get("shape")
    kinds = ("<f8", "<f4")
    if (
        set(value) != {"dtype", "shape", "base64"}
        or value["dtype"] not in kinds
        or not isinstance(value["base64"], str)
    ):
        raise ProblemError(
            f'{where} must be {{"dtype": "<f8", "shape": …, "base64": …}}', got=sorted(value)[:5]
        )
    if not isinstance(shape, list) or not all(type(k) is int and 0 <= k < 2**31 for k in shape):
        raise ProblemError(f"{where} needs a shape of whole numbers", got=repr(shape)[:100])
    try:
        raw = base64.b64decode(value["base64"], validate=True)
    except (binascii.Error, ValueError) as error:
        raise ProblemError(f"{where} is not base64", got=first_line(error)) from error
    dtype = np.dtype(value["dtype"])
    if len(raw) != dtype.itemsize * math.prod(shape):
        raise ProblemError(
            f"{where} has another size than its shape {shape}", got=f"{len(raw)} bytes"
        )
    return np.frombuffer(raw, dtype=dtype).reshape(shape).astype(np.float64)
