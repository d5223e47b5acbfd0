"""Published network properties (ONNX + VNN-LIB): verdicts, processor seconds, and proofs checked.

    python benchmarks/bench_properties.py --problems FOLDER
    python benchmarks/bench_properties.py --problems FOLDER --only cart_pole --check-limit 3600
    python benchmarks/bench_properties.py --problems acasxu_2023 --limit 60 --check-limit 0 \
        --published nnenum/2023_acasxu/results.csv
    python benchmarks/bench_properties.py --problems lsnc_relu --limit 25 --proofs kept \
        --check-limit 0
    python benchmarks/bench_properties.py --problems lsnc_relu --proofs kept --check-only

FOLDER holds `SYSTEM_KIND.onnx` and `prop_SYSTEM.vnnlib`, as the cersyve family of VNN-COMP 2025, or
the `instances.csv` of another family. `--published` names the results of a tool there: verdicts
that contradict them are counted. `--proofs` keeps the proofs, which can then be checked later.
Each property is decided in this process, one thread, on the clock of processor time, with the
compiled kernels loaded before; every proof of `unsat` is then checked by the independent program in
a process of its own, and what that program takes to start is taken off, as it is off the search:
the last line has it. Beside them stand stored processor seconds of α,β-CROWN (its own settings for
this family, one thread, without imports): those of its release of December 2025, measured once,
and for cart_pole_finetune_inv, which that one left open after 100 s, the 9.2 s of a later one
(8250d5f, with clipping), quoted from the project's notes. Exits 1 if a proof is rejected or a
verdict contradicts a published one."""

from __future__ import annotations

import argparse
import csv
import math
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from graphkeel.certificate.encoding import write_certificate
from graphkeel.verify.formats.onnx_reader import read_onnx
from graphkeel.verify.formats.vnnlib_reader import read_vnnlib
from graphkeel.verify.property.decide import decide
from graphkeel.verify.result import Budget
from graphkeel.verify.warm import load_kernels

# (least, most) seconds; of six quick ones only the range was kept
QUICK = (0.01, 0.1)
PEER = {
    "double_integrator_pretrain_con": (0.5, 0.5),
    "double_integrator_finetune_con": (0.44, 0.44),
    "double_integrator_finetune_inv": (0.98, 0.98),
    "pendulum_pretrain_con": (0.5, 0.5),
    "pendulum_finetune_con": (0.66, 0.66),
    "pendulum_finetune_inv": (1.62, 1.62),
    "unicycle_finetune_con": (0.64, 0.64),
    "unicycle_finetune_inv": (6.3, 6.3),
    "cart_pole_finetune_con": (1.6, 1.6),
    "cart_pole_finetune_inv": (9.2, 9.2),
}
HARDEST = "cart_pole_finetune_inv"
CHECKER = (sys.executable, "-m", "graphkeel.checker")


@dataclass(frozen=True)
class Line:
    """One property: ours, the check of the proof, and the peer's seconds."""

    name: str
    verdict: str
    seconds: float
    nodes: int
    check: str
    check_seconds: float
    peer: tuple[float, float] | None


def measured(network_file: Path, property_file: Path, args: argparse.Namespace) -> Line:
    network, prop = read_onnx(network_file), read_vnnlib(property_file)
    start = time.process_time()
    budget = Budget(args.limit, threads=1, clock="processor")
    wanted = args.check_limit > 0 or args.proofs is not None
    answer = decide(network, prop, budget, keep=wanted)
    seconds = time.process_time() - start
    name = f"{network_file.stem} {property_file.stem}"
    check, check_seconds = "", 0.0
    if answer.proof is not None:
        with tempfile.TemporaryDirectory() as folder:
            file = (args.proofs or Path(folder)) / f"{name}.json"
            write_certificate(answer.proof, file)
            if args.check_limit > 0:
                check, check_seconds = checked(file, args.check_limit)
    elif answer.verdict == "unsat" and wanted:
        check = "not stored"
    peer = PEER.get(network_file.stem, QUICK) if _is_cersyve(args.problems) else None
    return Line(name, answer.verdict, seconds, answer.nodes, check, check_seconds, peer)


def check_kept(folder: Path, limit: int) -> int:
    """Check the proofs of a folder, a line each."""
    wrong = 0
    for file in sorted(folder.glob("*.json")):
        check, seconds = checked(file, limit)
        size = file.stat().st_size / 2**20
        print(f"{file.stem:<48} {size:6.1f} MiB   {check} {seconds:.1f} s", flush=True)
        wrong += check in ("REJECTED", "UNREADABLE")
    return int(wrong > 0)


