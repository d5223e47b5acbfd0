"""Models that pass no gradients to their features: a blend of class anchors, and a warning."""

from __future__ import annotations

import logging

import pytest
import torch

import graphkeel as gk


def without_gradients(model):
    @torch.no_grad()
    def asked(x, edge_index):
        return model(x, edge_index)

    return asked


def by_way_of_numpy(model):
    def asked(x, edge_index):
        scores = model(torch.from_numpy(x.numpy()), edge_index)
        return torch.from_numpy(scores.detach().numpy())

    return asked


def detached(model):
    return lambda x, edge_index: model(x.detach(), edge_index).detach()


@pytest.mark.parametrize("wrap", [without_gradients, by_way_of_numpy, detached])
def test_they_get_a_blend_and_are_told(model, data, caplog, wrap) -> None:
    with caplog.at_level(logging.WARNING, logger="graphkeel"):
        rec = gk.Reconstructor(wrap(model), risk=1.0).fit(data)
    assert "passes no gradients" in caplog.text
    assert rec.fall_ == ()
    blend = rec._context.blend(rec.posterior_)
    assert torch.equal(rec.features_, blend)
    agree = (rec.predict(data) == rec.posterior_.argmax(dim=1)).float().mean()
    assert agree > 0.7
    later = rec.feedback(torch.arange(5), data.y[:5])
    assert torch.isfinite(later.features_).all()


def test_models_that_do_are_steered_in_silence(model, data, caplog) -> None:
    with caplog.at_level(logging.WARNING, logger="graphkeel"):
        rec = gk.Reconstructor(lambda x, edge_index: model(x, edge_index), risk=1.0).fit(data)
    assert "gradients" not in caplog.text
    assert len(rec.fall_) > 1
    assert all(after <= before for before, after in zip(rec.fall_, rec.fall_[1:], strict=False))
