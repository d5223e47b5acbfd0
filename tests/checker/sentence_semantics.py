"""The meaning of derived sentences: each is parsed into a predicate and tried on states, exactly.

A sentence that is not of a known form has no meaning here and counts as contradicted, so that a
wrong word is noticed as a wrong number is. Nothing of the checker is used: networks are evaluated
from the stored floats in Fractions. A limit is judged by a long enough run, up to a small slack."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import product
from operator import mul
from typing import Any

from hand_loops import Json, decoded

State = list[Fraction]
Layers = list[list[Any]]
Step = Callable[[State], State]
NUMBER = r"(\d[\d.]*(?:e[-+]?\d+)?)"
SIGNED = r"-?\d[\d.]*(?:e[-+]?\d+)?"


class Contradicted(Exception):
    """A sentence, and what shows that it is false."""


def demand(holds: bool, *why: Any) -> None:
    if not holds:
        raise Contradicted("; ".join(map(str, why)))


def matched(pattern: str, text: str) -> re.Match[str]:
    found = re.fullmatch(pattern, text)
    if found is None:
        raise Contradicted(f"no such sentence is known: {text}")
    return found


# ---- the loop of a class, from what ships


def numbers(value: Json) -> State:
    return [Fraction(x) for x in decoded(value)]


def common(values: State) -> tuple[list[int], int]:
    """Numerators over one denominator: sums of integers are faster than sums of Fractions."""
    below = math.lcm(*(x.denominator for x in values))
    return [x.numerator * (below // x.denominator) for x in values], below


def layers_of(source: list[Any]) -> Layers:
    """Factors of every layer: rows of the weight, and the bias, each over one denominator."""
    layers = []
    for factors in source:
        parts: list[Any] = []
        for part in factors:
            weight, bias = part["weight"], part["bias"]
            flat, below = ([], 1) if weight is None else common(numbers(weight))
            width = 1 if weight is None else weight["shape"][1]
            rows = [flat[i : i + width] for i in range(0, len(flat), width)]
            parts.append((rows, below, None if bias is None else common(numbers(bias))))
        layers.append(parts)
    return layers


def value(layers: Layers, state: State) -> State:
    ints, below = common(state)
    for k, parts in enumerate(layers):
        ints = [max(x, 0) for x in ints] if k else ints
        for rows, share, bias in parts:
            ints = [sum(map(mul, row, ints)) for row in rows] if rows else ints
            below *= share
            if bias is not None:
                both = math.lcm(below, bias[1])
                up, more = both // below, both // bias[1]
                ints = [x * up + b * more for x, b in zip(ints, bias[0], strict=True)]
                below = both
    return [Fraction(x, below) for x in ints]


class Loop:
    """F, V and the question of one class."""

    def __init__(self, entry: Json, head: list[Any]) -> None:
        self.entry = entry
        self.label = entry["class"]
        self.controller, self.head = layers_of(entry["controller"]), layers_of(head)
        self.lyapunov = layers_of(entry["lyapunov"])
        problem = entry["problem"]
        self.low, self.high, self.centre = (
            numbers(problem[name]) for name in ("lower", "upper", "equilibrium")
        )
        self.hole, self.delta, self.margin = (
            Fraction(problem[name]) for name in ("hole_radius", "delta", "margin")
        )
        ends = zip(self.low, self.high, self.centre, strict=True)
        self.reach = max(max(abs(a - y), abs(b - y)) for a, b, y in ends)
        self.size = self.reach or max(map(abs, self.centre)) or Fraction(1)

    def step(self, state: State) -> State:
        return value(self.head, value(self.controller, state))

    def gauge(self, state: State) -> Fraction:
        return value(self.lyapunov, state)[0]

    def away(self, state: State) -> Fraction:
        return max(abs(x - y) for x, y in zip(state, self.centre, strict=True))

    def holds(self, state: State) -> bool:
        """Whether a state lies in D."""
        return all(a <= x <= b for a, x, b in zip(self.low, state, self.high, strict=True))

    def states(self, rng: random.Random) -> Iterator[State]:
        """States of D: corners, the middle of faces, around the hole's shell, others."""
        ends = list(zip(self.low, self.high, strict=True))
        yield from map(list, random_few(list(product(*ends)), 3, rng))
        for _ in range(2):
            yield [a + (b - a) * Fraction(rng.randrange(17), 16) for a, b in ends]
        point = list(self.centre)
        point[rng.randrange(len(point))] += rng.choice([-1, 1]) * self.hole
        if self.holds(point):
            yield point
        if self.holds(self.centre):
            yield list(self.centre)

    def far(self, rng: random.Random) -> Iterator[State]:
        """States anywhere."""
        for exponent in (1, 6):
            yield [
                y + rng.randrange(-8, 9) * self.size * Fraction(2) ** exponent / 8
                for y in self.centre
            ]

    def below(self, level: Fraction, rng: random.Random) -> Iterator[State]:
        """States just below a level of V, which is positively homogeneous around Y."""
        n = len(self.centre)
        axes = [[sign * (i == axis) for i in range(n)] for axis in range(n) for sign in (1, -1)]
        for way in [*axes, *([rng.randrange(-8, 9) for _ in range(n)] for _ in range(3))]:
            if any(way):
                point = [y + self.size * w for y, w in zip(self.centre, way, strict=True)]
                share = level / self.gauge(point) * Fraction(1023, 1024)
                yield [y + share * (x - y) for x, y in zip(point, self.centre, strict=True)]


