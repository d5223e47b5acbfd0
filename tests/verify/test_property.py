"""Properties decided, proofs checked: against brute force, against ties, and against forgers."""

from __future__ import annotations

import base64
import copy
import json
import math
import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from known import KNOWN

from graphkeel.certificate.encoding import certificate_bytes
from graphkeel.checker import Unreadable, check_bytes
from graphkeel.cli.main import main
from graphkeel.core.errors import ProblemError
from graphkeel.verify import verify
from graphkeel.verify.attack import CaseAttack
from graphkeel.verify.boxes.explore import explore
from graphkeel.verify.boxes.pack import pack
from graphkeel.verify.formats.vnnlib_reader import property_from
from graphkeel.verify.proof import encode
from graphkeel.verify.property.decide import Answer, case_search, decide
from graphkeel.verify.property.network import Block, BlockNetwork
from graphkeel.verify.property.proof import difference
from graphkeel.verify.property.question import Property
from graphkeel.verify.result import Budget

FLAT = np.zeros(1)


def absolute() -> BlockNetwork:
    """Y_0 = |x_0| + |x_1|, Y_1 = x_0: skips, a linear block, two ReLU levels."""
    both = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    return BlockNetwork(
        2,
        (
            Block(((0, both),), np.zeros(4), relu=True),
            Block(((1, np.ones((1, 4))),), FLAT, relu=False),
            Block(((2, np.eye(1)),), FLAT, relu=True),
            Block(
                ((0, np.array([[0.0, 0.0], [1.0, 0.0]])), (3, np.array([[1.0], [0.0]]))),
                np.zeros(2),
                relu=False,
            ),
        ),
    )


def decode(entry: dict[str, Any]) -> np.ndarray:
    """The array that `encode` wrote."""
    raw = base64.b64decode(entry["base64"])
    return np.frombuffer(raw, dtype=np.dtype(entry["dtype"])).reshape(entry["shape"])


def violation_of(assertions: str, outputs: int = 2, inputs: int = 2) -> Property:
    names = [f"X_{i}" for i in range(inputs)] + [f"Y_{i}" for i in range(outputs)]
    declared = "".join(f"(declare-const {name} Real)" for name in names)
    box = "".join(f"(assert (<= X_{i} 1))(assert (>= X_{i} -1))" for i in range(inputs))
    return property_from(declared + box + assertions)


# |x_0| + |x_1| ≤ 1/2 and x_0 ≥ 0.6 cannot both be; neither can |x_0| + |x_1| ≥ 2.1
HOLDS = "(assert (or (and (<= Y_0 0.5) (>= Y_1 0.6)) (>= Y_0 2.1)))"


@pytest.fixture(scope="module")
def proved() -> Answer:
    answer = decide(absolute(), violation_of(HOLDS))
    assert answer.verdict == "unsat" and answer.proof is not None
    return answer


def checked(proof: Any) -> bool:
    return check_bytes(certificate_bytes(proof)).accepted


def test_a_property_that_holds_has_a_proof_that_is_checked(proved: Answer) -> None:
    result = check_bytes(certificate_bytes(proved.proof or {}))
    assert result.accepted and "2 case(s)" in result.reason and result.leaves >= 2


def test_a_violation_is_replayed_exactly() -> None:
    prop = violation_of("(assert (>= Y_0 1.999))(assert (<= Y_1 -0.9995))")
    answer = decide(absolute(), prop)
    assert answer.verdict == "sat" and answer.proof is None
    point = [Fraction(x) for x in answer.inputs]
    assert abs(point[0]) + abs(point[1]) >= Fraction("1.999") and point[0] <= Fraction("-0.9995")
    text = answer.counterexample_text()
    assert text.startswith("((X_0 -") and text.endswith("))") and text.count("\n") == 3


def test_a_violation_at_one_corner_only() -> None:
    """Y_0 ≥ 2 holds at corners alone, with equality."""
    assert decide(absolute(), violation_of("(assert (>= Y_0 2))")).verdict == "sat"


def test_a_touching_case_is_never_called_unsat() -> None:
    """The only member is x = (1/3, 0), which is no float: nothing can be shown, or found."""
    prop = violation_of("(assert (>= (* 3 Y_1) 1))(assert (<= (* 3 Y_0) 1))")
    answer = decide(absolute(), prop, Budget(2.0))
    assert answer.verdict == "unknown" and answer.reason


