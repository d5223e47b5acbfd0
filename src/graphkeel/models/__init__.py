"""Frozen models and their heads; reference networks (SGC, GCN, GAT, GraphSAGE, APPNP) and one small
trainer.

Shapes are the same everywhere: features `x` (N, d), edges `edge_index` int64 (2, E), scores and
logits (N, n). A docstring names a shape that differs."""

from graphkeel.models.batched import Batches
from graphkeel.models.frozen import FrozenModel, ReturnType
from graphkeel.models.head import Head, extract_head
from graphkeel.models.networks import APPNP, GAT, GCN, SGC, GraphSAGE
from graphkeel.models.zoo import (
    MODELS,
    RECIPES,
    Recipe,
    TrainingConfig,
    accuracy,
    build_model,
    load_model,
    save_model,
    train,
    train_model,
)

__all__ = [
    "APPNP",
    "GAT",
    "GCN",
    "MODELS",
    "RECIPES",
    "SGC",
    "Batches",
    "FrozenModel",
    "GraphSAGE",
    "Head",
    "Recipe",
    "ReturnType",
    "TrainingConfig",
    "accuracy",
    "build_model",
    "extract_head",
    "load_model",
    "save_model",
    "train",
    "train_model",
]
