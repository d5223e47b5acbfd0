"""`replace` (the paper's Eq. 13): the features of labelled nodes become their class's anchor."""

from __future__ import annotations

from torch import Tensor

from graphkeel.reconstruct.labels import Labels


def replace(x: Tensor, labels: Labels, anchors: Tensor, only: int | None = None) -> Tensor:
    """r(h*, X): a copy of x whose labelled rows are anchors.

    Args:
        x: features, shape (N, d).
        labels: which nodes are replaced, and by which anchor.
        anchors: h*_c, shape (n_classes, d).
        only: replace this class alone, as the paper does; all classes when None.
    """
    nodes = labels.nodes
    classes = labels.classes
    if only is not None:
        nodes = nodes[classes == only]
        classes = classes[classes == only]
    replaced = x.clone()
    replaced[nodes] = anchors[classes].to(x.dtype)
    return replaced