def random_few(items: list[Any], most: int, rng: random.Random) -> list[Any]:
    return items if len(items) <= most else rng.sample(items, most)


def lead(state: State, label: int) -> Fraction | None:
    """By how much a class's logit leads; None without a rival."""
    rivals = [x for k, x in enumerate(state) if k != label]
    return state[label] - max(rivals) if rivals else None


def leads(state: State, label: int, margin: Fraction) -> bool:
    found = lead(state, label)
    return found is None or found >= margin


# ---- limits


def tail(step: Step, start: State, centre: State, size: Fraction) -> list[State]:
    """The last states of a run that is long enough for what the tests make."""
    state, seen = start, [start]
    small, large = size / 2**18, size * 2**12
    for _ in range(250):
        after = step(state)
        seen = [*seen[-7:], after]
        moved = max(abs(a - b) for a, b in zip(after, state, strict=True))
        gone = max(abs(a - b) for a, b in zip(after, centre, strict=True))
        state = after
        if moved <= small or gone > large:
            break
    return seen[-1:] if moved <= small else seen


class Goal:
    """Where trajectories are said to end: within a radius of Y, and perhaps all in one point."""

    def __init__(self, loop: Loop, radius: Fraction, one_point: bool) -> None:
        self.loop = loop
        self.radius = radius
        self.one_point = one_point
        self.met: State | None = None

    def check(self, start: State, step: Step, *words: Any) -> None:
        size = max(self.loop.size, self.loop.away(start))
        slack = size / 2**14
        last = tail(step, start, self.loop.centre, size)
        most = max(map(self.loop.away, last))
        demand(most <= self.radius + slack, *words, f"from {shown(start)}", f"to {shown(last[-1])}")
        if self.one_point:
            demand(len(last) == 1, *words, f"no limit from {shown(start)}")
            self.met = self.met or last[0]
            apart = max(abs(a - b) for a, b in zip(last[0], self.met, strict=True))
            demand(apart <= 4 * slack, *words, "two limits", shown(start))


def shown(state: State) -> list[float]:
    return [float(x) for x in state]


# ---- the sentence of a class

