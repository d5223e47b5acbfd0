"""The red team: no false certificate is accepted, whatever its numbers, its rule and its lie."""

from __future__ import annotations

import json
import struct
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from forgeries import Forgery, bases, forgeries, rescaled
from hand_loops import Hand, certificate, sealed_bytes, tree
from more_forgeries import more_forgeries, true_ones
from run_cases import outcome
from sentence_forgeries import sentence_forgeries

from graphkeel import checker
from tally import TALLY

SHARED = Path(__file__).parents[2].parent / "shared" / "forgeries"


@pytest.mark.parametrize("exponent", [0, 300, -300])
@pytest.mark.parametrize("rule", bases())
def test_what_a_forgery_starts_from_is_accepted(rule: str, exponent: int) -> None:
    loops = [rescaled(loop, 2.0**exponent) for loop in bases()[rule]]
    assert outcome(checker, sealed_bytes(certificate(*loops))) == "accepted"


@pytest.mark.parametrize(("rule", "raw"), [pytest.param(*one, id=one[0]) for one in true_ones()])
def test_graphs_and_properties_to_start_from_are_accepted(rule: str, raw: bytes) -> None:
    assert outcome(checker, raw) == "accepted", rule


def refuse_all(made: Iterator[Forgery], count: int) -> None:
    outcomes: Counter[str] = Counter()
    for number, forgery in enumerate(made):
        found = outcome(checker, forgery.raw).split(":")[0]
        assert found in ("rejected", "unreadable"), f"{number}: {forgery.lie} by {forgery.rule}"
        outcomes[found] += 1
        TALLY["forgeries refused, by rule", forgery.rule] += 1
        TALLY["forgeries refused, by lie", forgery.lie] += 1
        TALLY["forgeries refused, by outcome", found] += 1
    assert outcomes["rejected"] >= count / 2  # most get past the reader, to the rules themselves


@pytest.mark.parametrize("seed", range(4))
def test_no_forgery_is_accepted(seed: int) -> None:
    refuse_all(forgeries(seed, 500), 500)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 110))
def test_none_of_many_forgeries_is_accepted(seed: int) -> None:
    refuse_all(forgeries(seed, 2_000), 2_000)


def test_no_forgery_of_graphs_and_properties_is_accepted() -> None:
    refuse_all(more_forgeries(0, 300), 300)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 205))
def test_none_of_many_forgeries_of_graphs_and_properties_is_accepted(seed: int) -> None:
    refuse_all(more_forgeries(seed, 1_000), 1_000)


def test_no_forgery_of_sentences_is_accepted() -> None:
    refuse_all(sentence_forgeries(0, 200), 200)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(300, 310))
def test_none_of_many_forgeries_of_sentences_is_accepted(seed: int) -> None:
    refuse_all(sentence_forgeries(seed, 2_000), 2_000)


# ---- files that an older check accepted


def shared_file(name: str) -> Path:
    if not (SHARED / name).is_file():
        pytest.skip("../shared/forgeries is not here")
    return SHARED / name


@pytest.mark.parametrize(
    "name", ["overflow_small.json", "overflow_digits.json", "loose_delta.json", "rho_inf.json"]
)
def test_a_file_of_version_2_is_not_read(name: str) -> None:
    found = outcome(checker, shared_file(name).read_bytes())
    assert found.startswith("unreadable: this program checks files of version 4")


def numbers(value: dict[str, Any]) -> list[Any]:
    """An array of version 2, in nested lists."""
    raw = b64decode(value["base64"])
    code = {"<f8": "d", "<f4": "f"}[value["dtype"]]
    flat = list(struct.unpack(f"<{len(raw) // struct.calcsize(code)}{code}", raw))
    if len(value["shape"]) == 1:
        return flat
    width = value["shape"][1]
    return [flat[i : i + width] for i in range(0, len(flat), width)]


def same_lie(name: str, factor: float) -> dict[str, Any]:
    """The networks and the question of an old file's first class, one-leaf trees for its claims,
    and its huge unit's weights times `factor` (their product stays as it is)."""
    old = json.loads(shared_file(name).read_bytes())
    entry = old["classes"][0]
    problem = entry["problem"]
    ends = [numbers(problem[key]) for key in ("lower", "upper")]
    centre = numbers(problem["equilibrium"])
    n = len(centre)
    rows = [f"{side} {axis}" for axis in range(n) for side in ("upper", "lower")]
    loop = Hand(
        [],
        [],
        *ends,
        centre,
        problem["hole_radius"],
        problem["rho"],
        problem["positivity"],
        proofs={
            "invariance": {
                "version": 4,
                "kind": "branch",
                "condition": "invariance",
                "trees": [tree(row, *ends, [-2]) for row in rows],
            }
        },
    )
    from hand_loops import answer, question

    from graphkeel.checker.certificate import ASKED
    from graphkeel.checker.conclusion import NOT_COVERED

    new = {key: entry[key] for key in ("class", "form", "controller", "lyapunov", "anchor")} | {
        "problem": question(loop),
        "conditions": {name: answer(loop, name) for name in ASKED},
    }
    new["controller"] = shrunk(new["controller"], factor)
    new["problem"]["delta"] = 0.0
    said = certificate(bases()["branch"][0])
    new["conditions"] = {**said["classes"][0]["conditions"], **new["conditions"]}
    new |= {key: said["classes"][0][key] for key in ("verdict", "setting", "conclusion")}
    return {
        "format": "graphkeel-certificate",
        "version": 4,
        "head": old["head"],
        "classes": [new],
        "not_covered": NOT_COVERED,
        "together": said["together"],
    }


def shrunk(controller: list[Any], factor: float) -> list[Any]:
    """Hidden layers times a factor, the next ones divided by it."""
    powers = [factor, 1 / factor, *[1.0] * (len(controller) - 2)]
    changed = []
    for number, (layer, power) in enumerate(zip(controller, powers, strict=True)):
        parts = []
        for k, part in enumerate(layer):
            last = k + 1 == len(layer)
            parts.append(
                {
                    "weight": scaled_array(part["weight"], power if last else 1.0),
                    "bias": scaled_array(part["bias"], factor if number == 0 else 1.0),
                }
            )
        changed.append(parts)
    return changed


def scaled_array(value: dict[str, Any] | None, factor: float) -> dict[str, Any] | None:
    if value is None:
        return None
    flat = numbers({**value, "shape": [1]})
    raw = struct.pack(f"<{len(flat)}d", *[factor * x for x in flat])
    return {"dtype": "<f8", "shape": value["shape"], "base64": b64encode(raw).decode("ascii")}


@pytest.mark.parametrize("name", ["overflow_small.json", "overflow_digits.json"])
def test_the_overflow_is_told_again_in_version_4(name: str) -> None:
    """With the old numbers the reader refuses; with numbers that it takes, the bound does."""
    found = outcome(checker, sealed_bytes(same_lie(name, 1.0)))
    assert found.startswith("unreadable") and "too large or too small" in found
    found = outcome(checker, sealed_bytes(same_lie(name, 2.0**-660)))
    assert found.startswith("rejected") and "invariance" in found and "does not show" in found
