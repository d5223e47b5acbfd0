"""Tasks and answers in files, columns of the user's own, and the view behind both."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import sparse

from graphkeel.core.errors import DataError
from graphkeel.label import Shown, read_labels
from graphkeel.label.files import read_rows, write_rows
from graphkeel.label.view import Row, View

ROWS = [
    Row(4, 2, "suggested", 1, "1 (60 %), 2 (30 %)", "7=2, 9~1", "1 of 2"),
    Row(5, None, "random", 0),
    Row(6, 0, "random", 0, 'a "quoted", cell\nof two lines'),
]


def labels_in(path) -> dict[int, int]:
    batch = read_labels(path)
    return dict(zip(batch.nodes.tolist(), batch.labels.tolist(), strict=True))


@pytest.mark.parametrize("name", ["answers.csv", "answers.json"])
def test_labels_come_back_from_what_was_written(tmp_path, name):
    write_rows(tmp_path / name, ROWS)
    assert labels_in(tmp_path / name) == {4: 2, 6: 0}


def test_rows_come_back_whole(tmp_path):
    write_rows(tmp_path / "rows.csv", ROWS)
    assert read_rows(tmp_path / "rows.csv") == ROWS


def test_a_spreadsheet_may_mark_reorder_and_add_columns(tmp_path):
    path = tmp_path / "sheet.csv"
    path.write_text("\ufefflabel,remark,node\n3,sure,17\n,unsure,18\n\n", encoding="utf-8")
    assert labels_in(path) == {17: 3}


def choice(label: str, **more: object) -> dict:
    return {"result": [{"type": "choices", "value": {"choices": [label]}}], **more}


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        ([{"data": {"node": 1}, "annotations": [choice("2")]}], {1: 2}),
        ([{"data": {"node": "1"}, "annotations": [choice("2"), choice("2")]}], {1: 2}),
        ([{"node": 1, "label": "2"}, {"node": 3}], {1: 2}),  # Label Studio's minimal export
        ([{"node": 1, "label": {"choices": ["2"]}}, {"node": 3, "label": 1}], {1: 2, 3: 1}),
        (
            [
                {"data": {"node": 1}, "annotations": [choice("2", was_cancelled=True)]},
                {"data": {"node": 3}, "annotations": [choice("0")]},
            ],
            {3: 0},
        ),
    ],
)
def test_exports_of_label_studio(tmp_path, tasks, expected):
    path = tmp_path / "export.json"
    path.write_text(json.dumps(tasks))
    assert labels_in(path) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[", "cannot be read"),
        ("{}", "a list of Label Studio's tasks"),
        ("[1]", "a list of Label Studio's tasks"),
        ("[" * 100_000, "cannot be read"),
        ('[{"data": {}}]', "must name its node"),
        ('[{"data": {"node": 1}, "annotations": []}]', "holds no label"),
        ('[{"node": 1, "label": "cat"}]', "must be an integer"),
        ('[{"node": true, "label": "1"}]', "must be an integer"),
        ('[{"node": 1, "label": "99999999999999999999999"}]', "must be an integer"),
        (
            json.dumps([{"data": {"node": 1}, "annotations": [choice("2"), choice("3")]}]),
            "of node 1 disagree",
        ),
    ],
)
def test_exports_that_cannot_be_used(tmp_path, text, words):
    path = tmp_path / "export.json"
    path.write_text(text)
    with pytest.raises(DataError, match=words):
        read_labels(path)


# ---- columns of the user's own


@pytest.fixture
def folder(tmp_path):
    inside = tmp_path / "mine"
    inside.mkdir()
    (inside / "a.png").write_bytes(b"\x89PNG")
    (tmp_path / "secret.png").write_bytes(b"\x89PNG")
    (inside / "out.png").symlink_to(tmp_path / "secret.png")
    return inside


def kinds(folder, cell: str) -> list[str]:
    path = folder / "titles.csv"
    path.write_text(f'node,what\n7,"{cell}"\n')
    return [one["kind"] for one in Shown.read(path).of(7)]


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("a title", ["text"]),
        ("", []),
        ("https://example.org/7", ["link"]),
        ("javascript:alert(1)", ["text"]),
        ("data:text/html,x", ["text"]),
        ("a.png", ["image"]),
        ("./a.png", ["image"]),
        ("b.png", ["text"]),  # missing
        ("../secret.png", ["text"]),
        ("out.png", ["text"]),  # a link that leads out
        ("titles.csv", ["text"]),
        ("a\0.png", ["text"]),
        ("x" * 5000 + ".png", ["text"]),
    ],
)
def test_kinds_of_cells(folder, cell, expected):
    assert kinds(folder, cell) == expected


def test_an_absolute_path_must_lie_in_the_folder(folder):
    assert kinds(folder, str(folder / "a.png")) == ["image"]
    assert kinds(folder, str(folder.parent / "secret.png")) == ["text"]


def test_rows_may_be_short_and_nodes_missing(folder):
    path = folder / "titles.csv"
    path.write_text("title,node,more\nfirst,1\nsecond,2,x\n")
    shown = Shown.read(path)
    assert [cell["value"] for cell in shown.of(1)] == ["first"]
    assert [(cell["name"], cell["value"]) for cell in shown.of(2)] == [
        ("title", "second"),
        ("more", "x"),
    ]
    assert shown.of(3) == [] and shown.image(3, 0) is None and shown.image(2, 9) is None


@pytest.mark.parametrize("text", ["", "title\nx\n", "node,title\nx,y\n", "title,node\nx\n"])
def test_tables_without_nodes_are_refused(tmp_path, text):
    path = tmp_path / "titles.csv"
    path.write_text(text)
    with pytest.raises(DataError, match="a column node") as refused:
        Shown.read(path)
    assert ("columns title)" in str(refused.value)) == (text == "title\nx\n")


# ---- the view: a star with a tail, 0 linked with 1, 2, 3, and 3 - 4 - 5


@pytest.fixture
def view():
    pairs = [(0, 1), (0, 2), (0, 3), (3, 4), (4, 5)]
    links = np.zeros((6, 6), dtype=np.int8)
    for a, b in pairs:
        links[a, b] = links[b, a] = 1
    probabilities = np.full((6, 4), 0.25, dtype=np.float32)
    probabilities[0] = [0.1, 0.2, 0.3, 0.4]
    predicted = np.array([3, 0, 1, 1, 2, 2])
    return View(sparse.csr_array(links), probabilities, predicted, {2: 0, 4: 3})


def test_two_hops_with_known_and_predicted_classes(view):
    seen = view.surroundings(0)
    found = {one["node"]: (one["hop"], one["class"], one["known"]) for one in seen["nodes"]}
    assert found == {
        0: (0, 3, False),
        1: (1, 0, False),
        2: (1, 0, True),
        3: (1, 1, False),
        4: (2, 3, True),
    }
    ids = [one["node"] for one in seen["nodes"]]
    assert {(ids[a], ids[b]) for a, b in seen["links"]} == {(0, 1), (0, 2), (0, 3), (3, 4)}


def test_a_row_in_words(view):
    row = view.row(0)
    assert row.likeliest == "3 (40 %), 2 (30 %), 1 (20 %)"
    assert row.neighbours == "2=0, 1~0, 3~1"
    assert row.known_nearby == "1 of 0, 1 of 3"
    assert view.row(5).known_nearby == "1 of 3"


def test_a_hub_is_cut_with_known_neighbours_first():
    n = 1000
    hub = np.zeros(n - 1, dtype=np.int64)
    others = np.arange(1, n)
    one_way = sparse.csr_array((np.ones(n - 1, dtype=np.int8), (hub, others)), shape=(n, n))
    known = dict.fromkeys(range(900, 905), 1)
    uniform = np.full((n, 2), 0.5, dtype=np.float32)
    view = View((one_way + one_way.T).tocsr(), uniform, np.zeros(n, dtype=np.int64), known)
    seen = view.surroundings(0)
    near = [one["node"] for one in seen["nodes"] if one["hop"] == 1]
    assert near[:5] == list(range(900, 905)) and len(near) == view.settings.near
    assert seen["left_out"] == n - 1 - view.settings.near


def test_a_node_without_neighbours():
    links = sparse.csr_array((2, 2), dtype=np.int8)
    view = View(links, np.full((2, 2), 0.5, dtype=np.float32), np.zeros(2, dtype=np.int64), {})
    assert view.surroundings(0) == {
        "nodes": [{"node": 0, "hop": 0, "class": 0, "known": False}],
        "links": [],
        "left_out": 0,
    }
    assert view.row(0).neighbours == ""