ATTRACTED = (
    rf"Every trajectory that starts (?:(anywhere in Rⁿ)|(in D)|in the set V < {NUMBER}) converges"
    rf" to (?:(Y)|the box of radius {NUMBER} around Y|one fixed point, which lies within {NUMBER}"
    r" of Y in the sup norm): (asymptotic|practical) stability\."
    rf"(?: From any state of D the hole is reached within (\d+) steps\.)?"
)
RECURRENT = (
    r"Every trajectory that starts in D reaches the hole around Y(?: within (\d+) steps)? and"
    r" returns to it whenever it leaves; no more is proved\."
)
SWITCHED = (
    r" From the states of D in which (?:(this class is chosen first, as its logit is the"
    rf" largest,)|this class's logit leads by at least {NUMBER}) the same holds if the controller"
    r" is chosen anew at every step\."
)
UNSWITCHED = (
    r" Vacuous with a controller chosen anew at every step: (?:(D is a single state)|there is no"
    r" state of D in which (?:(this class is chosen first, as its logit is the largest)|this"
    rf" class's logit leads by at least {NUMBER}))\."
)
NOTHING = r"Nothing follows: (a trajectory may leave D, or Y may be no|positivity and decrease).*\."
VACUOUS = (
    r"Vacuous: D holds no state but Y and those of the hole, so that nothing is said of any"
    r" trajectory\."
)


def check_class(loop: Loop, rng: random.Random) -> str:
    """The kind of sentence; raises Contradicted."""
    check_setting(loop)
    end = loop.entry["conclusion"]
    text = end["sentence"]
    if text.startswith("Nothing"):
        matched(NOTHING, text)
        demand(end["kind"] == "nothing" and not end["switched"], text)
        return "nothing"
    if text.startswith("Vacuous"):
        matched(VACUOUS, text)
        demand(end["kind"] == "nothing" and not end["switched"] and is_empty(loop), text)
        return "vacuous"
    demand(not is_empty(loop) or "anywhere" in text, "vacuous, and not called so", text)
    if " reaches the hole" in text:
        steps = matched(RECURRENT, text).group(1)
        demand(end["kind"] == "recurrent" and not end["switched"], text)
        check_entry(loop, steps, rng, text)
        return "recurrent"
    return check_attracted(loop, rng, text)


def check_attracted(loop: Loop, rng: random.Random, text: str) -> str:
    end = loop.entry["conclusion"]
    whole = matched(f"({ATTRACTED})((?:{SWITCHED}|{UNSWITCHED})?)", text)
    everywhere, in_box, level, at_centre, box, within, kind, steps = whole.groups()[1:9]
    radius = Fraction(0 if at_centre else box or within)
    demand(end["kind"] == kind and (kind == "practical") == (box is not None), text)
    # as a float, and in decimals, it is rounded up
    below = Fraction(math.nextafter(end["radius"], 0.0))
    demand(below <= radius <= Fraction(end["radius"]) * Fraction(102, 100), "radius", text)
    region = "everywhere" if everywhere else "D" if in_box else "sublevel"
    demand(end["region"] == region, text)
    goal = Goal(loop, radius, one_point=kind == "asymptotic")
    starts = list(loop.below(Fraction(level), rng)) if level else list(loop.states(rng))
    starts += list(loop.far(rng)) if everywhere else []
    for start in starts:
        goal.check(start, loop.step, text)
    if steps is not None:
        check_entry(loop, steps, rng, text)
    check_switched(loop, whole.group(10), goal, rng)
    return f"{kind}, {region}"


def check_entry(loop: Loop, steps: str | None, rng: random.Random, text: str) -> None:
    """Whether the hole is reached in time; without a number, at some time."""
    demand(loop.entry["conclusion"]["steps"] == (None if steps is None else int(steps)), text)
    demand(not is_empty(loop), "all of D lies in the hole", text)
    for start in loop.states(rng):
        state = start
        for _ in range(500 if steps is None else int(steps)):
            if loop.away(state) < loop.hole:
                break
            state = loop.step(state)
            demand(loop.away(state) <= 2**12 * loop.size, text, f"from {shown(start)}")
        demand(loop.away(state) < loop.hole, text, f"from {shown(start)}")


