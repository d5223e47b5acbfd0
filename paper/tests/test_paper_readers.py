"""Dataset files from strangers: every reader reads or refuses; none crashes, runs a pickle, or
fills the memory."""

from __future__ import annotations

import io
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

from fuzz.mutations import arrays, as_text, changed_bytes, changed_json
from fuzz.readers import Reader, npz, put
from fuzz.test_readers import bomb, both, bounded_memory, fuzz, with_pickles  # noqa: F401
from graphkeel.core.errors import DataError, KeelError
from graphkeel_paper.datasets.files import read_seed_lists
from graphkeel_paper.datasets.published import read_amazon
from graphkeel_paper.datasets.unpickle import safe_unpickle
from graphkeel_paper.specs import RunSpec
from graphkeel_paper.tables.filled import TABLES


def amazon_sample() -> bytes:
    eye = {
        "data": np.ones(6),
        "indices": np.arange(6),
        "indptr": np.arange(7),
        "shape": np.array([6, 6]),
    }
    parts = {f"{m}_{key}": value for m in ("attr", "adj") for key, value in eye.items()}
    return npz(labels=np.array([0, 1, 2, 0, 1, 2]), **parts)


def read_pickle(content: bytes, folder: Path) -> None:
    safe_unpickle(content, source="a file")


def pickle_sample() -> bytes:
    return pickle.dumps({0: [1, 2], 1: [0], 2: [0]}, protocol=2)


def read_settings(content: bytes, folder: Path) -> None:
    """Settings that reach a run of the paper from outside as text."""
    text = content.decode("utf-8", errors="replace").replace("\0", "")
    for read in (
        lambda: RunSpec(dataset=text).task(0),
        lambda: RunSpec(dataset="sbm", split=text).task(0),
        lambda: TABLES[1].pick(text.split(",")),
    ):
        try:
            read()
        except KeelError:
            continue


READERS = {
    "amazon": Reader(
        lambda content, _: read_amazon("photo", content, source="a file"), amazon_sample
    ),
    "planetoid": Reader(read_pickle, pickle_sample),
    "seeds": Reader(
        lambda content, folder: read_seed_lists(put(folder, "s.json", content)),
        lambda: b"[[1, 2], [3]]",
    ),
    "settings": Reader(read_settings, lambda: b"sbm:2000,10000"),
}


@pytest.mark.parametrize("name", READERS)
def test_the_samples_are_good(name: str) -> None:
    assert READERS[name].survives(READERS[name].sample())


@both()
@pytest.mark.parametrize("name", READERS)
def test_changed_bytes_are_read_or_refused(name: str, count: int) -> None:
    reader = READERS[name]
    fuzz(changed_bytes(reader.sample()), lambda content: reader.survives(content) and None, count)


@both()
def test_changed_seed_lists_are_read_or_refused(count: int) -> None:
    reader = READERS["seeds"]
    sample = changed_json([[1, 2], [3, 4, 5]])
    fuzz(sample, lambda value: reader.survives(as_text(value)) and None, count)


@both()
def test_arrays_of_any_kind_are_read_or_refused(count: int) -> None:
    with np.load(io.BytesIO(amazon_sample())) as archive:
        sample = {key: archive[key] for key in archive.files}
    changes = st.dictionaries(st.sampled_from(sorted(sample)), arrays(), min_size=1, max_size=3)
    fuzz(changes, lambda new: READERS["amazon"].survives(npz(**{**sample, **new})) and None, count)


@pytest.mark.parametrize("name", READERS)
def test_no_reader_runs_a_pickle(name: str, tmp_path: Path) -> None:
    path = tmp_path / "made by a pickle"
    for content in with_pickles(path):
        READERS[name].survives(content)
    assert not path.exists()


def test_a_small_archive_of_many_zeros_is_refused() -> None:
    assert not READERS["amazon"].survives(bomb("labels", 100 * 2**20))
    for claim in ((10**12,), (2**40, 2**40), (2**62, 4)):
        assert not READERS["amazon"].survives(bomb("labels", 2**20, claim))


def test_deep_nesting_and_endless_numbers_are_refused() -> None:
    for content in (b"[" * 10**6, b"[" * 10**5 + b"]" * 10**5, b"9" * 10**6):
        assert not READERS["seeds"].survives(content)


def test_six_bytes_of_a_pickle_do_not_fill_the_memory() -> None:
    with pytest.raises(DataError):
        safe_unpickle(b"\x80\x02]r\xff\xff\xff\x7f0", source="a file")


def test_a_pickle_cannot_change_the_classes_it_names() -> None:
    from scipy import sparse

    before = sparse.csr_matrix.tocsr
    # BUILD with (None, {"tocsr": 1})
    evil = b"\x80\x02cscipy.sparse.csr\ncsr_matrix\nN}U\x05tocsrK\x01s\x86b."
    READERS["planetoid"].survives(evil)
    assert sparse.csr_matrix.tocsr is before
