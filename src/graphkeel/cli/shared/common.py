"""Shared by the subcommands: flags, output on stdout, progress on stderr. Standard library only at
import."""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from graphkeel.cli.shared.width import filled, fitted, terminal_width
from graphkeel.core.errors import ConfigError
from graphkeel.core.names import did_you_mean
from graphkeel.core.text import printable
from graphkeel.graph.datasets import DATASETS

if TYPE_CHECKING:
    from rich.console import Console

T = TypeVar("T")

EXIT_DONE = 0
EXIT_REFUTED = 1
EXIT_BAD_INPUT = 2
EXIT_UNKNOWN = 3
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143


# ---- what an option may be


def whole_number(low: int, high: int) -> Callable[[str], int]:
    """argparse type: an integer from `low` to `high`, both included."""
    return _checked(int, lambda n: low <= n <= high, f"a whole number from {low} to {high}")


def number(low: float, high: float, *, above: bool = False) -> Callable[[str], float]:
    """argparse type: a number from `low` (with `above`: more than `low`) to `high`, never NaN."""
    words = f"a number {'above' if above else 'from'} {low:g} {'up ' * above}to {high:g}"
    return _checked(float, lambda n: low <= n <= high and not (above and n == low), words)


def _checked(read: Callable[[str], T], fits: Callable[[T], bool], words: str) -> Callable[[str], T]:
    def convert(text: str) -> T:
        with contextlib.suppress(ValueError):
            value = read(text)
            if fits(value):
                return value
        _refuse(f"must be {words}", text)

    return convert


def path_type(text: str) -> Path:
    """argparse type: a path that a file system can have."""
    if not text or "\0" in text:
        _refuse("must be a path, not empty and without NUL characters", text)
    return Path(text)


def dataset_type(text: str) -> str:
    """argparse type: a dataset's name or the path of a graph; who loads it knows which."""
    path_type(text)
    return text


def _shown(text: str, longest: int = 80) -> str:
    """A refused value, cut where it is long."""
    return text if len(text) <= longest else f"{text[:longest]}…"


def _refuse(what: str, text: str) -> NoReturn:
    raise argparse.ArgumentTypeError(f"{what} (got {_shown(text)!r})")


# NumPy's and scikit-learn's seeds are not negative and have 32 bits; --seeds counts on from there.
seed_type = whole_number(0, 2**31 - 1)
positive_int = whole_number(1, 1_000_000)
jobs_type = whole_number(1, 1024)
seconds_type = number(0.0, 1e9, above=True)


