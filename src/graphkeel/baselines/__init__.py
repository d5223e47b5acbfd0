"""Rivals that also leave the weights alone, one file each, with the labels and the validation nodes that we get."""

from graphkeel.baselines.clamped_smoothing import ClampedSmoothing
from graphkeel.baselines.correct_and_smooth import CorrectAndSmooth
from graphkeel.baselines.label_propagation import LabelPropagation
from graphkeel.baselines.lame import LAME
from graphkeel.baselines.t3a import T3A
from graphkeel.reconstruct.method import Method

RIVALS: dict[str, Method] = {
    rival.name: rival for rival in (T3A(), CorrectAndSmooth(), ClampedSmoothing(), LAME(), LabelPropagation())
}

__all__ = ["LAME", "RIVALS", "T3A", "ClampedSmoothing", "CorrectAndSmooth", "LabelPropagation"]
