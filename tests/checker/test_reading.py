"""From bytes to values: a file that was only re-formatted is called so and is never accepted, and
the memory that a file takes is bounded by its size."""

from __future__ import annotations

import hashlib
import json
import tracemalloc
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hand_loops import certificate, line
from property_cases import ramp

from graphkeel import checker
from graphkeel.certificate import certificate_bytes
from graphkeel.checker import reading
from graphkeel.checker.__main__ import main as program
from graphkeel.cli.main import main

KINDS: dict[str, tuple[Any, Callable[[], dict[str, Any]]]] = {
    "certificate": (checker, lambda: certificate(line()) | {"provenance": {"by": "Zoë"}}),
    "proof": (checker, lambda: ramp(2.0)() | {"provenance": {"by": "Zoë"}}),
}


def written(raw: bytes, **options: Any) -> bytes:
    return json.dumps(json.loads(raw), **options).encode()


SAVED: dict[str, Callable[[bytes], bytes]] = {
    "pretty": lambda raw: written(raw, indent=2),
    "compact": lambda raw: written(raw, separators=(",", ":")),
    "sorted": lambda raw: written(raw, sort_keys=True, indent=4),
    "tabs": lambda raw: written(raw, indent="\t"),
    "letters as they are": lambda raw: written(raw, indent=1, ensure_ascii=False),
    "CRLF": lambda raw: raw.replace(b"\n", b"\r\n"),
    "BOM": lambda raw: b"\xef\xbb\xbf" + raw,
    "UTF-16": lambda raw: raw.decode().encode("utf-16"),
    "no last line break": lambda raw: raw.rstrip(b"\n"),
    "a space more": lambda raw: raw + b" ",
    "a line more": lambda raw: b"\n" + raw,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", SAVED)
def test_a_file_that_was_saved_again(
    how: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    package, make = KINDS[kind]
    raw = certificate_bytes(make())
    assert package.check_bytes(raw).accepted
    path = tmp_path / "saved.json"
    path.write_bytes(SAVED[how](raw))
    with pytest.raises(checker.Unreadable, match="re-formatted"):
        package.check_file(str(path))
    assert main(["check", str(path)]) == 2
    assert "re-formatted" in capsys.readouterr().err
    if how != "UTF-16":  # what the message advises gives the original bytes
        content = json.loads(path.read_text(encoding="utf-8-sig"))
        assert certificate_bytes(content) == raw


def test_the_program_says_it_too(tmp_path: Path, capfdbinary: Any) -> None:
    path = tmp_path / "saved.json"
    path.write_bytes(certificate_bytes(certificate(line())).replace(b"\n", b"\r\n"))
    assert program([str(path)]) == 2
    assert b"re-formatted" in capfdbinary.readouterr().out


def other(raw: bytes) -> bytes:
    """A word of the remarks changed, the stated SHA-256 kept."""
    return raw.replace(b"Zo", b"Bo")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", SAVED)
def test_a_forgery_is_not_called_re_formatted(how: str, kind: str) -> None:
    package, make = KINDS[kind]
    raw = SAVED[how](other(certificate_bytes(make())))
    try:
        result = package.check_bytes(raw)
    except checker.Unreadable as error:
        assert "re-formatted" not in str(error)
    else:
        assert not result.accepted and "SHA-256" in result.reason


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        (b'"by": "Zo\\u00eb"', b'"by": "x", "by": "Zo\\u00eb"', "twice"),
        (b'"by": "Zo\\u00eb"', b'"by": NaN', "JSON"),
        (b'"by": "Zo\\u00eb"', b'"by": 1e999', "SHA-256"),
        (b'"Zo\\u00eb"', b'"Zo\\u00eb"}', "JSON"),
    ],
)
def test_what_is_no_such_file_stays_refused(old: bytes, new: bytes, word: str) -> None:
    raw = certificate_bytes(KINDS["certificate"][1]())
    assert old in raw
    try:
        result = checker.check_bytes(raw.replace(old, new))
    except checker.Unreadable as error:
        assert word in str(error) and "re-formatted" not in str(error)
    else:
        assert not result.accepted and word in result.reason


def test_a_seal_over_other_letters_is_no_seal() -> None:
    """Bytes that are not ASCII, sealed as they are."""
    raw = certificate_bytes(KINDS["certificate"][1]()).replace(b"\\u00eb", "ë".encode())
    body = raw.split(b"\n", 2)[2]
    sealed = b'{\n "sha256": "' + hashlib.sha256(body).hexdigest().encode() + b'",\n' + body
    with pytest.raises(checker.Unreadable, match="not ASCII"):
        checker.check_bytes(sealed)


# ---- memory


def keys() -> Any:
    return (f'"{number:x}"' for number in count(1 << 20))


def filled(length: int, entry: Callable[[], str], ends: str = "[]") -> str:
    """A list or an object of some entries."""
    size = len(entry()) + 1
    return ends[0] + ",".join(entry() for _ in range(length // size)) + ends[1]


NAMES = keys()
DENSE: dict[str, Callable[[int], str]] = {
    "lists": lambda n: filled(n, lambda: "[]"),
    "objects": lambda n: filled(n, lambda: "{}"),
    "lists in lists": lambda n: filled(n, lambda: "[" * 300 + "]" * 300),
    "objects in objects": lambda n: filled(n, lambda: '{"a":' * 300 + "0" + "}" * 300),
    "names": lambda n: filled(n, lambda: f"{next(NAMES)}:0.5", "{}"),
    "small objects": lambda n: filled(n, lambda: f"{{{next(NAMES)}:0.5}}"),
    "texts": lambda n: filled(n, lambda: next(NAMES)),
    "numbers": lambda n: filled(n, lambda: "0.5"),
}


def peak(raw: bytes) -> int:
    """Bytes that reading takes at most, counted by the interpreter."""
    tracemalloc.start()
    try:
        with pytest.raises(checker.Unreadable):
            checker.check_bytes(raw)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", DENSE)
def test_memory_is_bounded_by_the_size_of_a_file(name: str) -> None:
    """By 12 bytes a letter and 7.5 MiB, besides the text and the letters of strings; also where the
    values are as many as may be, since the rest of the file is long enough."""
    dense = DENSE[name](1 << 20)
    values = sum(map(dense.count, "[{,:"))
    for padding in (0, 10 * values):
        raw = f'["{"A" * padding}",{dense}]'.encode()
        assert peak(raw) < 14 * len(raw) + (15 << 19)


def test_eight_mebibytes_of_empty_lists_are_refused_unread() -> None:
    raw = filled(8 << 20, lambda: "[]").encode()
    assert peak(raw) < 2 * len(raw)


def test_few_values_are_read_however_short_they_are() -> None:
    raw = b"[" + b"[]," * 30_000 + b"[]]"
    with pytest.raises(checker.Unreadable, match="does not say that it is"):
        checker.check_bytes(raw)
    with pytest.raises(checker.Unreadable, match="far more values"):
        checker.check_bytes(b"[" + b"[]," * 60_000 + b"[]]")


def test_a_certificate_is_far_from_the_bound() -> None:
    text = certificate_bytes(certificate(line())).decode()
    assert sum(map(text.count, "[{,:")) < len(text) / 10
    reading._check_values(text, always=0)