def test_boxes_of_one_point_and_of_none() -> None:
    point = "(assert (<= X_0 0.5))(assert (>= X_0 0.5))(assert (<= X_1 0))(assert (>= X_1 0))"
    assert decide(absolute(), violation_of(point + "(assert (>= Y_0 0.5))")).verdict == "sat"
    answer = decide(absolute(), violation_of(point + "(assert (>= Y_0 0.51))"))
    assert answer.verdict == "unsat" and checked(answer.proof)
    nothing = decide(absolute(), violation_of("(assert (>= X_0 2))(assert (<= Y_0 9))"))
    assert nothing.verdict == "unsat" and nothing.proof is None and "vacuous" in nothing.reason


def test_time_is_kept() -> None:
    answer = decide(absolute(), violation_of(HOLDS), Budget(1e-9))
    assert answer.verdict == "unknown" and "time" in answer.reason


class Leaping(Budget):
    """A clock that leaps beyond every deadline after some looks at it."""

    looks = 0

    def now(self) -> float:
        Leaping.looks -= 1
        return 0.0 if Leaping.looks > 0 else 1e9


@pytest.mark.parametrize("looks", range(1, 16))
def test_a_case_that_got_no_turn_is_not_called_closed(looks: int) -> None:
    """Wherever the time ends: the verdict is unknown, or right with its proof."""
    Leaping.looks = looks
    answer = decide(absolute(), violation_of(HOLDS), Leaping(60.0, threads=1))
    assert answer.verdict == "unknown" or checked(answer.proof)


def test_numbers_near_overflow_are_not_decided_by_floats() -> None:
    huge = Block(((0, np.full((1, 1), 1e200)),), FLAT, relu=True)
    network = BlockNetwork(1, (huge, Block(((1, np.full((1, 1), 1e200)),), FLAT, relu=False)))
    prop = violation_of("(assert (<= Y_0 -1))", outputs=1, inputs=1)
    search = case_search(CaseAttack(network, prop.cases[0]), Budget(), keep=True)
    outcome = search.run()
    assert outcome.piece is None and "largest float" in outcome.reason


def two_chains() -> BlockNetwork:
    """Two units of one block, each behind a ReLU block of its own."""
    one, two = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    first, second = (Block(((0, line),), FLAT, relu=True) for line in (one, two))
    both = Block(((1, one.T), (2, two.T)), np.array([0.0, -0.5]), relu=True)
    return BlockNetwork(2, (first, second, both, Block(((3, np.eye(2)),), np.zeros(2), False)))


def test_a_block_is_bounded_with_all_that_it_reads() -> None:
    """The first inequality needs one unit of a block, the second one its other unit."""
    network = two_chains()
    prop = violation_of("(assert (>= Y_0 -1))(assert (>= Y_1 0.1))")
    attack = CaseAttack(network, prop.cases[0])
    attack.searched = True
    search = case_search(attack, Budget(), keep=True)
    search.deadline = search.last = math.inf
    outcome = search.run()
    assert not outcome.closed and outcome.counterexample is not None


def test_a_block_that_reads_a_value_twice_is_refused() -> None:
    twice = Block(((0, np.eye(1)), (0, np.eye(1))), FLAT, relu=True)
    with pytest.raises(ProblemError, match="twice"):
        pack(BlockNetwork(1, (twice,)), [])


def test_loops_and_networks_share_one_compiled_kernel() -> None:
    decide(two_chains(), violation_of("(assert (>= Y_1 0.6))"), Budget(5.0))
    problem, _ = KNOWN["halving"]
    verify(problem, "branch", Budget(5.0))
    assert len(explore.signatures) == 1


def random_network(rng: np.random.Generator) -> BlockNetwork:
    """Blocks that read any earlier ones, with a ReLU or without."""
    widths = [2]
    blocks = []
    for _ in range(int(rng.integers(2, 6))):
        width = int(rng.integers(1, 7))
        count = int(rng.integers(1, min(3, len(widths)) + 1))
        sources = sorted({len(widths) - 1, *rng.choice(len(widths), count, replace=False).tolist()})
        terms = tuple((s, _small(rng, (width, widths[s]))) for s in sources)
        blocks.append(Block(terms, _small(rng, (width,)), bool(rng.random() < 0.7)))
        widths.append(width)
    last = ((len(blocks), _small(rng, (2, widths[-1]))), (0, _small(rng, (2, 2))))
    return BlockNetwork(2, (*blocks, Block(last, _small(rng, (2,)), relu=False)))