def is_empty(loop: Loop) -> bool:
    """Whether no state of D lies outside of the hole, other than Y itself."""
    corners = [list(corner) for corner in product(*zip(loop.low, loop.high, strict=True))]
    return all(loop.away(state) < loop.hole or state == loop.centre for state in corners)


def check_switched(loop: Loop, text: str, goal: Goal, rng: random.Random) -> None:
    demand(loop.entry["conclusion"]["switched"] == text.startswith(" From"), text)
    best = [
        high if k == loop.label else low
        for k, (low, high) in enumerate(zip(loop.low, loop.high, strict=True))
    ]
    if text.startswith(" Vacuous"):
        single, first, margin = matched(UNSWITCHED, text).groups()
        if single:
            demand(loop.low == loop.high, text)
        else:
            demand(not leads(best, loop.label, Fraction(0 if first else margin)), text)
    elif text:
        margin = matched(SWITCHED, text).group(2)
        least = Fraction(margin or 0)
        demand(leads(best, loop.label, least), "a state of no region is spoken of", text)
        for start in [best, *leading(loop, least, rng)]:
            goal.check(start, switched([loop], loop.label, text), text)


def leading(loop: Loop, margin: Fraction, rng: random.Random) -> Iterator[State]:
    """States of D in which a class leads by a margin, some of them just so."""
    for state in random_few(list(loop.states(rng)), 3, rng):
        if leads(state, loop.label, margin):
            yield state
        just = [
            x if k == loop.label else min(x, state[loop.label] - margin)
            for k, x in enumerate(state)
        ]
        if loop.holds(just):
            yield just


def switched(loops: list[Loop], first: int, text: str) -> Step:
    """One step of the controller that is chosen anew; `first`: the choice in the first step."""
    known = {loop.label: loop for loop in loops}
    begun = [False]

    def step(state: State) -> State:
        tops = [k for k, x in enumerate(state) if x == max(state)]
        choice = first if not begun[0] and first in tops else tops[0]
        demand(choice == first and (not begun[0] or len(tops) == 1), text, "the choice changes")
        begun[0] = True
        return known[choice].step(state)

    return step


# ---- the setting

SETTING = (
    rf"Y (=|≈) \(({SIGNED}(?:, {SIGNED})*)\); D (=|⊇) (\[.*\]); the hole is the box of radius"
    rf" (at most )?{NUMBER} around Y; δ is (at most )?{NUMBER}, and ‖C\(h\*\) − Y‖ is at most"
    rf" {NUMBER}\.( Positivity and decrease are vacuous: D holds no state but Y and those of the"
    r" hole\.)?"
)


def check_setting(loop: Loop) -> None:
    text = loop.entry["setting"]
    found = matched(SETTING, text).groups()
    same_place, places, same_box, box, above, hole, looser, delta, distance, vacuous = found
    centre = [Fraction(x) for x in places.split(", ")]
    pairs = list(zip(centre, loop.centre, strict=True))
    demand(same_place == "≈" or centre == loop.centre, "Y is another one", text)
    demand(all(abs(a - b) <= abs(b) / 10**5 for a, b in pairs), "Y is far off", text)
    sides = [re.fullmatch(rf"\[({SIGNED}), ({SIGNED})\]", side) for side in box.split(" × ")]
    ends = [(Fraction(side.group(1)), Fraction(side.group(2))) for side in sides if side]
    own = list(zip(loop.low, loop.high, strict=True))
    demand(len(ends) == len(own) and (same_box == "⊇" or ends == own), "D is another one", text)
    for (low, high), (a, b) in zip(ends, own, strict=True):
        demand(a <= low <= high <= b and 2 * (high - low) >= b - a, "D is not what it is", text)
    for about, stated, true in ((above, hole, loop.hole), (looser, delta, loop.delta)):
        less, most = (true, true * Fraction(102, 100)) if about else (true, true)
        demand(less <= Fraction(stated) <= most, "a number is not what it is", text)
    anchor = value(loop.head, numbers(loop.entry["anchor"]))
    square = sum((x - y) ** 2 for x, y in zip(anchor, loop.centre, strict=True))
    demand(square <= Fraction(distance) ** 2, "the distance is larger", text)
    demand(bool(vacuous) == is_empty(loop), "vacuous or not", text)