def checked(file: Path, limit: int) -> tuple[str, float]:
    """(what the checker says, its processor seconds); `unfinished` where a signal ended it."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))

    before = _children()
    command = [*CHECKER, str(file)]
    done = subprocess.run(command, preexec_fn=limited, capture_output=True, text=True, check=False)
    words = {0: "accepted", 1: "REJECTED", 2: "UNREADABLE"}
    seconds = _children() - before - start_seconds()
    return words.get(done.returncode, "unfinished"), max(seconds, 0.0)


@cache
def start_seconds() -> float:
    """Processor seconds of the checker's program before it reads a file, the least of five."""
    least = math.inf
    for _ in range(5):
        before = _children()
        subprocess.run([*CHECKER, "-h"], capture_output=True, check=False)
        least = min(least, _children() - before)
    return least


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def shown(line: Line) -> str:
    peer = "" if line.peer is None else f"{line.peer[0]:g}"
    if line.peer is not None and line.peer[1] > line.peer[0]:
        peer += f" to {line.peer[1]:g}"
    check = line.check
    if line.check == "accepted":
        ratio = line.check_seconds / max(line.seconds, 1e-3)
        check += f" {line.check_seconds:.2f} s, {ratio:.1f} times the search"
    return (
        f"{line.name:<48} {line.verdict:<8} {line.seconds:>8.3f} {line.nodes:>8} {peer:>12}"
        f"   {check}"
    )


def totals(lines: list[Line]) -> list[str]:
    """Sums, and where the peer may have been faster."""
    both = [(line, line.peer) for line in lines if line.peer is not None]
    ours = sum(line.seconds for line in lines)
    found = [f"decided: {sum(line.verdict != 'unknown' for line in lines)} of {len(lines)}"]
    median, most = statistics.median(line.seconds for line in lines), max(lines, key=_seconds)
    found.append(f"{ours:.1f} s, median {median:.3f}, longest {most.name} {most.seconds:.1f}")
    if both:
        least, most_of_peer = (sum(peer[k] for _, peer in both) for k in (0, 1))
        slower = [line.name for line, peer in both if line.seconds > peer[1]]
        unsure = [line.name for line, peer in both if peer[0] < line.seconds <= peer[1]]
        found += [
            f"the {len(both)} that α,β-CROWN decides: ours {ours:.2f} s, its {least:.2f} to"
            f" {most_of_peer:.2f} s (at least {least / ours:.1f} times as many)",
            f"ours is slower on: {', '.join(slower) or 'none'}",
            f"ours lies inside its range of {QUICK[0]:g} to {QUICK[1]:g} s on: "
            f"{', '.join(unsure) or 'none'}",
        ]
    proofs = [line for line in lines if line.verdict == "unsat" and line.check]
    accepted = sum(line.check == "accepted" for line in proofs)
    found.append(f"proofs of unsat accepted by the checker: {accepted} of {len(proofs)}")
    if accepted:
        found.append(f"the checker's start, not counted: {start_seconds():.2f} s")
    return found


def _seconds(line: Line) -> float:
    return line.seconds


def _is_cersyve(folder: Path) -> bool:
    return not (folder / "instances.csv").exists()


def pairs(folder: Path) -> list[tuple[Path, Path]]:
    """Networks and their properties; the proof of the hardest one takes longest to check: last."""
    if not _is_cersyve(folder):
        with (folder / "instances.csv").open(encoding="utf-8") as file:
            return [(folder / network, folder / prop) for network, prop, _ in csv.reader(file)]
    files = sorted(folder.glob("*.onnx"), key=lambda file: (file.stem == HARDEST, file.stem))
    return [(file, folder / f"prop_{file.stem.rsplit('_', 2)[0]}.vnnlib") for file in files]


def contradictions(lines: list[Line], published: Path) -> list[str]:
    """Verdicts that differ from those of another tool (columns 2, 3 and 5 of the competition's
    file)."""
    with published.open(encoding="utf-8") as file:
        rows = [row for row in csv.reader(file) if len(row) > 4]
    theirs = {f"{Path(row[1]).stem} {Path(row[2]).stem}": row[4] for row in rows}
    asked = [line for line in lines if theirs.get(line.name) in ("sat", "unsat")]
    wrong = [line.name for line in asked if line.verdict not in ("unknown", theirs[line.name])]
    print(f"against {len(asked)} published verdicts: {len(wrong)} contradictions")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", type=Path, required=True, help="the folder of both files")
    parser.add_argument("--only", default="", help="only networks whose name holds this")
    parser.add_argument("--limit", type=float, default=100.0, help="processor seconds a property")
    parser.add_argument(
        "--check-limit", type=int, default=600, help="processor seconds a proof's check; 0: none"
    )
    parser.add_argument("--published", type=Path, help="another tool's results.csv")
    parser.add_argument("--proofs", type=Path, help="keep the proofs in this folder")
    parser.add_argument("--check-only", action="store_true", help="check those that are there")
    parser.add_argument("--turn", nargs=2, type=int, default=(0, 1), help="K N: one in N of them")
    args = parser.parse_args()
    if args.check_only:
        return check_kept(args.proofs, args.check_limit)
    if args.proofs is not None:
        args.proofs.mkdir(parents=True, exist_ok=True)
    load_kernels()
    head = f"{'network, property':<48} {'verdict':<8} {'cpu s':>8} {'boxes':>8}"
    print(f"{head} {'α,β-CROWN s':>12}   check", flush=True)
    lines = []
    for network_file, property_file in pairs(args.problems)[args.turn[0] :: args.turn[1]]:
        if args.only in network_file.stem:
            lines.append(measured(network_file, property_file, args))
            print(shown(lines[-1]), flush=True)
    print("\n".join(totals(lines)))
    wrong = contradictions(lines, args.published) if args.published else []
    return int(bool(wrong) or any(line.check in ("REJECTED", "UNREADABLE") for line in lines))


if __name__ == "__main__":
    sys.exit(main())