def _small(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return rng.normal(size=shape).astype(np.float32).astype(np.float64)


@pytest.mark.parametrize("seed", range(25))
def test_random_networks_against_a_grid(seed: int) -> None:
    """Thresholds a little beyond and below the best of 40,000 points; proofs are all checked."""
    rng = np.random.default_rng(seed)
    network = random_network(rng)
    line = np.linspace(-1.0, 1.0, 201)
    points = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    outputs = network.outputs_at(points)
    floor = float(np.quantile(outputs[:, 0], 0.7))
    best = float(outputs[outputs[:, 0] >= floor, 1].max())
    spread = float(np.ptp(outputs[:, 1])) + 1e-3
    for offset, wrong in ((-0.01, "unsat"), (0.3, "sat")):
        goal = best + offset * spread
        prop = violation_of(f"(assert (>= Y_0 {floor:.17f}))(assert (>= Y_1 {goal:.17f}))")
        answer = decide(network, prop, Budget(600.0))
        if wrong == "unsat":
            assert answer.verdict == "sat"
        if answer.verdict == "unsat":
            assert checked(answer.proof)
        if answer.verdict == "sat":
            assert prop.cases[0].holds_at(network, np.array(answer.inputs))


# ---- forgers


def changed(proof: Any, **tree: Any) -> Any:
    forged = copy.deepcopy(proof)
    forged["cases"][0]["tree"] |= tree
    return forged


def test_other_weights_or_a_larger_box_are_rejected(proved: Answer) -> None:
    forged = copy.deepcopy(proved.proof or {})
    forged["cases"][0]["constant"] = encode(np.array([1.5, -0.6]))
    assert not checked(forged)
    forged = copy.deepcopy(proved.proof or {})
    forged["network"]["blocks"][1]["bias"] = encode(np.array([-3.0]))
    assert not checked(forged)
    forged = copy.deepcopy(proved.proof or {})
    forged["cases"][1]["upper"] = encode(np.array([4.0, 4.0]))
    assert not checked(forged)
    forged = copy.deepcopy(proved.proof or {})
    forged["network"]["blocks"][0]["relu"] = False
    assert not checked(forged)


def test_multipliers_must_be_of_the_right_kind(proved: Answer) -> None:
    weights = decode((proved.proof or {})["cases"][0]["tree"]["multipliers"])
    for bad in (0 * weights, -weights, weights[:-1], weights[:, :1]):
        assert not checked(changed(proved.proof, multipliers=encode(bad.astype(np.int32))))


def test_trees_must_be_complete(proved: Answer) -> None:
    axis = decode((proved.proof or {})["cases"][0]["tree"]["axis"])
    cut = decode((proved.proof or {})["cases"][0]["tree"]["cut"])
    assert axis.shape[0] > 1
    assert not checked(changed(proved.proof, axis=encode(axis[:-1])))
    assert not checked(changed(proved.proof, axis=encode(np.full_like(axis, -1))))
    assert not checked(changed(proved.proof, cut=encode(cut + 5.0)))
    hole = np.where(axis < 0, -1, axis).astype(np.int16)
    assert not checked(changed(proved.proof, axis=encode(hole)))
    other = np.where(axis >= 0, 99, axis).astype(np.int16)
    assert not checked(changed(proved.proof, axis=encode(other), cut=encode(cut[:0])))


def test_blocks_must_fit_together(proved: Answer) -> None:
    for key, value in (("source", 9), ("source", -1), ("source", True), ("source", 1)):
        forged = copy.deepcopy(proved.proof or {})
        forged["network"]["blocks"][0]["terms"][0][key] = value
        with pytest.raises(Unreadable):
            checked(forged)
    forged = copy.deepcopy(proved.proof or {})
    forged["network"]["blocks"][0]["relu"] = 1
    with pytest.raises(Unreadable):
        checked(forged)


def test_a_changed_byte_breaks_the_seal(proved: Answer) -> None:
    raw = certificate_bytes(proved.proof or {})
    assert not check_bytes(raw.replace(b'"relu": true', b'"relu": false', 1)).accepted


def test_another_question_is_noticed(proved: Answer) -> None:
    content = proved.proof or {}
    assert difference(content, absolute(), violation_of(HOLDS)) is None
    fewer = {**content, "cases": content["cases"][:1]}
    assert checked(fewer) and "cases" in str(difference(fewer, absolute(), violation_of(HOLDS)))
    other = violation_of(HOLDS.replace("2.1", "2.2"))
    assert "cases" in str(difference(content, absolute(), other))
    network = BlockNetwork(2, (*absolute().blocks[:3], Block(((0, np.eye(2)),), np.ones(2), False)))
    assert "network" in str(difference(content, network, violation_of(HOLDS)))


# ---- the commands


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """max(x, 0) on [−1, 1], with the case of a value ≥ 2 (or what the test replaces it by)."""
    onnx = pytest.importorskip("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    ends = [helper.make_tensor_value_info(name, kind, [1, 1]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", ends[:1], ends[1:])
    network, prop = tmp_path / "net.onnx", tmp_path / "prop.vnnlib"
    network.write_bytes(helper.make_model(graph).SerializeToString())
    prop.write_text(
        "(declare-const X_0 Real)(declare-const Y_0 Real)"
        "(assert (>= X_0 -1))(assert (<= X_0 1))(assert (>= Y_0 2))"
    )
    return str(network), str(prop)


def test_verify_and_check(files: tuple[str, str], capsys: Any, tmp_path: Path) -> None:
    network, prop = files
    proof = str(tmp_path / "proof.json")
    results = tmp_path / "results.txt"
    assert main(["verify", network, prop, "--proof", proof, "--results", str(results)]) == 0
    assert capsys.readouterr().out.startswith("unsat\nThe property holds")
    assert results.read_text() == "unsat\n"
    assert main(["check", proof]) == 0
    assert main(["check", proof, "--network", network, "--property", prop]) == 0
    assert "those of the files" in capsys.readouterr().out
    Path(prop).write_text(Path(prop).read_text().replace("2)", "3)"))
    assert main(["check", proof, "--network", network, "--property", prop]) == 1
    assert main(["check", proof, "--network", network]) == 2
    Path(prop).write_text(Path(prop).read_text().replace("3)", "0.5)"))
    assert main(["verify", network, prop, "--results", str(results)]) == 1
    assert results.read_text().startswith("sat\n((X_0 ")


def test_files_of_the_other_kind_are_refused(
    files: tuple[str, str], capsys: Any, tmp_path: Path
) -> None:
    """A model beside a proof would go unchecked, and so would a network beside a certificate."""
    network, prop = files
    proof = str(tmp_path / "proof.json")
    assert main(["verify", network, prop, "--proof", proof]) == 0
    own = ["--network", network, "--property", prop]
    for others in (["--model", "m.safetensors"], ["--problem", "loop.npz"]):
        assert main(["check", proof, *own, *others]) == 2
        assert "its own files only" in capsys.readouterr().err
    assert main(["check", proof, "--model", "m.safetensors"]) == 2
    assert "--network and --property" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["fifo", "device", "folder", "missing", "truncated", "nothing"])
