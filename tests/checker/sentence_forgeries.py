"""False words around true proofs, and false loops among several classes with boxes of their own.

Each starts from a random certificate that is accepted. Words, flags and numbers that are derived
are changed in one place, so that they are no longer what follows; or a number of one loop, so that
a state refutes what is called proved (forgeries.py), and everything is derived anew."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

from forgeries import Forgery, false_loop
from hand_loops import Hand, Json, sealed_bytes
from random_certificates import certified, random_loops

Place = tuple[Json, str]
OLD = (
    " flows to the equilibrium of its own class, that of its largest logit, to within 0 in the sup"
    " norm, with the controller chosen anew at every step: the choice never changes."
)


def texts(content: Json) -> list[Place]:
    """Every derived sentence."""
    found = [(content["together"], "sentence")]
    for entry in content["classes"]:
        found += [(entry, "setting"), (entry["conclusion"], "sentence")]
    return [*found, (content["graph"], "sentence")] if "graph" in content else found


def other_number(content: Json, rng: random.Random) -> str | None:
    """A number of a sentence is smaller, larger, or without its sign."""
    holder, name = rng.choice(texts(content))
    places = list(re.finditer(r"-?\d[\d.]*(?:e[-+]?\d+)?\b", holder[name]))
    if not places:
        return None
    place = rng.choice(places)
    old = float(place.group())
    new = rng.choice([old / 2, old * 2, -old, old + 1, old - 1, 0.0, math.nextafter(old, 9e99)])
    text = f"{new:g}" if new != math.nextafter(old, 9e99) else repr(new)
    holder[name] = holder[name][: place.start()] + text + holder[name][place.end() :]
    return "number in a sentence"


def word_left_out(content: Json, rng: random.Random) -> str:
    holder, name = rng.choice(texts(content))
    words = holder[name].split(" ")
    words.pop(rng.randrange(len(words)))
    holder[name] = " ".join(words)
    return "word left out"


def sentence_cut(content: Json, rng: random.Random) -> str | None:
    """A remark, such as that something is vacuous, is not said, or said first."""
    holder, name = rng.choice(texts(content))
    parts = holder[name].split(". ")
    if len(parts) < 2:
        return None
    parts.insert(0, parts.pop()) if rng.random() < 0.3 else parts.pop(rng.randrange(len(parts)))
    holder[name] = ". ".join(parts)
    return "sentence left out"


def stronger(content: Json, rng: random.Random) -> str | None:
    """Words that claim more."""
    changes = [
        ("in D converges", "anywhere in Rⁿ converges"),
        ("practical stability", "asymptotic stability"),
        ("⊇", "="),
        ("≈", "="),
        ("at most ", ""),
        ("leads by at least", "leads, even if not by"),
        (" that lies in the D of its class", ""),
        ("mixed in fixed shares ≥ 0 whose sum at a node is at most 1", "mixed in any way"),
        ("Vacuous: ", ""),
        ("Nothing follows", "Everything follows"),
        ("is chosen first, as its logit is the largest,", "is asked for"),
    ]
    holder, name = rng.choice(texts(content))
    found = [change for change in changes if change[0] in holder[name]]
    if not found:
        return None
    old, new = rng.choice(found)
    holder[name] = holder[name].replace(old, new)
    return "stronger words"


def one_box(content: Json, rng: random.Random) -> str | None:
    """A former sentence about classes with different boxes, and about all states."""
    together = content["together"]
    labels = ", ".join(str(entry["class"]) for entry in content["classes"])
    old = together["sentence"]
    states = rng.choice(["Every state of D", f"Every state of D that belongs to class {labels}"])
    new = re.sub(r"Every state of .* flows", f"{states} flows", old)
    together["sentence"] = new if new != old else states + OLD
    together |= {"everywhere": rng.random() < 0.5, "verdict": "proved"}
    return "one D for all"


def flag(content: Json, rng: random.Random) -> str | None:
    places: list[Place] = [(content["together"], name) for name in ("everywhere", "verdict")]
    for entry in content["classes"]:
        places += [(entry, "verdict")]
        places += [(entry["conclusion"], name) for name in ("kind", "region", "switched")]
        places += [(entry["conditions"]["hole"], name) for name in ("kind", "fixed_point")]
    holder, name = rng.choice(places)
    old = holder[name]
    words = ["proved", "asymptotic", "everywhere", "D", "contraction", "homogeneous", ""]
    options: list[Any] = [not old, int(old)] if isinstance(old, bool) else words
    holder[name] = rng.choice(options)
    return "flag" if repr(holder[name]) != repr(old) else None


def measure(content: Json, rng: random.Random) -> str | None:
    """Radius, steps, factor and distances, an ulp or any amount away."""
    places: list[Place] = []
    for entry in content["classes"]:
        places += [(entry["conclusion"], name) for name in ("radius", "steps")]
        places += [(entry["conditions"]["hole"], name) for name in ("radius", "factor")]
        answer = entry["conditions"]["representative"]
        places += [(answer, name) for name in ("distance", "anchor_gap")]
    holder, name = rng.choice(places)
    old = holder[name]
    if old is None:
        holder[name] = rng.choice([0.0, 0, 1, 1.0])
    elif isinstance(old, int):
        holder[name] = rng.choice([old - 1, old + 1, float(old), None])
    else:
        holder[name] = rng.choice([math.nextafter(old, -1.0), math.nextafter(old, 9e99), old / 3])
    return "measure" if repr(holder[name]) != repr(old) else None


def exchanged(content: Json, rng: random.Random) -> str | None:
    """Two classes exchange what is said of them, or one of them is left out."""
    entries = content["classes"]
    if len(entries) < 2:
        return None
    one, other = rng.sample(entries, 2)
    name = rng.choice(["setting", "conclusion", "verdict", "problem", "class", "anchor", "none"])
    if name == "none":
        entries.remove(one)
        return None if content["together"]["verdict"] != "proved" else "class left out"
    if one[name] == other[name]:
        return None
    one[name], other[name] = other[name], one[name]
    return "classes exchanged"


LIES: tuple[Callable[[Json, random.Random], str | None], ...] = (
    other_number,
    word_left_out,
    sentence_cut,
    stronger,
    one_box,
    flag,
    measure,
    exchanged,
)


def sentence_forgeries(seed: int, count: int) -> Iterator[Forgery]:
    """So many, the same ones for the same seed; several from each random certificate."""
    rng = random.Random(seed)
    made = 0
    while made < count:
        loops = random_loops(rng)
        for found in some(rng, loops):
            if made < count:
                made += 1
                yield found


def some(rng: random.Random, loops: list[Hand]) -> Iterator[Forgery]:
    true = certified(rng, loops)
    raw = sealed_bytes(true)
    for _ in range(6):
        content = copy_of(true)
        lie = rng.choice(LIES)(content, rng)
        if lie is not None and sealed_bytes(content) != raw:
            yield Forgery(lie, "words of random classes", sealed_bytes(content))
    for _ in range(4):
        try:
            found = false_loop(rng, "random classes", loops)
        except (ArithmeticError, ValueError):
            continue
        if found is not None:
            yield found


def copy_of(content: Json) -> Json:
    copied: Json = json.loads(json.dumps(content))
    return copied
