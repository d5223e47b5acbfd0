"""python -m graphkeel.checker [--json] CERTIFICATE: exit 0 accepted, 1 rejected, 2 unreadable."""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict

from . import CheckResult, Unreadable, check_file

NOT_LINKED = "The link to a model and a graph was not checked: the file was taken by itself."


def main(arguments: list[str], check: Callable[[str], CheckResult], usage: str) -> int:
    names = [argument for argument in arguments if argument != "--json"]
    try:
        if len(names) != 1 or names[0] in ("-h", "--help"):
            raise Unreadable(usage)
        result = check(names[0])
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
    for entry in result.classes:
        verdicts = ", ".join(f"{name} {verdict}" for name, verdict in entry["conditions"].items())
        lines.append(f"class {entry['class']}: {entry['verdict']} ({verdicts})")
        lines += [f"  {entry['setting']}", f"  {entry['sentence']}"]
    lines += [f"All classes together: {result.together}"] if result.classes else []
    lines += [f"Message passing: {result.graph}"] if result.graph else []
    return [*lines, NOT_LINKED] if result.classes else lines


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], check_file, str(__doc__)))
