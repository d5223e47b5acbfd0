"""The terminal at 80 columns: no line is wider, no number, header or word is cut."""

from __future__ import annotations

import importlib
import re
import shlex

import pytest

from fuzz import readers
from graphkeel.certificate import write_certificate
from graphkeel.cli.main import COMMANDS, KEEL, main
from graphkeel.cli.shared.width import fitted, terminal_width

WIDTH = 80
CUT = re.compile(r"…|\d\.\de-?$")  # rich's mark of a cut cell


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))


def captured(words: list[str], capsys: pytest.CaptureFixture[str]) -> list[str]:
    main(words)
    lines = capsys.readouterr().out.splitlines()
    assert lines
    too_wide = [line for line in lines if len(line) > WIDTH]
    assert not too_wide
    assert not [line for line in lines if CUT.search(line.strip())]
    return lines


def test_certify(tmp_path, capsys) -> None:
    lines = captured(["certify", "--budget", "5", "--out", str(tmp_path)], capsys)
    (head,) = [line for line in lines if "verdict" in line]
    for name in ("class", "verdict", "‖C(h*)−Y‖", "V>0", "ΔV<0", "F(D)⊆D", "hole", "F(R)⊆R"):
        assert f" {name} " in head
    rows = [line for line in lines if line.startswith("│")]
    assert len(rows) == 10
    assert all(re.search(r" \d\.\de-\d\d ", row) for row in rows), "distances in full"
    paths = [str(tmp_path / "certificate.json")]
    for words in (["check", *paths], ["export", *paths, "--out", str(tmp_path / "files")]):
        shown = captured(words, capsys)
        assert len(shown) < 60, "a sentence for a group of classes, not a paragraph for each"


def test_check_groups_classes_of_which_the_same_is_said(tmp_path, capsys) -> None:
    write_certificate(readers.certificate_content("contraction"), tmp_path / "c.json")
    text = "\n".join(captured(["check", str(tmp_path / "c.json")], capsys))
    assert text.startswith("accepted: ")
    assert len(re.findall(r"^class(?:es)? [\d, ]+: ", text, flags=re.M)) >= 1


def test_run_and_feedback(tmp_path, capsys) -> None:
    words = ["run", "--seeds", "2", "--out", str(tmp_path)]
    captured(words, capsys)
    main(words)
    assert "2 of 2 seeds were in" in capsys.readouterr().err
    captured(["feedback", "--simulate", "100", "--batches", "1"], capsys)
    captured(["report", str(tmp_path), "--to", str(tmp_path / "page.html")], capsys)


def test_words_and_numbers_are_never_cut() -> None:
    long_path = "x" * 100
    assert fitted([f"see {long_path} there"], 20) == ["see", long_path, "there"]
    assert fitted(["  indented words that go on"], 12) == [
        "  indented",
        "  words that",
        "  go on",
    ]


def test_a_file_gets_whole_lines(monkeypatch) -> None:
    monkeypatch.delenv("COLUMNS")
    assert terminal_width() is None
    assert fitted(["word " * 50], terminal_width()) == ["word " * 50]


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits(command, capsys) -> None:
    with pytest.raises(SystemExit):
        main([*command.split(), "--help"])
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if len(line) > WIDTH] == []
    assert [line for line in lines if line.endswith("-")] == [], "no word is broken"
    assert [line for line in lines if re.search(r"--[\w-]+ \\$", line)] == [], "nor an option"


@pytest.mark.parametrize(("command", "place"), COMMANDS.items())
def test_examples_of_the_help_can_be_copied(command, place, capsys) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    shown = re.sub(r" \\\n +", " ", capsys.readouterr().out).splitlines()
    examples = re.findall(
        r"(?m)^  (keel .*?)(?:   .*)?$", importlib.import_module(place).__doc__ or ""
    )
    for example in examples:
        assert [line for line in shown if line.strip().startswith(example)], example
        assert "\\" not in example and len(example.split("  ")) == 1, "one line in the source"
        if not example.endswith("…"):
            KEEL.parser().parse_args(shlex.split(example)[1:])


def test_run_monitor_label_and_adapt(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = "run"
    captured(["run", "--seeds", "1", "--split", "random", "--out", run], capsys)
    captured(["monitor", run, "--data", "digits"], capsys)

    def served(*_: object, ready, **__: object) -> None:
        ready("http://127.0.0.1:65535/?token=" + "x" * 43)
        raise KeyboardInterrupt

    monkeypatch.setattr("graphkeel.label.serve", served, raising=False)
    main(["label", run])
    shown = capsys.readouterr()
    assert max(map(len, (shown.out + shown.err).splitlines())) <= WIDTH
    assert shown.out.splitlines()[0].startswith("0 labels, 0 skipped: ")
    captured(["adapt", "--source", "sbm", "--target", "sbm", "--seeds", "1"], capsys)


@pytest.mark.parametrize(
    ("words", "question"),
    [
        (["certfy"], "Did you mean certify?"),
        (["chekc", "c.json"], "Did you mean check?"),
        (["run", "--datset", "cora"], "there is no option --datset. Did you mean --dataset?"),
        (["certify", "--bugdet=3"], "Did you mean --budget?"),
        (["run", "--sede", "1"], "Did you mean --seed?"),
        (["verify", "p.json", "--clock", "sand"], "invalid choice"),
        (["run", "--zzz"], "there is no option --zzz."),
    ],
)
def test_did_you_mean(words, question, capsys) -> None:
    with pytest.raises(SystemExit) as left:
        main(words)
    assert left.value.code == 2
    assert question in capsys.readouterr().err
