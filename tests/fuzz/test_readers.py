"""Files from strangers: every reader reads or refuses; none crashes, runs a pickle, or fills the
memory."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import sqlite3
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz import readers
from fuzz.mutations import arrays, as_text, changed_bytes, changed_json
from fuzz.readers import READERS
from graphkeel.certificate import certificate_bytes
from graphkeel.core.errors import KeelError
from graphkeel.core.memory import peak_mb, reset_peak
from tally import TALLY

FEW, MANY = 15, 1000
SLACK = 600  # MB by which the memory of a session may grow over a reader's fuzzing


@pytest.fixture(autouse=True)
def bounded_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No small file may cost much memory: a limit for those who ask, a measurement for those who do
    not."""
    monkeypatch.setenv("GRAPHKEEL_MEMORY", "64MB")
    reset_peak()
    before = peak_mb()
    yield
    assert peak_mb() - before < SLACK


def fuzz(strategy: st.SearchStrategy[Any], check: Callable[[Any], None], count: int) -> None:
    """Run `check` on `count` examples; the same ones every time."""

    @settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def run(example: Any) -> None:
        TALLY["fuzz executions", "hypothesis"] += 1
        check(example)

    run()


def both(count: int = FEW) -> pytest.MarkDecorator:
    """One test, short in the default suite and long in the slow one."""
    return pytest.mark.parametrize("count", [count, pytest.param(MANY, marks=pytest.mark.slow)])


@pytest.mark.parametrize("name", READERS)
def test_the_samples_are_good(name: str) -> None:
    assert READERS[name].survives(READERS[name].sample())


@both()
@pytest.mark.parametrize("name", READERS)
def test_changed_bytes_are_read_or_refused(name: str, count: int) -> None:
    reader = READERS[name]
    fuzz(changed_bytes(reader.sample()), lambda content: reader.survives(content) and None, count)


JSON_READERS: dict[str, tuple[Callable[[], Any], Callable[[Any], bytes]]] = {
    "problem.json": (lambda: json.loads(READERS["problem.json"].sample()), as_text),
    "reconstruction.json": (lambda: json.loads(readers.reconstruction_json()), as_text),
    "manifest": (readers.run_sample, as_text),
    "row": (readers.row_sample, as_text),
    "certificate": (readers.certificate_content, lambda value: recertified(value)),
    "property proof": (readers.proof_content, lambda value: recertified(value)),
}


def recertified(value: Any) -> bytes:
    try:
        return certificate_bytes(value) if isinstance(value, dict) else as_text(value)
    except (KeelError, ValueError, TypeError, RecursionError):
        return as_text(value)


@both()
@pytest.mark.parametrize("name", JSON_READERS)
def test_changed_values_are_read_or_refused(name: str, count: int) -> None:
    sample, text = JSON_READERS[name]
    fuzz(changed_json(sample()), lambda value: READERS[name].survives(text(value)) and None, count)


@both()
@pytest.mark.parametrize("name", ["graph", "problem.npz"])
def test_arrays_of_any_kind_are_read_or_refused(name: str, count: int) -> None:
    with np.load(io.BytesIO(READERS[name].sample())) as archive:
        sample = {key: archive[key] for key in archive.files}
    changes = st.dictionaries(st.sampled_from(sorted(sample)), arrays(), min_size=1, max_size=3)
    fuzz(
        changes,
        lambda new: READERS[name].survives(readers.npz(**{**sample, **new})) and None,
        count,
    )


@pytest.mark.parametrize("split", ["public", "random", "biased"])
def test_graphs_with_nothing_left_to_draw_from_are_read_or_refused(
    split: str, tmp_path: Path
) -> None:
    with np.load(io.BytesIO(readers.graph_sample())) as archive:
        sample = {key: archive[key] for key in archive.files}
    one_a_class = {
        "x": sample["x"][:3],
        "y": np.arange(3),
        "edge_index": np.array([[0, 1], [1, 2]]),
    }
    for content in (
        {**sample, "test_mask": np.ones(60, dtype=bool)},
        {**sample, "y": np.full(60, -1)},
        one_a_class,
    ):
        graph = readers.load_graph.__wrapped__(
            str(readers.put(tmp_path, "graph.npz", readers.npz(**content)))
        )
        with contextlib.suppress(KeelError):
            readers.make_task(graph, split=split)


# ---- stores whose columns hold anything


