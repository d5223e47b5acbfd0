"""The picture in README, from the rows that `keel demo --out FOLDER` has kept.

keel demo --seeds 10 --out runs/demo
python benchmarks/demo_picture.py runs/demo docs/images/demo.png
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt

from graphkeel.store.store import read_run

STEPS = {
    "train": ("training labels only", "#2a78b5"),
    "train+half-val": ("half of the validation labels fed back", "#2f9e62"),
}


def draw(folder: Path, path: Path) -> None:
    """Untouched and reconstructed accuracy of each split, and the means as dotted lines."""
    figure, axes = plt.subplots(figsize=(7.2, 3.6), layout="constrained")
    for number, (labels, (title, colour)) in enumerate(STEPS.items()):
        found = read_run(folder / labels)
        if found is None:
            raise SystemExit(f"{folder / labels} holds no run: keel demo --out {folder}")
        columns = {name: [row[name] for row in found[1]] for name in ("seed", "base", "accuracy")}
        shown = [("base", "untouched", "#888888")] if number == 0 else []
        shown += [("accuracy", title, colour)]
        for name, label, shade in shown:
            axes.plot(columns["seed"], columns[name], "o", color=shade, label=label, zorder=3)
            mean = sum(columns[name]) / len(columns[name])
            axes.axhline(mean, color=shade, lw=0.8, ls=":")
        axes.vlines(columns["seed"], columns["base"], columns["accuracy"], color="#cccccc", lw=1.5)
    title = "digits: the same weights, before and after"
    axes.set(xlabel="biased split", ylabel="test accuracy, %", title=title)
    axes.set_xticks(columns["seed"])
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(frameon=False, fontsize=8, loc="outside lower center", ncols=3)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    draw(*map(Path, sys.argv[1:]))
