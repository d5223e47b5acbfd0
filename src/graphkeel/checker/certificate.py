"""The check of a whole certificate: every claim of every class, and what is said of them.

The class's loop is composed from the shipped weights; a `proved` condition is proved again from
its stored proof, a `refuted` one replayed at its counterexample; and all that follows is derived
anew and compared with what the file says.
"""

import math
from fractions import Fraction
from typing import Any

from . import conclusion as words
from .contraction import check_contraction
from .exact import Vector, Work, float_above
from .graph import check_graph, not_covered
from .limits import LOOSE
from .networks import Source, collapsed, composed, read_source, source_value, value_at
from .problem import SEARCHED, Problem, read_problem
from .reading import VERSION, Rejected, Unreadable, items, mapping, same, vector
from .steering import check_steering
from .trees import check_branch, check_faces

FORMS = ("anchored", "homogeneous", "paper")
ASKED = (*SEARCHED, "region")
CONDITIONS = ("representative", *SEARCHED, "hole", "region")
_TOP = {"format", "version", "head", "classes", "together", "not_covered"}
_REMARKS = frozenset({"sha256", "provenance", "data", "engine", "reason", "seconds", "nodes"})
_CLASS = {"class", "form", "controller", "lyapunov", "anchor", "problem", "conditions"}
_DERIVED = {"verdict", "setting", "conclusion"}


def check_certificate(content: dict[str, Any], work: Work) -> dict[str, Any]:
    """Every statement of a sealed certificate, and the sentences for a reader."""
    mapping(content, "the certificate", _TOP, _REMARKS | {"graph", "steering"})
    graph = content.get("graph")
    same(content["not_covered"], not_covered(graph), "the list of what is not covered")
    head = read_source(content["head"], "head")
    entries = items(content["classes"], "classes", most=4096)
    leaves = 0
    for entry in entries:
        mapping(entry, "a class", _CLASS | _DERIVED)
        where = f"class {entry['class'] if type(entry['class']) is int else '?'}"
        try:
            leaves += _check_class(head, entry, where, work)
        except Rejected as rejection:
            raise Rejected(f"{where}: {rejection}") from None
    if len({entry["class"] for entry in entries}) != len(entries):
        raise Rejected("a class stands twice in the certificate")
    same(content["together"], words.all_together(entries), "what is said of all classes")
    reason = f"all that is stated of {len(entries)} class(es) holds; {leaves} leaves re-proved"
    passing = check_graph(graph, entries, work) if "graph" in content else ""
    shipped = content.get("steering")
    steering = check_steering(shipped, head, graph, work) if "steering" in content else ""
    said = {"classes": tuple(map(_summary, entries)), "together": content["together"]["sentence"]}
    return {"reason": reason, "leaves": leaves, **said, "graph": passing, "steering": steering}


def _summary(entry: dict[str, Any]) -> dict[str, Any]:
    verdicts = {name: entry["conditions"][name]["verdict"] for name in CONDITIONS}
    named = {name: entry[name] for name in ("class", "verdict", "setting")}
    return {**named, "conditions": verdicts, "sentence": entry["conclusion"]["sentence"]}


def _check_class(head: Source, entry: dict[str, Any], where: str, work: Work) -> int:
    """All that is said of one class; the number of leaves that it took."""
    conditions = mapping(entry["conditions"], f"{where}.conditions", set(CONDITIONS))
    if entry["form"] not in FORMS:
        raise Unreadable(f"{where}: the form is none of {FORMS}")
    problem = class_problem(head, entry, where, work)
    leaves = sum(_check_answer(problem, name, conditions[name], work) for name in ASKED)
    derived = derive(head, problem, entry)
    for name in ("representative", "hole"):
        same(conditions[name], derived["conditions"][name], f"what is said of {name}")
    for name in sorted(_DERIVED):
        same(entry[name], derived[name], f"its {name}")
    return leaves


def class_problem(head: Source, entry: dict[str, Any], where: str, work: Work) -> Problem:
    """The question about a class, of networks composed here from the shipped weights."""
    controller = read_source(entry["controller"], f"{where}.controller")
    forward = collapsed(composed(controller, head), f"{where}: the loop", work)
    lyapunov = collapsed(read_source(entry["lyapunov"], f"{where}.lyapunov"), f"{where}: V", work)
    return read_problem(entry["problem"], entry["class"], forward, lyapunov, f"{where}.problem")


