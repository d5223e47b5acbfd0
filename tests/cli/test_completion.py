"""`keel --print-completion`: a script for the shell, or where to get what makes it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from graphkeel.cli.main import COMMANDS, main


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_the_script_knows_every_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("shtab")
    with pytest.raises(SystemExit) as ended:
        main(["--print-completion", shell])
    script = capsys.readouterr().out
    assert ended.value.code == 0
    assert [name for name in (*COMMANDS, "--simulate") if name not in script] == []


def test_bash_completes_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("shtab")
    with pytest.raises(SystemExit):
        main(["--print-completion", "bash"])
    ask = "\nCOMP_WORDS=(keel cer); COMP_CWORD=1; _shtab_keel; echo ${COMPREPLY[@]}\n"
    script = capsys.readouterr().out + ask
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["certify"]


def test_without_shtab_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    with pytest.raises(SystemExit) as ended:
        main(["--print-completion", "bash"])
    assert ended.value.code == 2
    assert "pip install 'graphkeel[completion]'" in capsys.readouterr().err
