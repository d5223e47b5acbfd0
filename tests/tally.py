"""How many kills and fuzz executions a test session made, by command and by fuzzer; printed in its
summary, those of worker processes included."""

from __future__ import annotations

from collections import Counter

TALLY: Counter[tuple[str, str]] = Counter()


def lines() -> list[str]:
    """One line a kind: "kills: 62 (certify 15, feedback 17, run 15, table 15)"."""
    found = []
    for kind in sorted({kind for kind, _ in TALLY}):
        parts = {part: count for (of, part), count in sorted(TALLY.items()) if of == kind}
        listed = ", ".join(f"{part} {count}" for part, count in parts.items())
        found.append(f"{kind}: {sum(parts.values())} ({listed})")
    return found
