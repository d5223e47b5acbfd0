"""The search of one case of a property."""

from __future__ import annotations

from graphkeel.verify.boxes.pack import too_large
from graphkeel.verify.boxes.question import case_question
from graphkeel.verify.property.attack import CaseAttack
from graphkeel.verify.result import Budget
from graphkeel.verify.search import Search
from graphkeel.verify.settings import PROPERTY


def case_search(attack: CaseAttack, budget: Budget, keep: bool) -> Search:
    """The search of a case, with the attack on it for confirming what looks like a member."""
    case, network = attack.case, attack.network
    question = case_question(network, case.lower, case.upper, PROPERTY)
    search = Search(question, budget, 0.0, attack, keep=keep, settings=PROPERTY.search)
    if too_large(network, case.lower, case.upper, PROPERTY.max_magnitude):
        search.reason = "numbers come too near to the largest float"
    return search
