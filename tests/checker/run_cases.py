"""Runs the stored cases of a folder with whatever `graphkeel` is on the path; standard library
only. Prints the first case that ends otherwise than expected; exit 1 then.

    python run_cases.py FOLDER
"""

from __future__ import annotations

import json
import re
import sys
from fractions import Fraction
from importlib import import_module
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

SECONDS = re.compile('"seconds": [0-9.e-]+')


def outcome(package: Any, raw: bytes) -> str:
    """accepted, rejected: why, or unreadable: why."""
    try:
        result = package.check_bytes(raw)
    except package.Unreadable as error:
        return f"unreadable: {error}"
    return "accepted" if result.accepted else f"rejected: {result.reason}"


def as_expected(found: str, expected: str) -> bool:
    kind, _, words = expected.partition(": ")
    return found.split(":")[0] == kind and words in found


def answer(package: Any, query: tuple[Any, ...]) -> str:
    """The answer of a checker to a query (kind, …), for comparison with that of another one."""
    kinds = {"bytes": verdict, "bound": bound, "program": program, "cost": cost}
    kinds |= {"derived": derived, "limit": limited}
    return kinds[query[0]](package, *query[1:])


def verdict(package: Any, raw: bytes, words: str) -> str:
    """The output for an accepted file; of another one its kind, and whether it says why."""
    try:
        result = package.check_bytes(raw)
    except package.Unreadable as error:
        return f"unreadable, {words in str(error)}"
    if not result.accepted:
        return f"rejected, {words in result.reason}"
    lines = import_module(f"{package.__name__}.__main__").as_lines
    return "\n".join(lines(result))


def bound(package: Any, query: dict[str, Any]) -> str:
    return str(bound_of(package, query))


def program(package: Any, arguments: list[str]) -> str:
    """Exit code and output of a package's program, without what depends on the machine."""
    main = import_module(f"{package.__name__}.__main__").main
    kept, sys.stdout = sys.stdout, TextIOWrapper(BytesIO(), encoding="ascii")
    try:
        code = main(arguments)
        text = sys.stdout.buffer.getvalue().decode()
    finally:
        sys.stdout = kept
    return f"{code} {SECONDS.sub('', text)}"


def cost(package: Any, raw: bytes, limit: int) -> str:
    """How much of a limit on arithmetic is left by a file, or that it is not enough."""
    base = package.__name__
    checks = import_module(f"{base}.check")._CHECKS
    content = import_module(f"{base}.reading").parse(raw)
    work = import_module(f"{base}.exact").Work(limit)
    try:
        checks[content["format"]](content, work)
    except ArithmeticError as error:
        return str(error)
    return str(work.left)


def limited(package: Any, places: list[str], limit: int, asked: bytes | str) -> str:
    """The answer to a file with another limit in some modules; a text is the name of a file."""
    found = [place.rpartition(".") for place in places]
    modules = [(import_module(f"{package.__name__}.{module}"), name) for module, _, name in found]
    kept = [getattr(module, name) for module, name in modules]
    for module, name in modules:
        setattr(module, name, limit)
    try:
        if isinstance(asked, bytes):
            return verdict(package, asked, "")
        return str(package.check_file(asked).accepted)
    except package.Unreadable:
        return "unreadable"
    finally:
        for (module, name), old in zip(modules, kept, strict=True):
            setattr(module, name, old)


def derived(package: Any, content: dict[str, Any]) -> str:
    """All that follows of some classes, whose verdicts are taken as they stand."""
    base = package.__name__
    certificate = import_module(f"{base}.certificate")
    head = import_module(f"{base}.networks").read_source(content["head"], "head")
    work = import_module(f"{base}.exact").Work(10**12)
    said = []
    for entry in content["classes"]:
        try:
            problem = certificate.class_problem(head, entry, "a class", work)
            found = certificate.derive(head, problem, entry)
        except (package.Rejected, package.Unreadable) as error:
            return f"{said} {type(error).__name__}"
        conditions = {**entry["conditions"], **found["conditions"]}
        said.append({**entry, **found, "conditions": conditions})
    together = import_module(f"{base}.conclusion").all_together(said)
    stated = [
        {name: entry[name] for name in ("verdict", "setting", "conclusion")} for entry in said
    ]
    inside = [entry["conditions"] for entry in said]
    return json.dumps([stated, inside, together, work.left])


def bound_of(package: Any, query: dict[str, Any]) -> Fraction:
    """The bound that the checker computes for a stored row, box and choice."""
    relaxation, box, leaf = asked_of(package, query)
    found = relaxation.upper(relaxation.root, box, leaf)
    # what was multiplied out on this very box changes nothing
    assert found == relaxation.upper(
        relaxation.narrowed(relaxation.root, box, leaf.signs), box, leaf
    )
    return found


def asked_of(package: Any, query: dict[str, Any]) -> tuple[Any, Any, Any]:
    """The relaxation, the box and the leaf of a query."""
    base = package.__name__
    exact = import_module(f"{base}.exact")
    networks = import_module(f"{base}.networks")
    rows = import_module(f"{base}.problem")
    relaxation = import_module(f"{base}.relaxation")
    forward, lyapunov = (
        [
            networks.Layer(exact.Matrix(*matrix(w, exact)), exact.Vector.of(b))
            for w, b in query[name]
        ]
        for name in ("forward", "lyapunov")
    )
    ends = [exact.Vector.of(query[name]) for name in ("lower", "upper", "equilibrium")]
    numbers = [Fraction(value) for value in query["numbers"]]
    problem = rows.Problem(query["label"], forward, lyapunov, *ends, *numbers)
    if query["condition"] == "region":
        pulls = [relaxation.rounded(line) for line in query["pulls"]]
    else:
        pulls = []
    loop = rows.Loop(problem, exact.Work(10**12))
    row = loop.rows(query["condition"], pulls)[query["row"]]
    box = ends[0].joined(ends[1])
    firsts = [sum(stage.weight.height for stage in row.stages[:k]) for k in range(9)]
    signs = {firsts[stage] + unit: sign for (stage, unit), sign in query["signs"]}
    slopes = dict(zip(row.sloped, query["slopes"], strict=False))
    thetas = {
        row.gauge - row.coupled + k: relaxation.rounded(theta).ints
        for k, theta in enumerate(query["thetas"])
        if theta
    }
    work = exact.Work(10**12)
    bound = relaxation.Relaxation(row, box.exp, work, set(signs), bool(thetas), 64)
    n = len(ends[2])
    ends = (box.ints[:n], box.ints[n:])
    return bound, ends, relaxation.Leaf(query["weights"], signs, slopes, thetas)


def matrix(rows: list[list[float]], exact: Any) -> tuple[list[list[int]], int]:
    flat = exact.Vector.of([value for row in rows for value in row])
    width = len(rows[0])
    return [flat.ints[i : i + width] for i in range(0, len(flat.ints), width)], flat.exp


def main(folder: Path, package: Any) -> int:
    expected = json.loads((folder / "expected.json").read_text())
    for number, (query, wanted) in enumerate(expected["bounds"]):
        if bound_of(package, query) != Fraction(wanted):
            sys.stdout.write(f"bound {number} is another one\n")
            return 1
    for name, (file, wanted) in expected["cases"].items():
        found = outcome(package, (folder / file).read_bytes())
        if not as_expected(found, wanted):
            sys.stdout.write(f"{name}: {wanted} expected, {ascii(found)[:200]} found\n")
            return 1
    return 0


if __name__ == "__main__":
    from graphkeel import checker

    sys.exit(main(Path(sys.argv[1]), checker))