# ---- all classes together

TOGETHER = (
    r"Every state of (?:(D)|class ([\d, ]+) that lies in the D of its class(?: and leads by (?:at"
    rf" least {NUMBER}|(what its class's own sentence says)))?) flows to the equilibrium of its"
    rf" class, the one of its largest logit that is chosen first, to within {NUMBER} in the sup"
    r" norm, with the controller chosen anew at every step: the choice never changes\."
)
# what was once said of classes with different boxes
ONCE = (
    rf"Every state of D(?: that belongs to class ([\d, ]+))?(?: by a lead of {NUMBER})? flows to"
    rf" the equilibrium of its own class, that of its largest logit, to within {NUMBER} in the sup"
    r" norm, with the controller chosen anew at every step: the choice never changes\."
)
APART = (
    r"Nothing follows about a controller chosen anew at every step from the states of class"
    r" ([\d, ]+)\."
)


def check_together(together: Json, loops: list[Loop], rng: random.Random) -> str:
    text = together["sentence"]
    if text.startswith("Nothing"):
        matched(APART, text)
        demand(together["verdict"] != "proved" and not together["everywhere"], text)
        return "nothing together"
    demand(together["verdict"] == "proved", text)
    once = re.fullmatch(ONCE, text)
    if once:
        labels, margin, radius = once.groups()
        anywhere, own = True, None
    else:
        anywhere, labels, margin, own, radius = matched(TOGETHER, text).groups()
        demand(together["everywhere"] == bool(anywhere), text)
    every = [loop.label for loop in loops]
    classes = every if labels is None else [int(label) for label in labels.split(", ")]
    demand(set(classes) <= set(every), "a class that is not there", text)
    least = {loop.label: loop.margin if own else Fraction(margin or 0) for loop in loops}
    for loop in loops:
        for start in [*loop.states(rng), *leading(loop, least[loop.label], rng)]:
            for label in [k for k, x in enumerate(start) if x == max(start)]:
                # "D" is that of any class; the D of a state's class is one
                known = label in classes and leads(start, label, least[label])
                spoken = known or (anywhere and labels is None)
                if spoken and (anywhere or holder(loops, label).holds(start)):
                    flows(start, label, loops, Fraction(radius), text)
    return "together" if anywhere else "each in its D"


def holder(loops: list[Loop], label: int) -> Loop:
    return next(loop for loop in loops if loop.label == label)


def flows(start: State, label: int, loops: list[Loop], radius: Fraction, text: str) -> None:
    found = [loop for loop in loops if loop.label == label]
    demand(bool(found), text, f"{shown(start)} belongs to a class without a controller")
    Goal(found[0], radius, one_point=False).check(start, switched(loops, label, text), text)


# ---- message passing

PASSING = (
    r"On every graph, of any size, with any aggregation Ŝ ≥ 0 that does not expand some s > 0 \(Ŝs"
    r" ≤ s\), the loop through these layers, with controllers of class ([\d, ]+) (?:at any nodes,"
    r" mixed in (fixed shares ≥ 0 whose sum at a node is at most 1), and given features for the"
    r" rest|mixed in any fixed way at any nodes and given features at the others), has exactly one"
    r" equilibrium and reaches it from anywhere(?: in the limit)?: the norm max_v V\(y_v\)/s_v of"
    rf" the distance falls by the factor {NUMBER} or less in every step\."
)


