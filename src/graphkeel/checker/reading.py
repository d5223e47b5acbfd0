"""From bytes to numbers, with limits; nothing of a file is believed.

A file begins with its own SHA-256, so that no byte can change unnoticed:

    {
     "sha256": "<64 hex digits, over all bytes after this line>",
     ...the rest of one JSON object...
"""

import binascii
import codecs
import hashlib
import json
import math
import stat
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .exact import Matrix, Vector, folded
from .limits import LARGEST, MAX_BYTES

FORMATS = ("graphkeel-certificate", "graphkeel-proof")
VERSION = 4
_PREFIX = b'{\n "sha256": "'
_BODY = len(_PREFIX) + 64 + len(b'",\n')
_CODES = {"<f8": "d", "<f4": "f", "<i4": "i", "<i2": "h", "|i1": "b", "|u1": "B"}
FLOATS = ("<f8", "<f4")
REFORMATTED = (
    "the file's bytes were re-formatted (line ends, spaces, order or encoding; an editor, git or a "
    "mail program does that), and the seal is one of bytes; its content is as it was sealed. Take "
    "the file as it was written, or restore it: graphkeel.certificate.write_certificate("
    "json.load(open(FILE)), FILE)"
)


class Unreadable(Exception):
    """The file is no certificate of this version: exit code 2."""


class Rejected(Exception):
    """The file is a certificate, and something it states is not shown: exit code 1."""


def read_bytes(path: str) -> bytes:
    """The bytes of a regular file of bounded size; devices and pipes are refused unread."""
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):
            raise Unreadable("a certificate is a regular file, and this is none")
        with Path(path).open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise Unreadable(f"the file cannot be read: {shown(str(error))}") from None
    if len(raw) > MAX_BYTES:
        raise Unreadable(f"a certificate has at most {MAX_BYTES >> 20} MiB")
    return raw


def parse(raw: bytes) -> dict[str, Any]:
    """The JSON object of a file whose seal holds."""
    try:
        text = _text(raw)
        _check_values(text)
        # NaN and Infinity are no JSON; `int` refuses them.
        content = json.loads(text, parse_constant=int, object_pairs_hook=_distinct)
    except (ValueError, RecursionError, MemoryError) as error:
        raise Unreadable(f"the file is not one whole JSON text: {shown(str(error))}") from None
    found = content.get("format") if isinstance(content, dict) else None
    if found not in FORMATS:
        raise Unreadable(f"the file does not say that it is one of {FORMATS}")
    if _is_reformatted(raw, content):
        raise Unreadable(REFORMATTED)
    if not raw.isascii():
        raise Unreadable("the file holds bytes that are not ASCII")
    version = content.get("version")
    if type(version) is not int or version != VERSION:
        words = f"this program checks files of version {VERSION}, not {shown(version)}"
        raise Unreadable(f"{words}; make an older one anew, or check it with its own release")
    if seal(raw[_BODY:]) != raw[:_BODY]:
        raise Rejected("the SHA-256 at the top is not that of the rest of the file")
    return content


def seal(body: bytes) -> bytes:
    """The first two lines of a certificate whose other lines are `body`."""
    return _PREFIX + _digest(body).encode() + b'",\n'


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def _text(raw: bytes) -> str:
    """The text of a file. No file in another encoding than ASCII is accepted; these are decoded to
    tell one that an editor has saved in them from a forgery."""
    is_wide = raw[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    return raw.decode("utf-16" if is_wide else "utf-8-sig")


def _check_values(text: str, always: int = 1 << 16, letters: int = 10) -> None:
    """Bound the memory that the values of a JSON text take by the length of the text.

    A value is announced by a bracket, a brace, a comma or a colon, and takes at most some 120 bytes
    for each of them while it is read. As many as `always` are read, and one more for every
    `letters` letters (a certificate has one for 20: most of it is base64). So values take at most
    120·always bytes (7.5 MiB) and 12 bytes a letter, besides the letters of their strings.
    """
    if sum(map(text.count, "[{,:")) > always + len(text) // letters:
        raise ValueError("it has far more values than a certificate of its length")


def _is_reformatted(raw: bytes, content: dict[str, Any]) -> bool:
    """Whether the seal does not hold, and would if the content were written as the format says."""
    if seal(raw[_BODY:]) == raw[:_BODY]:
        return False
    rest = {name: value for name, value in content.items() if name != "sha256"}
    try:
        text = json.dumps(rest, indent=1, sort_keys=True, allow_nan=False)
    except (ValueError, RecursionError, MemoryError):
        return False
    body = text.removeprefix("{\n").encode() + b"\n"
    return _digest(body) == content.get("sha256")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return content


def shown(value: Any) -> str:
    """A value from the file for a message: short, and without control characters."""
    return ascii(value)[:120]


def mapping(value: Any, where: str, need: set[str], may: frozenset[str] = frozenset()) -> Any:
    if not isinstance(value, dict) or not need <= set(value) <= need | may:
        raise Unreadable(f"{where} must be an object with the names {sorted(need)}")
    return value


def items(value: Any, where: str, most: int) -> list[Any]:
    if not isinstance(value, list) or not 0 < len(value) <= most:
        raise Unreadable(f"{where} must be a list of 1 to {most} entries")
    return value


def number(value: Any, where: str) -> float:
    usable = type(value) in (int, float) and (value == 0 or 1 / LARGEST <= abs(value) <= LARGEST)
    if not usable or float(value) != value:
        raise Unreadable(f"{where} must be a number of ordinary size, not {shown(value)}")
    return float(value)


def same(stored: Any, truth: Any, what: str) -> None:
    """Compared as texts: to Python, 1, 1.0 and True are the same."""
    if json.dumps(stored, sort_keys=True) != json.dumps(truth, sort_keys=True):
        raise Rejected(f"{what} is not what follows from the weights and the proofs")


def vector(value: Any, where: str, length: int | None = None) -> Vector:
    values, shape = array(value, where, 1)
    if length is not None and shape != [length]:
        raise Unreadable(f"{where} must have {length} numbers, not {shape[0]}")
    return Vector.of(values)


def matrix(value: Any, where: str) -> Matrix:
    values, (height, width) = array(value, where, 2)
    if not height or not width:
        raise Unreadable(f"{where} must not be empty")
    flat = Vector.of(values)
    return Matrix(folded(flat.ints, width), flat.exp)


def array(
    value: Any, where: str, dimensions: int, dtypes: tuple[str, ...] = FLOATS
) -> tuple[Sequence[Any], list[int]]:
    """The numbers of an encoded array, and its shape."""
    content = mapping(value, where, {"dtype", "shape", "base64"})
    shape = content["shape"]
    counts = isinstance(shape, list) and all(type(k) is int and k >= 0 for k in shape)
    if content["dtype"] not in dtypes or not counts or len(shape) != dimensions:
        raise Unreadable(f"{where} must be a {dimensions}-dimensional array of {dtypes}")
    try:
        raw = binascii.a2b_base64(content["base64"], strict_mode=True)
        values = struct.unpack(f"<{math.prod(shape)}{_CODES[content['dtype']]}", raw)
    except (ValueError, TypeError, struct.error):
        raise Unreadable(f"{where} is not base64 of as many numbers as its shape says") from None
    if not all(1 / LARGEST <= abs(value) <= LARGEST for value in values if value):
        raise Unreadable(f"{where} holds a number that is not finite, too large or too small")
    return values, shape