class Parser(argparse.ArgumentParser):
    """argparse's parser, whose own messages show what was typed without its control characters, and
    name the command or option that was probably meant."""

    def error(self, message: str) -> NoReturn:
        super().error(printable(message))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            known = [str(choice) for choice in action.choices or ()]
            typed = _shown(str(value))
            words = f"{error.message}. {did_you_mean(typed, known) or ''}"
            raise argparse.ArgumentError(action, words.rstrip()) from None

    def parse_known_args(  # type: ignore[override]
        self, args: Any = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """As argparse's; an option that does not exist is refused by the command it was given
        to."""
        found, others = super().parse_known_args(args, namespace)
        unknown = [word for word in others if word.startswith("--")]
        if unknown:
            known = [name for name in self._option_string_actions if name.startswith("--")]
            typed = _shown(unknown[0].split("=")[0])
            meant = did_you_mean(typed, known) or ""
            self.error(f"there is no option {typed}. {meant}".rstrip())
        return found, others


_BELOW = " " * 8
_GOES_ON = " \\"


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Wraps paragraphs to the terminal. The lines of examples, which are indented, stay where they
    fit."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        blocks = text.strip().split("\n\n")
        return "\n\n".join("\n".join(_wrapped(block, width)) for block in blocks)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return _wrapped(" ".join(text.split()), width)  # argparse's breaks words at their hyphens


def _wrapped(block: str, width: int) -> list[str]:
    if not block.startswith(" "):
        return filled(block, width)
    return [part for line in block.splitlines() for part in _example(line, width)]


def _example(line: str, width: int) -> list[str]:
    """A command, then its remark: nearer to it where that makes room, or below it."""
    if len(line) <= width:
        return [line]
    if line.startswith(_BELOW):
        return filled(line.strip(), width, _BELOW, _BELOW)
    indent = line[: len(line) - len(line.lstrip())]
    command, gap, remark = line.strip().rpartition("   ")
    if gap:
        command = indent + command.rstrip()
        nearer = f"{command.ljust(width - len(remark) - 2)}  {remark}"
        below = [*_example(command, width), *_example(_BELOW + remark, width)]
        return [nearer] if len(nearer) <= width else below
    kept = re.sub(r"(--[\w-]+) (?!-)", "\\1\xa0", line.strip())  # an option and its value
    *parts, last = filled(kept, width - len(_GOES_ON), indent, _BELOW)
    lines = [*(part + _GOES_ON for part in parts), last]  # can be copied into a shell
    return [one.replace("\xa0", " ") for one in lines]


# ---- options that several commands have

_DATASET = f"one of {', '.join(DATASETS)}, or a graph of your own as FILE.npz (default digits)"
_SPLIT = """biased, random or public: the graph's own masks (default biased; with --weights public,
    where the graph has masks)"""
_CLASS_WEIGHT = "of auto: every class has the same weight, however large (default: every node does)"
_WEIGHTS = "a model of your own: its weights, as safetensors or torch.save(state_dict)"
_FACTORY = "the function that builds it: called with n_features and n_classes if it takes them"
_OPTIONS: dict[str, dict[str, Any]] = {
    "--json": {"action": "store_true", "help": "print one JSON object on stdout, no tables"},
    "--seed": {"type": seed_type, "default": 0, "help": "first random seed (default 0)"},
    "--seeds": {"type": positive_int, "metavar": "N"},
    "--out": {"type": path_type, "metavar": "DIR", "help": "write the results into this folder"},
    "--dataset": {"type": dataset_type, "default": "digits", "metavar": "NAME", "help": _DATASET},
    "--model": {"default": "sgc", "help": "sgc, gcn, gat, sage or appnp (default sgc)"},
    "--split": {"help": _SPLIT},
    "--features": {"default": "auto", "help": "auto, raw, rownorm, pca or pca-raw (default auto)"},
    "--class-weight": {"choices": ("balanced",), "help": _CLASS_WEIGHT},
    "--classes": {
        "type": path_type,
        "metavar": "FILE",
        "help": "names of the classes, a line each",
    },
    "--weights": {"type": path_type, "metavar": "FILE", "help": _WEIGHTS},
    "--factory": {"metavar": "MODULE:FUNCTION", "help": _FACTORY},
}
OWN_MODEL = ("--weights", "--factory")
SEED_OF_RUN = {"default": None, "help": "which seed of the run (default: its first)"}
SPEC = ("--dataset", "--model", "--split", "--features", "--class-weight", *OWN_MODEL)


def add_options(parser: argparse.ArgumentParser, *names: str, **changed: Any) -> None:
    """Options that several commands have. What is changed of one is named by it: other words of
    help as `out="…"`, other settings as `seed={"default": None}`."""
    for name in names:
        other = changed.get(name.removeprefix("--"), {})
        settings = {"help": other} if isinstance(other, str) else other
        parser.add_argument(name, **{**_OPTIONS[name], **settings})


# ---- what is printed


def emit_json(payload: dict[str, Any]) -> None:
    """One JSON object on stdout; NaN would not be JSON, so it is refused here rather than at the
    reader."""
    json.dump(payload, sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def emit(args: argparse.Namespace, payload: dict[str, Any], show: Callable[[], None]) -> int:
    """The result as it was asked for, as JSON or for people; the exit code of what is done."""
    if args.json:
        emit_json(payload)
    else:
        show()
    return EXIT_DONE


def emit_lines(lines: Iterable[str]) -> None:
    """Lines on stdout, as wide as the terminal; names of files in them are shown without their
    control characters."""
    shown = fitted(lines, terminal_width())
    sys.stdout.write("".join(f"{printable(line)}\n" for line in shown))


def console(*, stderr: bool = False) -> Console:
    """A rich console; progress and remarks go to stderr so that stdout stays parseable."""
    from rich.console import Console

    return Console(stderr=stderr)


def say_reused(what: str, folder: Path) -> None:
    """On stderr: what an earlier run has left, so that nobody wonders why this one was quick."""
    sys.stderr.write(printable(f"{what} were in {folder} already and are reused") + "\n")


def verbatim(text: str) -> str:
    """A name from outside as rich shows it letter for letter: "[/]" in a file's name is no markup,
    and an escape sequence in it is no command to the terminal."""
    from rich.markup import escape

    return escape(printable(text))


def make_out_dir(path: Path) -> Path:
    """Create the output folder before any work; a sentence of ours where that fails."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            "the output folder cannot be made",
            got=f"{path}: {error.strerror}",
            fix="Choose another --out.",
        ) from error
    return path
