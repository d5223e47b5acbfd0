"""Lines of Python of each package, beside those of the last release and its budget (lines.json).

`python tests/test_lines.py` prints them. With `--write` each budget becomes a hundredth more than
today's count, rounded up to tens; with `--release` today's counts are also those of the release."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
STORED = Path(__file__).with_name("lines.json")
PACKAGES = [REPOSITORY / "src" / "graphkeel", REPOSITORY / "paper" / "src" / "graphkeel_paper"]


def counted() -> dict[str, int]:
    """Lines by package: each folder of a distribution, and the modules beside the folders."""
    found = {}
    for root in filter(Path.is_dir, PACKAGES):  # the library is also tested without the paper
        found[root.name] = _lines(root.glob("*.py"))
        folders = {path.relative_to(root).parts[0] for path in root.rglob("*/*.py")}
        found |= {f"{root.name}.{name}": _lines((root / name).rglob("*.py")) for name in folders}
    return dict(sorted(found.items()))


def _lines(paths) -> int:
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def complaints(found: dict[str, int], stored: dict[str, dict[str, int]]) -> list[str]:
    """A sentence for each package that is larger than its budget, or has none."""
    said = []
    for package, lines in found.items():
        budget = stored.get(package, {}).get("budget")
        if budget is None:
            said.append(f"{package} has {lines} lines and no budget in tests/lines.json.")
        elif lines > budget:
            said.append(
                f"{package} has {lines} lines, {lines - budget} more than its budget: take out "
                "what the change made unnecessary, or say in the changelog why it may grow and "
                "raise the budget in tests/lines.json."
            )
    return said


def table(found: dict[str, int], stored: dict[str, dict[str, int]]) -> list[str]:
    """A line a package: lines today, at the last release, and its budget."""
    rows = [f"{'package':32}{'lines':>8}{'release':>9}{'change':>8}{'budget':>8}"]
    for package, lines in found.items():
        entry = stored.get(package, {"release": 0, "budget": 0})
        change = lines - entry["release"]
        rows.append(f"{package:32}{lines:>8}{entry['release']:>9}{change:>+8}{entry['budget']:>8}")
    return rows


def read() -> dict[str, dict[str, int]]:
    return json.loads(STORED.read_text(encoding="utf-8"))


def write(*, release: bool) -> None:
    """Budgets from today's counts, which may also be those of a release."""
    before = read()
    entries = {
        package: {
            "release": lines if release else before.get(package, {}).get("release", 0),
            "budget": -(-(lines + lines // 100) // 10) * 10,
        }
        for package, lines in counted().items()
    }
    STORED.write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")


def test_no_package_exceeds_its_budget(capsys: pytest.CaptureFixture[str]) -> None:
    found, stored = counted(), read()
    with capsys.disabled():
        print("", *table(found, stored), sep="\n")
    assert complaints(found, stored) == []


def test_budgets_are_of_packages_that_there_are() -> None:
    there = {root.name for root in PACKAGES if root.is_dir()}
    stored = {package for package in read() if package.partition(".")[0] in there}
    assert stored <= set(counted())


def test_a_package_that_grew_and_one_without_a_budget_are_named() -> None:
    stored = {"a": {"release": 10, "budget": 12}, "b": {"release": 5, "budget": 5}}
    (grown, unknown) = complaints({"a": 15, "b": 5, "c": 1}, stored)
    assert grown.startswith("a has 15 lines, 3 more than its budget")
    assert unknown.startswith("c has 1 lines and no budget")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="budgets from today's counts")
    parser.add_argument("--release", action="store_true", help="today's counts are the release's")
    given = parser.parse_args()
    if given.write or given.release:
        write(release=given.release)
    sys.stdout.write("\n".join(table(counted(), read())) + "\n")
