"""Expected accuracy on another graph without a label there, beside the field's own estimators.

    python benchmarks/bench_expected.py --seeds 2-3

Citation and Twitch pairs; points of mean absolute error. Estimated is the accuracy of the untouched
model and of the decided answers:
* `posterior`: the mean probability that the pooled posterior gives to the answers;
* `ATC` (Garg et al. 2022): the share of target nodes whose confidence exceeds the threshold that
  gives the right accuracy on the source's validation nodes;
* `DoC` (Guillory et al. 2021): the source's accuracy minus the fall in mean confidence.
ATC and DoC read the model's confidence for the untouched model, and the posterior's for the decided
answers."""

from __future__ import annotations

import argparse
from itertools import permutations
from typing import Any

import numpy as np
import torch
from bench_rule import CITATIONS, TWITCH, found

from graphkeel.graph.rows import softmax
from graphkeel.models import train_model
from graphkeel.reconstruct import Known
from graphkeel.reconstruct.decide import decide
from graphkeel.reconstruct.scene import Scene
from graphkeel.runs.adapt_case import tasks
from graphkeel_paper.specs import AdaptSpec


def atc(source: Any, right: Any, target: Any) -> float:
    """Confidences (n,), which source answers are right (n,), target confidences (N,); percent."""
    threshold = np.quantile(source, 1.0 - right.mean())
    return 100.0 * float((target > threshold).mean())


def doc(source: Any, right: Any, target: Any) -> float:
    return 100.0 * float(right.mean() - source.mean() + target.mean())


def answers(model: Any, task: Any) -> tuple[Any, Any]:
    """The model's own probabilities and the posterior without labels, each (N, C)."""
    with torch.no_grad():
        logits = model.eval()(task.x, task.edge_index).numpy()
    scene = Scene(logits, task.x.numpy(), task.edge_index.numpy())
    none = np.zeros(0, np.int64)
    nobody = Known(none, none, none.astype(bool), logits.shape[1])
    return softmax(logits), decide(scene, nobody).posterior


def errors(source: Any, target: Any, seed: int) -> dict[tuple[str, str], float]:
    """Absolute errors in points, by (what is estimated, estimator)."""
    model = train_model("sgc", source, seed=seed, k=2)
    judged = source.val_mask.numpy() & (source.y.numpy() >= 0)
    scored = target.y.numpy() >= 0
    own, posterior = answers(model, target)
    own_there, posterior_there = answers(model, source)
    here, there = target.y.numpy()[scored], source.y.numpy()[judged]
    each = np.arange(len(own))
    found_errors = {}
    for what, p, p_there in (
        ("untouched", own, own_there),
        ("decided", posterior, posterior_there),
    ):
        answer, answer_there = p.argmax(axis=1), p_there.argmax(axis=1)
        truth = 100.0 * float((answer[scored] == here).mean())
        right = answer_there[judged] == there
        believed = 100.0 * float(posterior[each, answer][scored].mean())
        known = (p_there.max(axis=1)[judged], right, p.max(axis=1)[scored])
        for name, value in (
            ("posterior", believed),
            ("ATC", atc(*known)),
            ("DoC", doc(*known)),
        ):
            found_errors[what, name] = abs(value - truth)
    return found_errors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="2-3", help="one, or first-last")
    first, _, last = parser.parse_args().seeds.partition("-")
    torch.set_num_threads(1)
    for name, graphs in (("citations", CITATIONS), ("twitch", TWITCH)):
        rows = []
        for source, target in permutations(graphs, 2):
            for seed in range(int(first), int(last or first) + 1):
                spec = AdaptSpec(found(source), found(target), model_options={"k": 2})
                rows.append(errors(*tasks(spec, seed), seed))
        for key in rows[0]:
            mean = np.mean([row[key] for row in rows])
            worst = max(row[key] for row in rows)
            print(
                f"{name} {key[0]:10} {key[1]:10} error {mean:5.1f} worst {worst:5.1f}", flush=True
            )


if __name__ == "__main__":
    main()
