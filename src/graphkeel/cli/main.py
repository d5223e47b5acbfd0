"""Entry point of `keel`: finds the subcommand, turns errors into one message and an exit code."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from types import ModuleType

from graphkeel import __version__
from graphkeel.cli.common import EXIT_BAD_INPUT, EXIT_INTERRUPTED
from graphkeel.errors import KeelError

COMMANDS = (
    "demo",
    "run",
    "feedback",
    "certify",
    "check",
    "verify",
    "export",
    "table",
    "figure",
    "report",
    "doctor",
)

DESCRIPTION = """\
graphkeel keeps a trained graph neural network upright under distribution shift, without retraining it.

  keel demo                                  a first result, no download
  keel run --dataset cora --method auto      better predictions from the same weights
  keel certify --dataset cora --out run/     prove the controllers stable, write certificate.json
  keel check run/certificate.json            re-prove a certificate independently
"""

EPILOG = "exit codes: 0 done or proved, 1 refuted or rejected, 2 bad input, 3 unknown"


def _module(command: str) -> ModuleType:
    return importlib.import_module(f"graphkeel.cli.{command}")


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="keel",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"graphkeel {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS:
        module = _module(name)
        sub = commands.add_parser(
            name,
            help=module.HELP,
            description=module.__doc__ or module.HELP,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(sub)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    args = build_parser().parse_args(argv)
    try:
        return int(_module(args.command).run(args))
    except KeelError as error:
        sys.stderr.write(f"keel {args.command}: {error}\n")
        return EXIT_BAD_INPUT
    except KeyboardInterrupt:
        sys.stderr.write(f"\nkeel {args.command}: interrupted; what was finished is kept\n")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away (`keel … | head`): not our failure, and nothing left to say.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


if __name__ == "__main__":
    raise SystemExit(main())
