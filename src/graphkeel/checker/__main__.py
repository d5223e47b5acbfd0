"""python -m graphkeel.checker [--json] FILE: exit 0 accepted, 1 rejected, 2 unreadable."""

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict
from fractions import Fraction
from typing import Any

from . import CheckResult, Unreadable, check_file

NOT_LINKED = "The link to a model and a graph was not checked: the file was taken by itself."
_BOUND = re.compile(r"(?:(?<=within )|(?<=at most )|(?<=at least ))\d+(?:\.\d+)?(?:e[-+]?\d+)?\b")


def main(arguments: list[str]) -> int:
    names = [argument for argument in arguments if argument != "--json"]
    try:
        if len(names) != 1 or names[0] in ("-h", "--help"):
            raise Unreadable(str(__doc__))
        result = check_file(names[0])
        code = 0 if result.accepted else 1
    except Unreadable as error:
        result, code = CheckResult(False, f"unreadable: {error}", 0.0), 2
    plain = len(names) == len(arguments)
    text = "\n".join(as_lines(result)) if plain else json.dumps(asdict(result), indent=1)
    sys.stdout.buffer.write(text.encode(sys.stdout.encoding, "backslashreplace") + b"\n")
    return code


def as_lines(result: CheckResult) -> list[str]:
    """The verdict, then what is certified of each class, in numbers."""
    lines = [f"{'accepted' if result.accepted else 'REJECTED'}: {result.reason}"]
    lines += class_lines(result.classes)
    lines += [f"All classes together: {result.together}"] if result.classes else []
    lines += [f"Message passing: {result.graph}"] if result.graph else []
    lines += [f"Steering: {result.steering}"] if result.steering else []
    return [*lines, NOT_LINKED] if result.classes else lines


def class_lines(classes: Sequence[dict[str, Any]]) -> list[str]:
    """The lines on all classes, one for each group of which the same is said; each Y is named, and
    where only numbers that may be larger differ, the largest one is true of all."""
    groups: dict[tuple[str, ...], list[tuple[int, str, str]]] = {}
    for entry in classes:
        verdicts = ", ".join(f"{name} {verdict}" for name, verdict in entry["conditions"].items())
        place, _, said = f"{entry['setting']}\n{entry['sentence']}".partition("; ")
        key = (f"{entry['verdict']} ({verdicts})", shape(said))
        groups.setdefault(key, []).append((entry["class"], place, said))
    lines = []
    for (verdict, _), group in groups.items():
        several = len(group) > 1
        labels = ", ".join(str(label) for label, _, _ in group)
        lines.append(f"{'classes' if several else 'class'} {labels}: {verdict}")
        lines += [f"  Class {label}: {place}" for label, place, _ in group if several]
        said = weakest([said for _, _, said in group])
        said = f"For each of them: {said}" if several else f"{group[0][1]}; {said}"
        lines += [f"  {line}" for line in said.split("\n")]
    return lines


def shape(text: str) -> str:
    """A text without the numbers that it would be true of if they were larger."""
    return _BOUND.sub("#", text)


def weakest(texts: list[str]) -> str:
    """One text for several of one shape, true wherever one of them is."""
    largest = [max(found, key=Fraction) for found in zip(*map(_BOUND.findall, texts), strict=True)]
    numbers = iter(largest)
    return _BOUND.sub(lambda _: next(numbers), texts[0])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
