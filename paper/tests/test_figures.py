"""Figures: files of both kinds, and numbers that mean what they say."""

from __future__ import annotations

import argparse
import json

import numpy as np
import pytest

from graphkeel.verify.problem import Network, Problem
from graphkeel_paper.cli import figure
from graphkeel_paper.figures import embeddings
from graphkeel_paper.figures.embeddings import Panel, Scene, class_numbers, reading, shift_numbers
from graphkeel_paper.figures.lyapunov import Loop, Plane, loop_numbers, trajectories


def _call(*arguments):
    parser = argparse.ArgumentParser()
    figure.add_arguments(parser)
    return figure.run(parser.parse_args([str(argument) for argument in arguments]))


@pytest.mark.parametrize("number", [3, 4])
def test_embeddings_are_drawn_with_their_numbers(tmp_path, capsys, monkeypatch, number):
    monkeypatch.setattr(embeddings, "SETTINGS", embeddings.SceneSettings(nodes=160))
    assert _call(number, "--dataset", "sbm", "--out", tmp_path, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found["panels"]) == [
        "untouched",
        "FRGNN, one class",
        "neural controller, one class",
        "auto (ours)",
    ]
    assert all(panel["reads"] for title, panel in found["panels"].items() if title != "untouched")
    assert (tmp_path / f"figure-{number}.svg").read_text().lstrip().startswith("<?xml")
    assert (tmp_path / f"figure-{number}.png").read_bytes().startswith(b"\x89PNG")
    stored = json.loads((tmp_path / f"figure-{number}.json").read_text())
    assert stored.pop("commit") and stored.pop("files") == [
        f"figure-{number}.{k}" for k in ("svg", "png")
    ]
    assert stored == {name: value for name, value in found.items() if name != "files"}


def _scene(embedding, train, labels):
    panel = Panel("here", np.asarray(embedding, float), np.asarray(embedding, float), 50.0)
    return panel, Scene([panel], np.asarray(train), np.asarray(labels), "toy")


def test_shift_is_zero_for_twins_and_grows_with_distance():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(40, 3))
    train = np.repeat([True, False], 40)
    twins, scene = _scene(np.concatenate([points, points]), train, np.zeros(80, int))
    apart, far = _scene(np.concatenate([points, points + 5]), train, np.zeros(80, int))
    assert shift_numbers(twins, scene)["cmd"] == pytest.approx(0, abs=1e-12)
    assert shift_numbers(apart, far)["cmd"] > 0.5


def test_silhouette_tells_separate_classes_from_mixed_ones():
    labels = np.repeat([0, 1], 20)
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(40, 2))
    apart, scene = _scene(noise + 20 * labels[:, None], labels == 0, labels)
    mixed, other = _scene(noise, labels == 0, labels)
    assert class_numbers(apart, scene)["silhouette"] > 0.8
    assert abs(class_numbers(mixed, other)["silhouette"]) < 0.15
    assert set(class_numbers(apart, scene)["by_class"]) == {"0", "1"}


def test_a_panel_says_when_its_number_points_the_other_way():
    assert reading(0.2, 0.01, "nearer") == "nearer than the untouched model"
    assert reading(-0.001, 0.01, "nearer") == "no change beside the untouched model"
    assert reading(-0.2, 0.01, "nearer").endswith("it points the other way")


def _halving(factor: float) -> Loop:
    """F(y) = factor·y and V(y) = |y₁| + |y₂|, around the origin."""
    eye = np.eye(2)
    both = np.concatenate([eye, -eye])
    loop = Network.of(
        (both, np.zeros(4)), (factor * np.concatenate([eye, -eye], axis=1), np.zeros(2))
    )
    norm = Network.of((both, np.zeros(4)), (np.ones((1, 4)), np.zeros(1)))
    problem = Problem(loop, norm, -np.ones(2), np.ones(2), np.zeros(2), hole_radius=0.01)
    return Loop("anchored", problem, "proved", 1, [])


def test_trajectories_follow_the_loop_and_rises_are_counted():
    starts = np.array([[1.0, -1.0], [0.5, 0.25]])
    paths = trajectories(_halving(0.5), starts, steps=3)
    assert np.allclose(paths[0, 3], [0.125, -0.125])
    falling, rising = loop_numbers(_halving(0.5), paths), _halving(2.0)
    assert falling["steps_on_which_V_does_not_fall"] == 0
    found = loop_numbers(rising, trajectories(rising, starts, steps=3))
    assert found["steps_on_which_V_does_not_fall"] == found["steps_looked_at"] == 6


def test_the_plane_goes_through_the_equilibrium_and_stays_in_the_box():
    rng = np.random.default_rng(0)
    lower, upper, centre = -np.ones(4), np.full(4, 2.0), np.array([1.0, 0, 0, 0])
    plane = Plane.of(rng.normal(size=(50, 4)), centre, lower, upper)
    _, _, states = plane.grid()
    middle = states.reshape(-1, 4).mean(axis=0)
    assert np.allclose(middle, centre)
    assert np.allclose(plane.flat(centre[None]), 0)
    assert np.allclose(plane.axes @ plane.axes.T, np.eye(2))


@pytest.mark.slow
def test_figure_5_shows_a_proved_loop_and_the_papers(tmp_path, capsys):
    assert _call(5, "--dataset", "digits", "--out", tmp_path, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["forms"]["anchored"]["verdict"] == "proved"
    assert found["forms"]["anchored"]["steps_on_which_V_does_not_fall"] == 0
    assert (tmp_path / "figure-5.svg").exists()
