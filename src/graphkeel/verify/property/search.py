"""The search of one case of a property."""

from __future__ import annotations

from graphkeel.verify.boxes.pack import too_large
from graphkeel.verify.boxes.question import case_question
from graphkeel.verify.property.attack import Attack
from graphkeel.verify.result import Budget
from graphkeel.verify.search import Search


def case_search(attack: Attack, budget: Budget, keep: bool) -> Search:
    """The search of a case, with the attack on it for confirming what looks like a member."""
    settings, case = attack.settings, attack.case
    question = case_question(attack.joined, case.lower, case.upper, settings)
    search = Search(question, budget, 0.0, attack, keep=keep, settings=settings.search)
    if too_large(attack.joined, case.lower, case.upper, settings.max_magnitude):
        search.reason = "numbers come too near to the largest float"
    return search
