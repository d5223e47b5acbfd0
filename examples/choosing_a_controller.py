# %% [markdown]
# Five controllers find the class anchors: features that the frozen head answers with a wanted
# class. This page compares what they reach, and what difference that makes to the predictions. For
# a linear head the second answer is: none.

# %%
import torch

import graphkeel as gk
from graphkeel.control import CLASSICAL, MFAC
from graphkeel.graph import load
from graphkeel.models import extract_head, train_model

task = load("digits", seed=0)
data = task.to_data()
model = train_model("sgc", task, seed=0)
head = extract_head(model, task.n_features)
print(f"head: R^{head.n_in} to R^{head.n_out}, affine: {head.affine}")

# %% [markdown]
# ## How near they come
#
# The target is Y = e₃, the one-hot vector of class 3. The residual ‖C(h*) − Y‖₂ is measured at the
# float32 feature that would be shipped.

# %%
target = torch.eye(task.n_classes, dtype=torch.float64)[3]
controllers = {name: make() for name, make in CLASSICAL.items()} | {
    "mfac, blind start": MFAC(initial="blind")
}
for name, controller in controllers.items():
    reached = controller.regulate(head, target)
    print(f"{name:18s} residual {reached.residual:8.1e} after {reached.steps:3d} steps")

# %% [markdown]
# `deadbeat` solves the equation in closed form. The others come near step by step; MFAC depends on
# its first guess of the Jacobian, and a blind one leads it astray.
#
# ## What it means for predictions
#
# SGC answers a replaced feature only through C(h*), so controllers that reach the same C(h*) give
# the same predictions.


# %%
def accuracy(rec: gk.Reconstructor) -> float:
    return 100 * float((rec.predict(data) == data.y)[data.test_mask].float().mean())


found = {}
for name in ("deadbeat", "lqr", "pid"):
    rec = gk.Reconstructor(model, controller=name, seed=0).fit(data)
    found[name] = rec.predict(data)
    print(f"{name:10s} {accuracy(rec):.1f} %")
assert torch.equal(found["deadbeat"], found["lqr"]) and torch.equal(found["deadbeat"], found["pid"])

# %% [markdown]
# ## The neural controller
#
# `neural` trains a controller with a Lyapunov function per class and proves it, so it is the one to
# take when a certificate is wanted. Its anchors are those of the closed form: here too the
# predictions are the same.

# %%
rec = gk.Reconstructor(model, controller="neural", seed=0).fit(data)
verdicts = [entry["verdict"] for entry in rec.certificate_["classes"]]
proved = verdicts.count("proved")
print(f"neural     {accuracy(rec):.1f} %; {proved} of {len(verdicts)} classes proved")
