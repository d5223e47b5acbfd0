"""`kill -9` at seeded moments: nothing finished is lost, nothing half-written is read, the next
start continues."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from faults.kept import Certify, Feedback, Kept, Run, check_whole
from faults.processes import Ended, WarmCommands
from tally import TALLY

# Moments within what a start has left to do, mostly: later ones would find it finished. As each
# start goes on where the last was killed, the end of the work is met as well.
EVENTS, SHARE = 30, 0.7


@dataclass
class Victim:
    """A command that is killed again and again in one folder, until it has finished
    nevertheless."""

    warm: WarmCommands
    kept: Kept
    out: Path
    before: dict[str, Any]

    def start(self, **kill: Any) -> Ended:
        """One start, killed or not, and the checks after it."""
        ended = self.warm.run(*self.kept.arguments, out=self.out, **kill)
        assert ended.killed or ended.code == 0, ended.err
        check_whole(self.out)
        now = self.kept.finished(self.out)
        for name, content in self.before.items():
            assert now.get(name) == content, (
                f"{name} was finished before the kill and is not what it was"
            )
        self.before = now
        return ended


def undisturbed(warm: WarmCommands, kept: Kept, out: Path) -> tuple[Any, float]:
    ended = warm.run(*kept.arguments, out=out)
    assert ended.code == 0, ended.err
    return kept.result(out), ended.seconds


def kill_again_and_again(
    warm: WarmCommands, kept: Kept, folder: Path, kills: int, seed: int
) -> int:
    """At least `kills` kills, in as many folders as it takes; returns how often a command was
    started."""
    expected, seconds = undisturbed(warm, kept, folder / "undisturbed")
    rng, done, starts, chain = random.Random(seed), 0, 0, 0
    while done < kills:
        chain += 1
        victim = Victim(warm, kept, folder / f"chain-{chain}", {})
        for _ in range(6):
            by_clock = rng.random() < 0.5
            moment = (
                {"kill_after": rng.uniform(0, SHARE * seconds)}
                if by_clock
                else {"kill_at": rng.randint(1, EVENTS)}
            )
            ended = victim.start(**moment)
            starts, done = starts + 1, done + ended.killed
            if not ended.killed:
                break
        else:
            assert victim.start().code == 0
        assert kept.result(victim.out) == expected
    return starts


SHORT = {
    "run": Run(seeds=2, method="none"),
    "certify": Certify("--classes", "3"),
    "feedback": Feedback(labels=20, batches=1),
}


@pytest.mark.parametrize("command", SHORT)
def test_a_killed_command_continues_and_comes_to_the_same(
    command: str, warm: WarmCommands, tmp_path: Path
) -> None:
    kept = SHORT[command]
    expected, _ = undisturbed(warm, kept, tmp_path / "undisturbed")
    victim = Victim(warm, kept, tmp_path / "killed", {})
    assert victim.start(kill_at=6).killed
    assert victim.start().code == 0
    assert kept.result(victim.out) == expected


LONG: dict[str, tuple[Kept, int]] = {
    "run": (Run(), 15),
    "certify": (Certify("--classes", "0,1,2,3"), 15),
    "feedback": (Feedback(), 15),
}


@pytest.mark.slow
@pytest.mark.parametrize("command", LONG)
def test_many_seeded_kills(command: str, warm: WarmCommands, tmp_path: Path) -> None:
    kept, kills = LONG[command]
    before = TALLY["kills", command]
    kill_again_and_again(warm, kept, tmp_path, kills, seed=sum(map(ord, command)))
    assert TALLY["kills", command] - before >= kills
