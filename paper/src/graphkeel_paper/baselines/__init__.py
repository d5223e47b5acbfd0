"""The methods we are compared with, one file each, with the labels and the validation nodes that we
get."""

from graphkeel_paper.baselines.registry import BASELINES, get_baseline

__all__ = ["BASELINES", "get_baseline"]
