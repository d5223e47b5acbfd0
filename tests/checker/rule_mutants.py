"""Mutants of the checker by rule (mutation_rules.py), each run through all cases of this folder.

    python tests/checker/rule_mutants.py --seed 0 --count 500     a sample; 0: every mutant
    python tests/checker/rule_mutants.py --written                those of mutants.py instead

A mutant runs in a child process, which loads the packages from code that is kept in memory and
stops at the first case that ends otherwise. Where nothing notices it, the mutant is listed, and has
to stand in equivalent_mutants.txt with the reason why no case can notice it. Standard library only;
limits are in processor time, so that a busy machine changes nothing."""

from __future__ import annotations

import argparse
import os
import random
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, ModuleType
from typing import Any, NamedTuple

from mutants import MUTANTS, Mutant
from mutation_rules import PACKAGES, sample

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / "src" / "graphkeel"
EQUIVALENT = HERE / "equivalent_mutants.txt"
PATIENCE = 1  # times the processor seconds that making and answering all probes takes
MOST_MEMORY = 1 << 30
Key = tuple[str, str, str, str]


class Packages(MetaPathFinder, Loader):
    """`graphkeel` as the checker's packages alone, from code in memory."""

    def __init__(self) -> None:
        self.codes: dict[str, CodeType] = {}
        for package in PACKAGES:
            for path in sorted((SOURCES / package).glob("*.py")):
                code = compile(path.read_text(), str(path), "exec")
                self.codes[module_name(f"{package}/{path.name}")] = code

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> ModuleSpec | None:
        if name != "graphkeel" and name not in self.codes:
            return None
        whole = name == "graphkeel" or any(other.startswith(f"{name}.") for other in self.codes)
        return ModuleSpec(name, self, is_package=whole)

    def exec_module(self, module: ModuleType) -> None:
        code = self.codes.get(module.__name__)
        if code is not None:
            exec(code, module.__dict__)

    def forget(self) -> None:
        """Forget all imports, so that modules are imported anew."""
        for name in [name for name in sys.modules if name.split(".")[0] == "graphkeel"]:
            del sys.modules[name]


def module_name(file: str) -> str:
    """checker/__init__.py is graphkeel.checker."""
    return f"graphkeel.{file.removesuffix('.py').replace('/', '.')}".removesuffix(".__init__")


def known_equivalents() -> dict[Key, str]:
    """The mutants that nothing can notice, and why."""
    return listed(EQUIVALENT)


def listed(path: Path) -> dict[Key, str]:
    """Mutants of a text: `# why`, then `file function`, `- old` and `+ new` for each."""
    found: dict[Key, str] = {}
    why, place, old = "", ("", ""), ""
    for line in path.read_text().splitlines():
        kind, _, text = line.partition(" ")
        if kind == "#":
            why = text
        elif kind == "-":
            old = text
        elif kind == "+":
            found[(*place, old, text)] = why
        elif kind:
            place = (kind, text)
    return found


def entry(change: Any) -> str:
    """A mutant as equivalent_mutants.txt has it."""
    return f"{change.file} {change.place}\n- {change.old}\n+ {change.new}"


class Written(NamedTuple):
    """A mutant of mutants.py, as one by rule."""

    mutant: Mutant
    place = ""
    rule = "written"

    @property
    def file(self) -> str:
        return f"checker/{self.mutant.file}"

    @property
    def old(self) -> str:
        return self.mutant.old

    @property
    def new(self) -> str:
        return f"{self.mutant.new}  ({self.mutant.breaks})"

    def key(self) -> Key:
        return self.file, "", self.old, self.new

    def code(self) -> CodeType:
        text = (SOURCES / self.file).read_text()
        return compile(text.replace(self.mutant.old, self.mutant.new), self.file, "exec")


def written(seed: int, count: int) -> list[Written]:
    """So many mutants of mutants.py, by lot; all of them if `count` is 0 or larger."""
    every = [Written(mutant) for mutant in MUTANTS]
    return random.Random(seed).sample(every, min(count or len(every), len(every)))


def misplaced() -> list[str]:
    """Mutants of mutants.py whose place does not stand once in the sources."""
    texts = {mutant: (SOURCES / Written(mutant).file).read_text() for mutant in MUTANTS}
    return [mutant.breaks for mutant, text in texts.items() if text.count(mutant.old) != 1]


class Probe(NamedTuple):
    """A query, what the checker says to it, and the functions that it enters for that."""

    name: str
    query: tuple[Any, ...]
    answer: str
    entered: frozenset[tuple[str, str]]


class Report(NamedTuple):
    """The result of a run: how the killed were noticed, those that nothing noticed, those known to
    be equivalent, and those that are wrongly thought to be."""

    notices: list[tuple[Any, str]]
    survivors: list[Any]
    equivalent: list[Any]
    mistaken: list[Any]


