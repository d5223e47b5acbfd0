"""One reader under a coverage-guided fuzzer (atheris): python guided.py READER RUNS SECONDS CORPUS.

Ends with exit code 0 and the number of executions on stdout, or with the input that made the reader crash.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[1]))

with atheris.instrument_imports(include=["graphkeel"]):
    from fuzz.readers import READERS


def main() -> None:
    name, runs, seconds, corpus = sys.argv[1:]
    reader, count = READERS[name], 0
    (Path(corpus) / "sample").write_bytes(reader.sample())

    def one(data: bytes) -> None:
        nonlocal count
        count += 1
        reader.survives(data)
        if count == int(runs):
            sys.stdout.write(f"{count}\n")
            sys.stdout.flush()
            os._exit(0)  # libFuzzer's own end runs exit handlers that torch does not survive

    options = [f"-max_total_time={seconds}", "-rss_limit_mb=3000", "-timeout=30", "-max_len=20000", "-seed=1"]
    atheris.Setup([sys.argv[0], *options, f"-artifact_prefix={corpus}/", corpus], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
