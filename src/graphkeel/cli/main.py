"""Entry point of `keel`: finds the subcommand, turns errors into one message and an exit code."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphkeel import __version__
from graphkeel.cli.shared.common import (
    EXIT_BAD_INPUT,
    EXIT_INTERRUPTED,
    EXIT_TERMINATED,
    HelpFormatter,
    Parser,
)
from graphkeel.core.errors import KeelError
from graphkeel.core.optional import import_optional
from graphkeel.core.signals import Terminated, terminable
from graphkeel.core.text import printable

_EPILOG = """exit codes: 0 done or proved, 1 refuted or rejected, 2 bad input, 3 unknown;
of keel monitor also 4 update, 5 label, 6 retrain"""


@dataclass(frozen=True)
class Program:
    """A program of several commands."""

    name: str  # what is typed
    version: str  # what --version prints
    description: str  # what --help prints first
    commands: Mapping[str, str]  # the module of each command
    specs: str  # the module with the `RunSpec` and `AdaptSpec` that its commands run

    def parser(self) -> argparse.ArgumentParser:
        parser = Parser(
            prog=self.name,
            description=self.description,
            epilog=_EPILOG,
            formatter_class=HelpFormatter,
        )
        parser.set_defaults(specs=self.specs)
        parser.add_argument("--version", action="version", version=self.version)
        parser.add_argument(
            "--print-completion",
            action=_PrintCompletion,
            choices=("bash", "zsh"),
            help="print a completion script for the shell (extra `completion`)",
        )
        commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
        for name, place in self.commands.items():
            module = importlib.import_module(place)
            sub = commands.add_parser(
                name,
                help=module.HELP,
                description=module.__doc__ or module.HELP,
                formatter_class=HelpFormatter,
            )
            module.add_arguments(sub)
        return parser

    def main(self, argv: Sequence[str] | None = None) -> int:
        """Run one command and return its exit code."""
        for name, value in _WAITING.items():
            os.environ.setdefault(name, value)  # read when torch is loaded, which is later
        try:
            with terminable():
                return self._run(self.parser().parse_args(argv))
        except KeyboardInterrupt:
            sys.stderr.write(f"\n{self.name}: interrupted; what was finished is kept\n")
            return EXIT_INTERRUPTED
        except Terminated:
            sys.stderr.write(f"\n{self.name}: terminated; what was finished is kept\n")
            return EXIT_TERMINATED

    def _run(self, args: argparse.Namespace) -> int:
        """The command's exit code; what it cannot do becomes one message."""
        try:
            code = int(importlib.import_module(self.commands[args.command]).run(args))
            # a full disk behind a redirection shows here, and not after the exit code is decided
            sys.stdout.flush()
            return code
        except KeelError as error:
            return self._refuse(args, str(error))
        except BrokenPipeError:
            # The reader of our output went away (`keel … | head`): not our failure, and nothing
            # left to say.
            _silence_stdout()
            return 0
        except OSError as error:
            _silence_stdout()
            where = f"{error.filename}: " if error.filename else ""
            return self._refuse(
                args, f"a file cannot be read or written (got {where}{error.strerror or error})."
            )
        except MemoryError as error:
            return self._refuse(
                args,
                f"there is not enough memory (got {error or 'no detail'}). Choose a smaller graph.",
            )

    def _refuse(self, args: argparse.Namespace, message: str) -> int:
        sys.stderr.write(f"{self.name} {args.command}: {printable(message)}\n")
        return EXIT_BAD_INPUT


class _PrintCompletion(argparse.Action):
    """Prints shtab's script of all commands and ends, as --version does."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: Any, values: Any, option: Any = None
    ) -> None:
        try:
            shtab = import_optional("shtab", extra="completion")
        except KeelError as error:
            parser.error(str(error))
        sys.stdout.write(shtab.complete(parser, shell=values) + "\n")
        parser.exit()


# Threads of OpenMP that wait by spinning take the cores from those that work: on a shared machine
# the demo took three times as long.
_WAITING = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0"}


def _silence_stdout() -> None:
    """Nothing more can be said there, and the interpreter's own last flush must not fail on it."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


_NAMES = "demo run fit adapt feedback label monitor certify check verify export report doctor"
COMMANDS = {name: f"graphkeel.cli.{name}" for name in _NAMES.split()}

DESCRIPTION = """\
graphkeel keeps a trained graph neural network upright under distribution shift, without
retraining it.

  keel demo                          a first result, no download
  keel run --dataset my_graph.npz    better predictions from the same weights
  keel certify --out run/            prove the controllers, write a certificate
  keel check run/certificate.json    re-prove it independently
"""

KEEL = Program("keel", f"graphkeel {__version__}", DESCRIPTION, COMMANDS, "graphkeel.runs.specs")


def main(argv: Sequence[str] | None = None) -> int:
    return KEEL.main(argv)


if __name__ == "__main__":
    raise SystemExit(main())
