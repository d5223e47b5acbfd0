"""Readers under a coverage-guided fuzzer (atheris): python guided.py RUNS SECONDS, with
"READER<tab>FOLDER" on stdin.

The instrumented imports take longer than the fuzzing of most readers, so they happen once and each
reader is fuzzed in a forked process. It ends after RUNS executions, or after SECONDS of processor
time, and its exit code is the answer. FOLDER then holds `count` (the executions), `log`, and in
`corpus` the input that made the reader crash, if any did."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[1]))

SOURCES = Path(__file__).parents[2] / "src"
# Numba compiles these functions, and knows nothing of the calls that would be woven into them.
COMPILED = [
    ".".join(path.relative_to(SOURCES).with_suffix("").parts)
    for path in SOURCES.rglob("*.py")
    if "numba" in path.read_text()
]

with atheris.instrument_imports(include=["graphkeel"], exclude=COMPILED):
    from fuzz.readers import READERS


def fuzz(name: str, folder: Path, runs: int, seconds: float) -> None:
    """Never returns: the process ends with the fuzzing."""
    reader, count, corpus = READERS[name], 0, folder / "corpus"
    sample, start = reader.sample(), time.process_time()
    corpus.mkdir()
    (corpus / "sample").write_bytes(sample)

    def one(data: bytes) -> None:
        nonlocal count
        count += 1
        reader.survives(data)
        if count == runs or time.process_time() - start > seconds:
            (folder / "count").write_text(str(count))
            os._exit(0)  # libFuzzer's own end runs exit handlers that torch does not survive

    longest = max(
        4096, 2 * len(sample)
    )  # longer inputs are cut, and a sample that is cut is no sample
    options = [
        "-rss_limit_mb=3000",
        "-timeout=60",
        f"-max_len={longest}",
        "-seed=1",
        f"-artifact_prefix={corpus}/",
    ]
    atheris.Setup([sys.argv[0], *options, str(corpus)], one)
    atheris.Fuzz()


def serve(runs: int, seconds: float) -> None:
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        name, folder = line.rstrip("\n").split("\t")
        pid = os.fork()
        if pid == 0:
            log = os.open(Path(folder) / "log", os.O_WRONLY | os.O_CREAT)
            os.dup2(log, 1)
            os.dup2(log, 2)
            fuzz(name, Path(folder), runs, seconds)
        _, status = os.waitpid(pid, 0)
        answers.write(f"{os.waitstatus_to_exitcode(status)}\n")
        answers.flush()


if __name__ == "__main__":
    serve(int(sys.argv[1]), float(sys.argv[2]))
