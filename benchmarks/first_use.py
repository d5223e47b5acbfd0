"""Time that every command of `keel` spends before its own work, with an empty cache.

    git clone REPOSITORY /tmp/fresh
    python benchmarks/first_use.py --tree /tmp/fresh

Each command runs once in a process of its own, on digits or a tiny problem, with the sources of the
tree; `doctor` comes first and compiles the kernels, as `make setup` does. *Before* is the processor
time of the interpreter's start, of all imports and of loading kernels, of the whole process: user
and system, one thread. What a command shares with others, such as reading digits, is its own work.
A last line asks `verify` without kernels in the cache."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# run in each process: times the outermost imports, and what loads kernels
WRAPPED = """
import time
began = time.process_time()  # of the interpreter
import atexit, builtins, importlib, json, os, signal, sys, threading
spent, depth = [began], [0]
def timed(function):
    def call(*args, **kwargs):
        if depth[0] or threading.current_thread() is not threading.main_thread():
            return function(*args, **kwargs)
        depth[0], start = 1, time.process_time()
        try:
            return function(*args, **kwargs)
        finally:
            depth[0] = 0
            spent[0] += time.process_time() - start
    return call
builtins.__import__ = timed(builtins.__import__)
importlib.import_module = timed(importlib.import_module)
import graphkeel.verify.warm as warm
warm.load_kernels = timed(warm.load_kernels)
def tell():
    with open(os.environ["TOLD"], "w") as file:
        json.dump([spent[0], time.process_time()], file)
atexit.register(tell)
if sys.argv[1] == "label":  # a server: it ends as soon as it would wait
    import uvicorn
    uvicorn.Server.run = lambda *args, **kwargs: None
from graphkeel.cli.main import main
sys.exit(main(sys.argv[1:]))
"""

PREPARE = """
import numpy as np
from graphkeel.cluster import save_shards
from graphkeel.graph import load
from graphkeel.models import train_model
from graphkeel.verify import Network, Problem, write_problem
task = load("digits:0,1,2")
data = task.to_data()
masks = {name: data[name].numpy() for name in ("train_mask", "val_mask", "test_mask")}
np.savez("own.npz", x=data.x.numpy(), edge_index=data.edge_index.numpy(), y=data.y.numpy(), **masks)
save_shards(data, "shards")
both = np.array([[1.0], [-1.0]])
absolute = Network.of((both, np.zeros(2)), (np.ones((1, 2)), np.zeros(1)))
halving = Network.of((both, np.zeros(2)), (both.T / 2, np.zeros(1)))
loop = Problem(halving, absolute, [-1.0], [1.0], [0.0], hole_radius=0.1, rho=0.75)
write_problem(loop, "loop.json")
with open("net.py", "w") as file:
    file.write("from torch_geometric.nn import SGConv\\n\\ndef make():\\n")
    file.write(f"    return SGConv({data.x.shape[1]}, 3, K=2)\\n")
import torch, net
torch.save(net.make().state_dict(), "net.pt")
"""

SHORT = ["--seeds", "1"]
COMMANDS = {
    "doctor": ["doctor"],
    "doctor, again": ["doctor"],
    "demo": ["demo"],
    "run": ["run", "--dataset", "digits:0,1,2", *SHORT, "--out", "run"],
    "fit": ["fit", "shards", "--out", "better", "--weights", "net.pt", "--factory", "net:make"],
    "adapt": ["adapt", "--source", "own.npz", "--target", "own.npz", "--target-labels", "20"],
    "feedback": ["feedback", "--dataset", "digits:0,1,2", "--simulate", "20", "--batches", "1"],
    "label": ["label", "run"],
    "monitor": ["monitor", "run", "--data", "digits:0,1,2"],
    "certify": ["certify", "--dataset", "digits:0,1,2", "--out", "certified"],
    "check": ["check", "certified/certificate.json"],
    "verify": ["verify", "loop.json", "--engine", "branch", "--proof", "proof.json"],
    "report": ["report", "run"],
    "export": ["export", "loop.json", "--out", "files"],
    "verify, no kernels": ["verify", "loop.json", "--engine", "branch"],
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tree", type=Path, required=True, help="a fresh clone")
    parser.add_argument("--only", nargs="+", default=list(COMMANDS), help="these commands")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        env = os.environ | {
            "PYTHONPATH": f"{args.tree.resolve() / 'src'}:{work}",
            "XDG_CACHE_HOME": str(work / "cache"),
            "TOLD": str(work / "told.json"),
            "OMP_NUM_THREADS": "1",
        }
        subprocess.run([sys.executable, "-c", PREPARE], env=env, cwd=work, check=True)
        print(f"{'keel':<22} {'exit':>4} {'whole':>8} {'before':>8} {'own':>8}")
        for name in args.only:
            if name == "verify, no kernels":
                shutil.rmtree(work / "cache")
            measured(name, env, work)
    return 0


def measured(name: str, env: dict[str, str], work: Path) -> None:
    """One line: the whole process, what came before its own work, the rest."""
    command = [sys.executable, "-c", WRAPPED, *COMMANDS[name]]
    done = subprocess.run(command, env=env, cwd=work, capture_output=True, text=True, check=False)
    told = work / "told.json"
    if not told.exists():
        print(f"{name:<22} failed: {done.stderr[-300:]}")
        return
    before, whole = json.loads(told.read_text())
    told.unlink()
    words = done.stderr.strip().splitlines()[-1:] if done.returncode == 2 else ""
    own = whole - before
    print(f"{name:<22} {done.returncode:>4} {whole:8.2f} {before:8.2f} {own:8.2f} {words}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