def test_what_is_no_file_of_a_proof(kind: str, files: tuple[str, str], tmp_path: Path) -> None:
    path = tmp_path / "proof.json"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        path = Path("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    elif kind == "truncated":
        assert main(["verify", *files, "--proof", str(path)]) == 0
        path.write_bytes(path.read_bytes()[:-100])
    elif kind == "nothing":
        path.write_bytes(b"")
    assert main(["check", str(path)]) == 2
    assert main(["check", str(path), "--json"]) == 2
    if kind not in ("truncated", "nothing", "missing"):
        assert main(["verify", str(path), files[1]]) == 2
        assert main(["verify", files[0], str(path)]) == 2


def test_verify_finds_a_violation(files: tuple[str, str], capsys: Any) -> None:
    network, prop = files
    Path(prop).write_text(Path(prop).read_text().replace("Y_0 2", "Y_0 0.5"))
    assert main(["verify", network, prop]) == 1
    assert capsys.readouterr().out.startswith("sat\n((X_0 ")
    assert main(["verify", network, prop, "--json"]) == 1
    payload = json.loads(capsys.readouterr().out)
    assert payload["command"] == "verify" and payload["verdict"] == "sat"
    assert payload["counterexample"][0] >= 0.5 and payload["seconds"] >= 0


def test_bad_input_is_one_line(files: tuple[str, str], capsys: Any) -> None:
    network, prop = files
    assert main(["verify", network]) == 2
    assert main(["verify", prop, network]) == 2
    assert main(["verify", network, prop, "--engine", "smt"]) == 2
    assert main(["verify", network, f"{prop}.missing"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4 and all(line.startswith("keel verify: ") for line in lines)