def _check_answer(problem: Problem, condition: str, answer: Any, work: Work) -> int:
    """Prove again, or replay; the number of leaves."""
    mapping(answer, condition, {"verdict", "proof", "counterexample"}, _REMARKS)
    verdict, proof, point = answer["verdict"], answer["proof"], answer["counterexample"]
    if verdict not in ("proved", "refuted", "unknown"):
        raise Unreadable(f"{condition}: a verdict is proved, refuted or unknown")
    shown = "proved" if proof is not None else "refuted" if point is not None else "unknown"
    if shown != verdict or (proof is not None and point is not None):
        raise Rejected(f"{condition} is called {verdict} without what shows it")
    if point is not None:
        _replay(problem, condition, vector(point, f"{condition}.counterexample", problem.n))
    return 0 if proof is None else reprove(problem, condition, proof, work)


def reprove(problem: Problem, condition: str, proof: Any, work: Work) -> int:
    """Prove a condition again from its stored proof; the number of leaves."""
    version = proof.get("version") if isinstance(proof, dict) else None
    if type(version) is not int or version != VERSION or proof.get("condition") != condition:
        raise Rejected(
            f"{condition}: a proof of version {VERSION} of this very condition is needed"
        )
    checks = {"branch": check_branch, "homogeneous": check_faces, "contraction": check_contraction}
    if proof.get("kind") not in checks:
        raise Unreadable(f"{condition}: unknown kind of proof")
    return checks[proof["kind"]](problem, condition, proof, work)


def _replay(problem: Problem, condition: str, point: Vector) -> None:
    """That a counterexample lies where the condition is claimed, and violates it."""
    away, after = problem.distance(point), value_at(problem.forward, point)
    asked = away >= problem.radius > 0 or away > problem.radius == 0
    if condition == "invariance":
        asked, violated = True, not problem.in_box(after)
    elif condition == "region":
        kept = _margin(after, problem.label)
        asked = _margin(point, problem.label) >= problem.margin
        violated = kept < problem.margin or kept <= 0
    elif condition == "positivity":
        here = problem.gauge(point)
        violated = here < problem.positivity * away or here <= 0 == problem.positivity
    else:
        fall = problem.rho * problem.gauge(point) - problem.gauge(after)
        violated = fall < 0 or (fall == 0 and problem.rho == 1)
    if not problem.in_box(point) or not asked:
        raise Rejected(f"{condition}: the counterexample lies where nothing is claimed")
    if not violated:
        raise Rejected(f"{condition}: the counterexample satisfies the condition")


def _margin(state: Vector, label: int) -> Fraction:
    """A class's logit minus the largest other one."""
    values = state.fractions()
    own = values.pop(label)
    return own - max(values, default=own - 1)


def derive(head: Source, problem: Problem, entry: dict[str, Any]) -> dict[str, Any]:
    """All that a class's entry says besides its weights, its question and the searched answers;
    used by the check, and by whoever writes a certificate."""
    answers = {name: entry["conditions"][name]["verdict"] for name in ASKED}
    proved = {name for name, verdict in answers.items() if verdict == "proved"}
    representative, distance = _representative(head, problem, entry)
    hole = words.analyse_hole(problem, proved)
    end = words.conclude(problem, hole, proved)
    flows = end["kind"] in ("asymptotic", "practical") and end["region"] in ("everywhere", "D")
    kept = flows and {"region", "invariance"} <= proved
    end["switched"], more = words.switched_sentence(problem) if kept else (False, "")
    end["sentence"] += more
    inside = hole._asdict() | {"verdict": "unknown" if hole.kind == "open" else "proved"}
    for name in ("radius", "factor"):
        inside[name] = None if inside[name] is None else float_above(inside[name])
    verdicts = {*answers.values(), representative["verdict"], inside["verdict"]}
    return {
        "conditions": {"representative": representative, "hole": inside},
        "verdict": next((v for v in ("refuted", "unknown") if v in verdicts), "proved"),
        "setting": words.setting(problem, distance),
        "conclusion": end,
    }


def _representative(head: Source, problem: Problem, entry: Any) -> tuple[dict[str, Any], Fraction]:
    """‖C(h*) − Y‖₂ ≤ δ, and how far h* is from f(Y)."""
    centre = problem.equilibrium.fractions()
    if problem.delta > LOOSE * max(*map(abs, centre), max(centre) - min(centre)):
        raise Rejected(f"δ is more than {LOOSE} of the size of Y, so that it says nothing")
    if centre[problem.label] < max(centre):
        raise Rejected("the equilibrium is one of another class: its largest logit is not this one")
    at_rest = source_value(read_source(entry["controller"], "controller"), problem.equilibrium)
    anchor = vector(entry["anchor"], "anchor", len(at_rest))
    offset = source_value(head, anchor) - problem.equilibrium
    square = offset.dot(offset)
    root = math.isqrt(-((-square.numerator << 512) // square.denominator)) + 1
    distance = Fraction(root, 1 << 256) if square else square
    gap = float_above(max((anchor - at_rest).each(abs).fractions()))
    verdict = "proved" if square <= problem.delta**2 else "refuted"
    return {"verdict": verdict, "distance": float_above(distance), "anchor_gap": gap}, distance