def run(changes: list[Any], tell: Callable[[str], Any] = str) -> Report:
    """Every mutant through the cases; survivors that stand in the list are counted apart."""
    packages = Packages()
    sys.meta_path.insert(0, packages)
    try:
        packages.forget()
        with TemporaryDirectory() as folder:
            return _run(changes, packages, Path(folder), tell)
    finally:
        sys.meta_path.remove(packages)
        packages.forget()


def _run(
    changes: list[Any], packages: Packages, folder: Path, tell: Callable[[str], Any]
) -> Report:
    started = time.process_time()
    probes = list(_probes(folder))
    longest = 1 + int(PATIENCE * (time.process_time() - started))
    places = frozenset().union(*(probe.entered for probe in probes))
    orders: dict[Any, list[int]] = {}
    known = known_equivalents()
    report = Report([], [], [], [])
    for change in changes:
        place = (change.file, change.place.partition(" ")[0])
        if place not in orders:  # who does not enter a function does not notice what changed in it
            near = [k for k, probe in enumerate(probes) if place in probe.entered]
            orders[place] = near if place in places else list(range(len(probes)))
        order = orders[place]
        notice = _killed_by(change, packages, [probes[k] for k in order], longest)
        if isinstance(notice, int):  # what noticed a mutant is asked first of the next one
            order.insert(0, order.pop(notice))
            notice = probes[order[0]].name
        if notice is not None and change.key() in known:
            report.mistaken.append(change)
            tell(f"{entry(change)}\nis listed as equivalent, and noticed by: {notice}")
        elif notice is not None:
            report.notices.append((change, notice))
        elif change.key() in known:
            report.equivalent.append(change)
        else:
            report.survivors.append(change)
            tell(entry(change))
    return report


def _probes(folder: Path) -> Iterator[Probe]:
    """The queries, each with the answer of the one that is not mutated."""
    import run_cases
    from mutant_queries import every_query

    from graphkeel import checker

    for name, query in every_query(folder):
        codes: set[CodeType] = set()
        sys.setprofile(lambda frame, *_, codes=codes: codes.add(frame.f_code))
        try:
            answer = run_cases.answer(checker, query)
        finally:
            sys.setprofile(None)
        yield Probe(name, query, answer, frozenset(map(_place, codes)))


def _place(code: CodeType) -> tuple[str, str]:
    """The file and the outermost function of a code, as a change names them."""
    file = "/".join(code.co_filename.rsplit("/", 2)[1:])
    return file, code.co_qualname.partition(".<locals>")[0]


def _killed_by(
    change: Any, packages: Packages, probes: list[Probe], longest: int
) -> int | str | None:
    """The number of the probe that noticed a mutant, or how it fails at once."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _ask(change, packages, probes, longest, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    if not os.WIFEXITED(status):
        return "it never ends"
    if said:
        return int(said)
    return None if os.WEXITSTATUS(status) == 0 else "it breaks down"


def _ask(change: Any, packages: Packages, probes: list[Probe], longest: int, writer: int) -> None:
    """In the child: load the mutant, and stop at the first answer that is another one."""
    resource.setrlimit(resource.RLIMIT_CPU, (longest, longest))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    code = 1
    try:
        packages.codes[module_name(change.file)] = change.code()
        packages.forget()
        import run_cases

        from graphkeel import checker

        code = 0
        for number, probe in enumerate(probes):
            if run_cases.answer(checker, probe.query) != probe.answer:
                os.write(writer, str(number).encode())
                break
    except BaseException:  # a mutant may fail in any way
        code = 1
    finally:
        os._exit(code)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=500, help="0: every mutant")
    parser.add_argument("--written", action="store_true", help="those of mutants.py")
    parser.add_argument("--only", default="", help="files whose names have this in them")
    parser.add_argument("--again", type=Path, help="a list of mutants, as this program prints it")
    parser.add_argument("--list", action="store_true", help="every mutant, and what noticed it")
    options = parser.parse_args()
    draw = written if options.written else partial(sample, SOURCES)
    changes: list[Any] = draw(options.seed, options.count)
    changes = [change for change in changes if options.only in change.file]
    if options.again:
        wanted = listed(options.again)
        changes = [change for change in changes if change.key() in wanted]
    started = resource.getrusage(resource.RUSAGE_CHILDREN)
    if options.written and misplaced():
        print("not in the sources:", *misplaced(), sep="\n")
        return 2
    report = run(changes, lambda text: print(text, flush=True))
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    if options.list:
        for change, notice in report.notices:
            print(f"{entry(change)}\n  noticed by: {notice}")
    rules = Counter(change.rule for change in changes)
    seconds = ended.ru_utime + ended.ru_stime - started.ru_utime - started.ru_stime
    print(f"seed {options.seed}: {len(changes)} mutants ({dict(rules.most_common())})")
    print(f"killed {len(report.notices)}, known to be equivalent {len(report.equivalent)}")
    print(f"survived {len(report.survivors)}; {seconds:.0f} seconds of the processor")
    return 1 if report.survivors or report.mistaken else 0


if __name__ == "__main__":
    sys.exit(main())
