"""python -m graphkeel.checker [--json] CERTIFICATE: exit 0 accepted, 1 rejected, 2 unreadable."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

from . import CheckResult, Unreadable, check_file

NOT_LINKED = "The link to a model and a graph was not checked: the file was taken by itself."


def main(arguments: list[str]) -> int:
    names = [argument for argument in arguments if argument != "--json"]
    as_json = len(names) < len(arguments)
    try:
        if len(names) != 1 or names[0] in ("-h", "--help"):
            raise Unreadable(__doc__)
        result = check_file(names[0])
        code = 0 if result.accepted else 1
    except Unreadable as error:
        result, code = CheckResult(False, f"unreadable: {error}", 0.0), 2
    text = json.dumps(asdict(result), indent=1) if as_json else as_text(result)
    sys.stdout.buffer.write(text.encode(sys.stdout.encoding, "backslashreplace") + b"\n")
    return code


def as_text(result: CheckResult) -> str:
    """The verdict, then what is certified of each class, in numbers."""
    lines = [f"{'accepted' if result.accepted else 'REJECTED'}: {result.reason}"]
    for entry in result.classes:
        verdicts = ", ".join(f"{name} {verdict}" for name, verdict in entry["conditions"].items())
        lines.append(f"class {entry['class']}: {entry['verdict']} ({verdicts})")
        lines += [f"  {entry['setting']}", f"  {entry['sentence']}"]
    if result.classes:
        lines.append(f"All classes together: {result.together}")
        lines += [f"Message passing: {result.graph}"] if result.graph else []
        lines.append(NOT_LINKED)
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
