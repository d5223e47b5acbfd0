"""Look into built distributions: what should be there is, and nothing else.

python .ci/check_distributions.py DIST [--tag v1.2.3] [--source URL]
"""

from __future__ import annotations

import argparse
import email
import email.message
import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {"graphkeel": ROOT / "src", "graphkeel_paper": ROOT / "paper" / "src"}
SCRIPTS = {"graphkeel": "keel = ", "graphkeel_paper": "keel-paper = "}
FOREIGN = {"tests", "benchmarks", "__pycache__"}  # no part of what is installed


def main() -> int:
    """Print one line a file, and what is wrong with it; 1 if anything is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tag", help="the version's tag, v and the version")
    parser.add_argument("--source", help="the link to the sources that the metadata should hold")
    options = parser.parse_args()
    wrong = []
    for name, sources in PACKAGES.items():
        wheel = one(options.folder, f"{name}-*.whl")
        wrong += [f"{wheel.name}: {fault}" for fault in wheel_faults(wheel, name, sources)]
        about = metadata(wheel)
        if options.tag and options.tag != f"v{about['Version']}":
            wrong.append(f"{wheel.name}: not the version of the tag {options.tag}")
        if options.source and f"Source, {options.source}" not in about.get_all("Project-URL", []):
            wrong.append(f"{wheel.name}: no link to the sources, {options.source}")
        archive = one(options.folder, f"{name}-*.tar.gz")
        wrong += [f"{archive.name}: {fault}" for fault in sdist_faults(archive, name, sources)]
    sys.stdout.write("".join(f"{line}\n" for line in wrong))
    return 1 if wrong else 0


def one(folder: Path, pattern: str) -> Path:
    """The only file of that name."""
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise SystemExit(f"{folder} should hold one file {pattern} (got {len(found)}).")
    sys.stdout.write(f"{found[0].name}: {found[0].stat().st_size / 1e6:.2f} MB\n")
    return found[0]


def wheel_faults(wheel: Path, name: str, sources: Path) -> list[str]:
    """Files that are missing or foreign, and metadata that a package index needs."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        faults = compare({n for n in names if ".dist-info/" not in n}, expected(name, sources))
        (about,) = [n for n in names if n.endswith(".dist-info/entry_points.txt")]
        if SCRIPTS[name] not in archive.read(about).decode():
            faults.append(f"no command {SCRIPTS[name]!r}")
    if not any("licenses/LICENSE" in n for n in names):
        faults.append("no LICENSE")
    return faults


def sdist_faults(archive: Path, name: str, sources: Path) -> list[str]:
    """Sources that are missing; an sdist may hold more than the package."""
    with tarfile.open(archive) as opened:
        names = {str(PurePosixPath(*PurePosixPath(n).parts[1:])) for n in opened.getnames()}
    missing = {f"src/{n}" for n in expected(name, sources)} - names
    return [f"{n} is missing" for n in sorted(missing)]


def expected(name: str, sources: Path) -> set[str]:
    """Files of the package, as they stand in a wheel."""
    files = (path.relative_to(sources) for path in (sources / name).rglob("*") if path.is_file())
    return {path.as_posix() for path in files if not FOREIGN & set(path.parts)}


def compare(found: set[str], wanted: set[str]) -> list[str]:
    """One sentence a difference."""
    missing = [f"{name} is missing" for name in sorted(wanted - found)]
    return missing + [f"{name} does not belong there" for name in sorted(found - wanted)]


def metadata(wheel: Path) -> email.message.Message:
    """The metadata of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
        return email.message_from_bytes(archive.read(name))


if __name__ == "__main__":
    raise SystemExit(main())