def check_graph(content: Json, loops: list[Loop], rng: random.Random) -> str:
    """The distance of two trajectories on a small graph, step by step."""
    graph = content["graph"]
    if not graph["sentence"]:
        return "no graph"
    labels, shares, factor = matched(PASSING, graph["sentence"]).groups()
    gauge = numbers(graph["gauge"])
    nodes = rng.choice([1, 2, 3])
    scale = [Fraction(rng.choice([1, 2, 4])) for _ in range(nodes)]
    operator = aggregation(scale, rng)
    known = [holder(loops, int(label)) for label in labels.split(", ")]
    mix = [mixed(len(known), bool(shares), rng) for _ in range(nodes)]
    layers = [
        [(one["power"], layers_of([[{**one, "bias": None}]])) for one in layer]
        for layer in graph["layers"]
    ]

    def step(states: list[State]) -> list[State]:
        features = []
        for state, parts in zip(states, mix, strict=True):
            outputs = [value(loop.controller, state) for loop in known]
            columns = zip(*outputs, strict=True)
            features.append([dot(parts, column) for column in columns])
        return passed(features, layers, operator)

    def norm(pair: tuple[list[State], list[State]]) -> Fraction:
        return max(
            sum(g * abs(a - b) for g, a, b in zip(gauge, *both, strict=True)) / s
            for *both, s in zip(*pair, scale, strict=True)
        )

    pair = tuple(
        [[Fraction(rng.randrange(-64, 65), 16) for _ in gauge] for _ in range(nodes)]
        for _ in range(2)
    )
    for _ in range(3):
        before, pair = norm(pair), (step(pair[0]), step(pair[1]))
        demand(norm(pair) <= Fraction(factor) * before, graph["sentence"], mix)
    return "message passing"


def dot(left: Sequence[Fraction], right: Sequence[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(left, right, strict=True)), Fraction(0))


def aggregation(scale: State, rng: random.Random) -> list[State]:
    """Ŝ ≥ 0 with Ŝs ≤ s."""
    rows = []
    for own in scale:
        row = [Fraction(rng.randrange(4)) for _ in scale]
        total = sum(w * s for w, s in zip(row, scale, strict=True))
        rows.append([w * own / total if total else w for w in row])
    return rows


def mixed(count: int, is_bounded: bool, rng: random.Random) -> State:
    """Shares of controllers at a node; without bounds, any numbers."""
    if not is_bounded:
        return [Fraction(rng.randrange(-12, 13), 2) for _ in range(count)]
    shares = [Fraction(rng.randrange(9), 8) for _ in range(count)]
    return [share / max(sum(shares), 1) for share in shares]


def passed(rows: list[State], layers: list[Any], operator: list[State]) -> list[State]:
    """Σ_p Ŝᵖ·H·W_pᵀ, layer by layer."""
    for k, layer in enumerate(layers):
        rows = [[max(x, Fraction(0)) for x in row] for row in rows] if k else rows
        total: list[State] = []
        for power, weight in layer:
            sent = rows
            for _ in range(power):
                columns = list(zip(*sent, strict=True))
                sent = [[dot(line, column) for column in columns] for line in operator]
            found = [value(weight, row) for row in sent]
            pairs = zip(total, found, strict=True)
            total = [[a + b for a, b in zip(*p, strict=True)] for p in pairs] if total else found
        rows = total
    return rows


# ---- a whole certificate


def check_sentences(content: Json, rng: random.Random) -> list[str]:
    """The kinds of sentences that were tried on states; raises Contradicted."""
    loops = [Loop(entry, content["head"]) for entry in content["classes"]]
    kinds = [check_class(loop, rng) for loop in loops]
    kinds.append(check_together(content["together"], loops, rng))
    if "sentence" in content.get("graph", {}):
        kinds.append(check_graph(content, loops, rng))
    return kinds
