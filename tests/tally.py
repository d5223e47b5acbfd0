"""How many kills and fuzz executions a test session made; printed in its summary."""

from __future__ import annotations

from collections import Counter

TALLY: Counter[str] = Counter()
