"""Every installed engine on the same problem; two that contradict each other are an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from graphkeel.core.errors import EngineDisagreementError
from graphkeel.verify.problem import CONDITIONS, Problem, check_conditions
from graphkeel.verify.result import Budget, ConditionReport, Verdict, Verifier, VerifyReport

_FINAL = (Verdict.PROVED, Verdict.REFUTED)


def cross_check(
    problem: Problem,
    budget: Budget | None = None,
    conditions: Sequence[str] = tuple(CONDITIONS),
    *,
    among: Mapping[str, Verifier] | None = None,
) -> VerifyReport:
    """The first final answer to each condition, with the names of all engines that agree in its
    reason.

    Raises:
        EngineDisagreementError: one engine proved a condition that another refuted.
    """
    check_conditions(problem, conditions)
    engines = _supporting(problem, among)
    reports = [engine.solve(problem, budget, conditions) for engine in engines.values()]
    answers = tuple(_agreed([report[condition] for report in reports]) for condition in conditions)
    silent = sorted(
        set(engines) - {name for answer in answers for name in answer.engine.split(", ")}
    )
    notes = (f"asked without a final answer: {', '.join(silent)}",) if silent else ()
    return VerifyReport(answers, sum(report.seconds for report in reports), notes)


def _supporting(problem: Problem, among: Mapping[str, Verifier] | None) -> dict[str, Verifier]:
    """The engines that support a problem; `auto` only runs the others, so it adds nothing."""
    from graphkeel.verify import available_engines

    found = available_engines() if among is None else among
    return {
        name: engine
        for name, engine in found.items()
        if name != "auto" and engine.supports(problem) is None
    }


def _agreed(answers: list[ConditionReport]) -> ConditionReport:
    final = [answer for answer in answers if answer.verdict in _FINAL]
    if not final:
        return answers[0]
    first = final[0]
    for other in final:
        if other.verdict is not first.verdict:
            raise EngineDisagreementError(
                f"{first.engine} and {other.engine} contradict each other on {first.condition!r}",
                got=f"{first.verdict.value} and {other.verdict.value}",
                fix="One of them has a bug: please report the problem file.",
            )
    names = ", ".join(dict.fromkeys(answer.engine for answer in final))
    points = (answer.counterexample for answer in final)
    proofs = (answer.proof for answer in final)
    return replace(
        first,
        engine=names,
        counterexample=next((point for point in points if point is not None), None),
        seconds=sum(answer.seconds for answer in answers),
        nodes=sum(answer.nodes for answer in answers),
        proof=next((proof for proof in proofs if proof is not None), None),
    )
