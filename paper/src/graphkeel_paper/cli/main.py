"""Entry point of `keel-paper`: its own commands, and those of `keel` on the paper's datasets."""

from __future__ import annotations

from collections.abc import Sequence

from graphkeel.cli.main import COMMANDS as LIBRARY
from graphkeel.cli.main import Program
from graphkeel_paper import __version__

COMMANDS = {
    "run": "graphkeel_paper.cli.run",
    **{
        name: LIBRARY[name] for name in ("adapt", "feedback", "label", "certify", "check", "report")
    },
    "table": "graphkeel_paper.cli.table",
    "figure": "graphkeel_paper.cli.figure",
    "doctor": "graphkeel_paper.cli.doctor",
}

DESCRIPTION = """\
graphkeel-paper reproduces the paper behind graphkeel and compares it with others.

  keel-paper run --dataset cora --method auto      ours or a rival, in the paper's protocol
  keel-paper certify --dataset cora --out run/     as keel certify, on the paper's datasets
  keel-paper table 1                               the paper's tables, measured
  keel-paper figure 3 --dataset cora               and its figures
"""

PROGRAM = Program(
    "keel-paper", f"graphkeel-paper {__version__}", DESCRIPTION, COMMANDS, "graphkeel_paper.specs"
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command of `keel-paper` and return its exit code."""
    return PROGRAM.main(argv)


if __name__ == "__main__":
    raise SystemExit(main())
