"""The decision of `auto` before it steers."""

from __future__ import annotations

from dataclasses import dataclass

from graphkeel.runs.method import CheckedMethod, Given, MethodResult
from graphkeel.runs.methods import Reconstruction


@dataclass(frozen=True)
class PosteriorAlone(CheckedMethod):
    """The posterior of `auto` itself, kept or not by its guard: what steering, and the test before
    it, cost or add."""

    name: str = "posterior-alone"

    def _fit_predict(self, given: Given) -> MethodResult:
        rec, _ = Reconstruction("auto").fitted(given)
        return MethodResult(rec.posterior_, None, rec.guard_.to_dict())