@both(10)
def test_stores_with_columns_of_any_kind(count: int, tmp_path: Path) -> None:
    sample = readers.store_sample()
    anything = st.one_of(
        st.none(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(),
        st.text(max_size=10),
        st.binary(max_size=9),
    )
    texts = changed_json({"accuracy": 1.0, "base": 0.0, "decision": {"residual": 1.0}}).map(
        lambda v: as_text(v).decode()
    )

    def check(example: tuple[str, Any]) -> None:
        column, value = example
        path = tmp_path / readers.FILE
        path.write_bytes(sample)
        connection = sqlite3.connect(path)
        try:
            with connection:
                connection.execute(f"UPDATE measurements SET {column} = ?", (value,))
        except sqlite3.IntegrityError:
            return  # the schema refuses it already
        finally:
            connection.close()
        READERS["store"].survives(path.read_bytes())

    columns = st.sampled_from(
        ["status", "seconds", "peak_mb", "result", "message", "row", "dataset"]
    )
    fuzz(st.tuples(columns, anything) | st.tuples(st.just("result"), texts), check, count)


def test_stores_in_a_schema_with_names_that_are_no_text() -> None:
    """SQLite's own message cannot be decoded then, either."""
    damaged = (
        readers.store_sample()
        .replace(b"by_subject", b"by_\xd4ubject")
        .replace(b"CREATE INDEX", b"CREATE INDEK")
    )
    assert not READERS["store"].survives(damaged)


# ---- code in data


class Planted:
    """Unpickled, it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def with_pickles(path: Path) -> list[bytes]:
    """Files that make `path` if anyone unpickles them."""
    plain = [pickle.dumps(Planted(path), protocol) for protocol in range(6)]
    objects = np.empty(60, dtype=object)
    objects[:] = [Planted(path)] * 60
    with np.load(io.BytesIO(readers.graph_sample())) as archive:
        sample = {key: archive[key] for key in archive.files}
    archives = [readers.npz(**{**sample, key: objects}) for key in ("x", "y", "train_mask")]
    archives += [
        readers.npz(labels=objects),
        readers.npz(F_weight_0=objects),
        readers.npz(norms=objects),
    ]
    array = io.BytesIO()
    np.save(array, objects, allow_pickle=True)
    return [*plain, *archives, array.getvalue(), pickle.dumps([{"x": Planted(path)}])]


@pytest.mark.parametrize("name", READERS)
def test_no_reader_runs_a_pickle(name: str, tmp_path: Path) -> None:
    path = tmp_path / "made by a pickle"
    for content in with_pickles(path):
        READERS[name].survives(content)
    assert not path.exists()
    pickle.loads(pickle.dumps(Planted(path)))  # noqa: S301 - the trap works
    assert path.exists()


# ---- much from little


def bomb(name: str, size: int, claim: tuple[int, ...] | None = None) -> bytes:
    """A small archive with one array that unpacks to `size` bytes of zeros; its header may claim
    more."""
    header = io.BytesIO()
    shape = (size // 4,) if claim is None else claim
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f4", "fortran_order": False, "shape": shape}
    )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
            member.write(header.getvalue())
            for _ in range(size // 2**20):
                member.write(bytes(2**20))
        archive.writestr("edge_index.npy", b"")
    return file.getvalue()


@pytest.mark.parametrize(("name", "key"), [("graph", "x"), ("problem.npz", "F_weight_0")])
def test_a_small_archive_of_many_zeros_is_refused(name: str, key: str) -> None:
    content = bomb(key, 100 * 2**20)
    assert len(content) < 2**20
    assert not READERS[name].survives(content)
    for claim in ((10**12,), (2**40, 2**40), (2**62, 4)):
        assert not READERS[name].survives(bomb(key, 2**20, claim))


@pytest.mark.parametrize(
    "name",
    ["problem.json", "certificate", "manifest", "row", "reconstruction.json"],
)
def test_deep_nesting_and_endless_numbers_are_refused(name: str) -> None:
    for content in (
        b"[" * 10**6,
        b"[" * 10**5 + b"]" * 10**5,
        b'{"a":' * 10**5,
        b"9" * 10**6,
        b"[" + b"9" * 5000 + b"]",
    ):
        assert not READERS[name].survives(content)


# ---- names that lead elsewhere


def test_a_reconstruction_names_no_file_outside_its_folder(tmp_path: Path) -> None:
    facts = json.loads(readers.reconstruction_json())
    for name in (
        "../../secret",
        "/etc/passwd",
        "..",
        "a" * 64 + "/../x",
        "A" * 64,
        "0" * 63,
        ["0" * 64],
        None,
    ):
        assert not READERS["reconstruction.json"].survives(as_text({**facts, "sha256": name}))


def test_a_row_names_no_file_outside_its_folder() -> None:
    for seed in ("../../x", -1, 10**30, 1.5, None, True, [0]):
        READERS["row"].survives(as_text({**readers.row_sample(), "seed": seed}))


def test_an_exported_certificate_writes_into_its_folder_only(tmp_path: Path) -> None:
    from graphkeel.cli.main import main

    content = readers.certificate_content("contraction")
    for label in ("../../x", 10**18, -3, None, 1.5):
        changed = {**content, "classes": [{**content["classes"][0], "class": label}]}
        path = tmp_path / "in" / "certificate.json"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(certificate_bytes(changed))
        main(["export", str(path), "--out", str(tmp_path / "out"), "--format", "smt2"])
    assert {path.name for path in tmp_path.iterdir()} <= {"in", "out"}
    assert {path.name for path in tmp_path.parent.iterdir()} >= {tmp_path.name}
