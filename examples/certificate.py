# %% [markdown]
# A certificate is a file that says what was proved about the class controllers of a frozen model,
# with proofs that anyone can check. This page makes one, checks it, tries to cheat, and then
# decides a closed loop of its own.

# %%
from dataclasses import replace

from graphkeel.certificate import check_certificate, read_certificate, sealed, write_certificate
from graphkeel.cli.main import main as keel
from graphkeel.verify import Network, Problem, verify, write_problem

# %% [markdown]
# ## Certify
#
# `keel certify` trains a model on the digits, freezes it, and trains a controller with a Lyapunov
# function for every class. Exit code 0 means that all of them are proved.

# %%
code = keel(["certify", "--dataset", "digits", "--out", "run"])
assert code == 0

# %% [markdown]
# ## Check
#
# The check shares no code with the engine that found the proofs, and needs neither torch nor a
# solver. It forms the closed loop again from the shipped weights, proves every leaf again and
# derives the conclusion itself.

# %%
result = check_certificate("run/certificate.json")
print(f"accepted: {result.accepted}; {result.reason}")
print(result.classes[0]["sentence"])
assert result.accepted

# %% [markdown]
# The file also says what it does *not* cover.

# %%
content = read_certificate("run/certificate.json")
for line in content["not_covered"]:
    print("-", line)

# %% [markdown]
# ## Cheat
#
# Claim that class 3 converges to Y itself, and seal the file anew so that its hash matches: the
# hash guards against accidents, not against liars. The claim is derived again, so it is found out.

# %%
content["classes"][3]["conclusion"]["radius"] = 0.0
del content["sha256"]
write_certificate(sealed(content), "forged.json")
forged = check_certificate("forged.json")
print(f"accepted: {forged.accepted}; {forged.reason}")
assert not forged.accepted

# %% [markdown]
# ## A closed loop of your own
#
# Verification knows nothing of graphs. A problem is two ReLU networks and a box: here a loop that
# halves the distance to (1, 0), and V(y) = |y₁ − 1| + |y₂|.

# %%
axes = [[1, 0], [-1, 0], [0, 1], [0, -1]]
halving = Problem(
    closed_loop=Network.of((axes, [-1, 1, 0, 0]), ([[0.5, -0.5, 0, 0], [0, 0, 0.5, -0.5]], [1, 0])),
    lyapunov=Network.of((axes, [-1, 1, 0, 0]), ([[1, 1, 1, 1]], [0])),
    lower=[0, -1],
    upper=[2, 1],
    equilibrium=[1, 0],
    hole_radius=0.0625,
    rho=0.75,
    positivity=0.5,
)
report = verify(halving)
print(
    report.verdict.value, [f"{answer.condition} by {answer.engine}" for answer in report.conditions]
)
assert report.verdict.value == "proved"

# %% [markdown]
# The same loop cannot satisfy V(F(y)) ≤ V(y)/4. The answer is a state that violates it, confirmed
# in exact rationals.

# %%
too_much = verify(replace(halving, rho=0.25))
state = too_much.counterexample
after, before = (float(halving.lyapunov(y)[0]) for y in (halving.closed_loop(state), state))
print(f"{too_much.verdict.value} at {state}: V falls from {before:.3f} to {after:.3f}")
assert too_much.verdict.value == "refuted" and after > 0.25 * before

# %% [markdown]
# As a file the problem can be decided on the command line, `keel verify halving.json`, or be handed
# to other tools, `keel export halving.json --out files/`.

# %%
write_problem(halving, "halving.json")
assert keel(["verify", "halving.json", "--engine", "branch"]) == 0
