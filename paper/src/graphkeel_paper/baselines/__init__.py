"""The methods we are compared with, one file each, with the labels and the validation nodes that we
get.

Shapes are the same everywhere: features `x` (N, d), edges `edge_index` (2, E) and their weights
(E,), scores, logits and beliefs (N, n_classes), embeddings (N, h), masks and classes of all nodes
(N,), ids of nodes `labelled`, `validation` (n,). A docstring names a shape that differs."""

from graphkeel_paper.baselines.registry import BASELINES, get_baseline

__all__ = ["BASELINES", "get_baseline"]
