"""Pages from files with known answers."""

from __future__ import annotations

import copy
import json
import re
import sqlite3
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from graphkeel.core.errors import ConfigError, KeelError
from graphkeel.report.certificate_view import certificate_view, loop_data
from graphkeel.report.charts import dumbbells
from graphkeel.report.page import render_page, script_json
from graphkeel.report.sources import PageSettings, find_sources
from graphkeel.report.views import run_nodes, run_view
from graphkeel.store.store import FILE


def test_headline_and_seeds(run_folder):
    view = run_view(find_sources([run_folder]).run)
    assert (view["base"]["mean"], view["after"]["mean"], view["gain"]) == (70.5, 81.0, 10.5)
    assert view["base"]["std"] == pytest.approx(0.5**0.5)
    assert [(row["seed"], row["gain"]) for row in view["seeds"]] == [(0, 10.0), (1, 11.0)]
    assert view["paper"]["neural"] == [67.22, 2.27]


def test_classes_count_test_nodes_only(run_folder):
    view = run_view(find_sources([run_folder]).run)
    assert [
        (row["label"], row["count"], row["before"], row["after"]) for row in view["classes"]
    ] == [
        (0, 5.0, 40.0, 80.0),
        (1, 5.0, 100.0, 80.0),
    ]
    counted = {"before": 7.0, "after": 8.0, "gained": 2.0, "lost": 1.0, "nodes": 10.0}
    assert view["tested"] == counted


def test_too_many_nodes_are_left_out_and_said(run_folder, monkeypatch):
    monkeypatch.setattr("graphkeel.report.views.PAGE", PageSettings(nodes=15))
    run = find_sources([run_folder]).run
    assert list(run_nodes(run)) == ["0"]
    assert "1 further seeds" in run_view(run)["left_out"]


def test_the_papers_numbers_stand_beside_its_own_protocol_only(tmp_path, write_run):
    assert run_view(find_sources([write_run(tmp_path / "a", dataset="digits")]).run)["paper"] == {}


def test_classes_share_a_sentence_only_if_it_is_the_same(certificate_folder):
    """With the numbers of one class it may be false of another: each has its own box and radius."""
    sources = find_sources([certificate_folder])
    content = copy.deepcopy(sources.certificate)
    content["classes"][1]["conclusion"] |= {"sentence": "Another radius.", "radius": 9.0}
    conclusions = certificate_view(content, sources.checked)["conclusions"]
    assert [conclusion["labels"] for conclusion in conclusions] == [[0], [1]]
    assert conclusions[1]["sentence"] == "Another radius."


def test_classes_share_a_sentence_that_differs_by_the_radius_alone(certificate_folder):
    sources = find_sources([certificate_folder])
    content = copy.deepcopy(sources.certificate)
    for entry, radius in zip(content["classes"], (1.148e-7, 2.031e-7), strict=True):
        sentence = f"One fixed point, which lies within {radius:.3g} of Y in the sup norm."
        entry["conclusion"] |= {"sentence": sentence, "radius": radius}
    view = certificate_view(content, sources.checked)
    (conclusion,) = view["conclusions"]
    assert conclusion["sentence"].startswith("One fixed point, which lies within the radius below")
    assert [row["radius"] for row in view["classes"]] == ["1.15e-07", "2.04e-07"]  # rounded up


def test_a_certificate_in_words(certificate_folder):
    sources = find_sources([certificate_folder])
    assert sources.checked.accepted
    view = certificate_view(sources.certificate, sources.checked)
    assert view["counts"] == {"proved": 2, "refuted": 0, "unknown": 0}
    (conclusion,) = view["conclusions"]
    assert conclusion["labels"] == [0, 1]
    assert "asymptotic stability" in conclusion["sentence"]
    assert len(view["not_covered"]) == 4
    loops = loop_data(sources.certificate)
    assert loops[1]["equilibrium"] == [0.0, 1.0]
    assert len(loops[0]["V"]) == len(loops[0]["F"]) == 2


def with_a_graph(certificate):
    """A certificate with something said of a graph; the drawing is tried here, not the proof."""
    written = {"norm": "largest feature", "max": 0.2, "median": 0.1, "size": 2.0, "kept": 6}
    facts = {"nodes": 8, "certain": 7, "controlled": 3, "labelled": 3, "labelled_certain": 3}
    facts |= {"residual": 1e-9, "radius": 1e-8, "uncertain": [5], "written": written}
    steps = {"residuals": [1.0, 0.1, 0.0], "certain": [0, 4, 7]}
    return {
        **certificate,
        "graph": {"contraction": "proved", "kappa": 0.5, "equilibrium": facts},
        "provenance": {**certificate["provenance"], "graph_steps": steps},
    }


def test_the_real_graph_in_words_and_as_a_chart(certificate_folder):
    sources = find_sources([certificate_folder])
    certificate = with_a_graph(sources.certificate)
    page = render_page(replace(sources, certificate=certificate))
    assert "7 of 8 nodes have a certain class" in page and "uncertain: 5" in page
    assert page.count("<polyline") == 3
    chart = certificate_view(certificate, sources.checked)["graph"]["chart"]
    root = ElementTree.fromstring(chart)
    lines = {one.get("class"): one.get("points") for one in root.iter() if one.get("points")}
    ends = {name: points.split()[-1].split(",") for name, points in lines.items()}
    assert float(ends["fall"][1]) > float(ends["bound"][1])  # lower in the picture: V fell faster
    assert certificate_view(sources.certificate, sources.checked)["graph"] == {}


@pytest.mark.parametrize("bad", [float("nan"), "x", None, float("inf")])
def test_steps_that_no_command_writes_are_refused(certificate_folder, bad):
    sources = find_sources([certificate_folder])
    certificate = with_a_graph(sources.certificate)
    certificate["provenance"]["graph_steps"]["residuals"][1] = bad
    with pytest.raises(KeelError):
        render_page(replace(sources, certificate=certificate))


def test_a_certificate_that_was_tampered_with_is_shown_as_rejected(certificate_folder, tmp_path):
    text = (certificate_folder / "certificate.json").read_text()
    (tmp_path / "certificate.json").write_text(text.replace('"rho": 0.9', '"rho": 0.8', 1))
    page = render_page(find_sources([tmp_path]))
    assert "rejected" in page
    assert "re-proved this certificate" not in page


def test_the_page_knows_whether_run_and_certificate_share_their_data(
    run_folder, certificate_folder
):
    sources = find_sources([run_folder, certificate_folder])
    assert "same data as this run" in render_page(sources)
    other = replace(sources, certificate={**sources.certificate, "data": "0" * 64})
    assert "not that of any seed" in render_page(other)


def test_hostile_strings_stay_strings(tmp_path, write_run):
    evil = '<script>alert(1)</script><img src=x onerror="alert(2)">'
    page = render_page(
        find_sources([write_run(tmp_path / "a", dataset=evil, reason=evil, method="</script>")])
    )
    assert evil not in page
    assert "<img src=x" not in page
    assert page.count("<script") == 2
    assert page.count("</script>") == 2
    assert "&lt;script&gt;alert(1)" in page


def test_json_in_the_page_cannot_leave_its_element():
    text = script_json({"name": "</script><!--\u2028", "n": 1})
    assert "<" not in text
    assert json.loads(text) == {"name": r"</script><!--\u2028", "n": 1}
    turned = script_json([{"verdict\u202e": ["\x1b[31m", 1.5, None]}])
    assert json.loads(turned) == [{r"verdict\u202e": [r"\x1b[31m", 1.5, None]}]


def test_nothing_is_loaded_from_anywhere(run_folder, certificate_folder):
    page = render_page(find_sources([run_folder, certificate_folder]))
    assert not re.findall(r'(?:src|href)="(?!data:|#)[^"]*"', page)
    assert not re.findall(r"@import|url\(|fetch\(|XMLHttpRequest|https?://", page)
    assert "default-src 'none'" in page


def test_figures_are_taken_in(tmp_path):
    (tmp_path / "figure-3.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    page = render_page(find_sources([tmp_path]))
    assert "data:image/svg+xml;base64," in page


def test_damaged_files_do_not_break_the_page(run_folder):
    (run_folder / "nodes" / "seed-0000.safetensors").write_bytes(b"\x00" * 9)
    connection = sqlite3.connect(run_folder / FILE)
    with connection:
        connection.execute("UPDATE measurements SET result = '{\"half\":' WHERE seed = 1")
    connection.close()
    sources = find_sources([run_folder])
    assert [row["seed"] for row in sources.run.rows] == [0]
    assert sources.run.nodes == {}
    assert 'id="node-table"' not in render_page(sources)


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="nothing to report on"):
        find_sources([tmp_path])
    with pytest.raises(ConfigError, match="no such folder"):
        find_sources([tmp_path / "none"])


def test_charts_escape_names_and_mark_directions():
    chart = dumbbells([{"name": "<a>", "before": 60.0, "after": 50.0}], label='"quoted"')
    assert "&lt;a&gt;" in chart
    assert 'class="down"' in chart
    assert "-10.0" in chart
    assert "&#34;quoted&#34;" in chart
