# %% [markdown]
# A model was trained on one graph and meets another: later images of handwritten digits, from a
# scanner whose picture is a little off. Nothing is labelled there. Now the frozen model is the
# knowledge; graph and features only help to read its answers.

# %%
import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.neighbors import kneighbors_graph
from torch_geometric.data import Data
from torch_geometric.nn import GCN

import graphkeel as gk


def as_graph(images: np.ndarray, classes: np.ndarray) -> Data:
    """Each image joined to its six nearest neighbours."""
    pixels = images.reshape(len(images), -1) / 16
    near = kneighbors_graph(pixels, 6)
    row, column = (near + near.T).nonzero()
    edges = torch.from_numpy(np.stack([row, column])).long()
    return Data(
        x=torch.from_numpy(pixels).float(), edge_index=edges, y=torch.from_numpy(classes).long()
    )


# %% [markdown]
# ## The graph of today
#
# Half of the images, most of them labelled: a model is trained on them without graphkeel, and
# frozen.

# %%
digits = load_digits()
half = len(digits.target) // 2
source = as_graph(digits.images[:half], digits.target[:half])
source.train_mask = torch.arange(half) < 600
source.val_mask = ~source.train_mask

torch.manual_seed(0)
model = GCN(64, hidden_channels=16, num_layers=2, out_channels=10)
optimiser = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
for _ in range(200):
    optimiser.zero_grad()
    scores = model(source.x, source.edge_index)
    known = source.train_mask
    torch.nn.functional.cross_entropy(scores[known], source.y[known]).backward()
    optimiser.step()
model.eval()

# %% [markdown]
# ## The graph of tomorrow
#
# The other half, through a scanner that shifts every image by a row and fades it. The model has
# never seen such images, and nobody has labelled one.

# %%
faded = np.roll(digits.images[half:], 1, axis=1) * 0.7
target = as_graph(faded, digits.target[half:])


def accuracy(predicted: torch.Tensor) -> float:
    """Percent of the target's nodes; its labels are used for nothing else on this page."""
    return 100 * float((predicted == target.y).float().mean())


untouched = model(target.x, target.edge_index).argmax(1)
print(f"untouched: {accuracy(untouched):.1f} %")

# %% [markdown]
# ## Adapt, without a label
#
# `adapt` looks at `x` and `edge_index` of the target only. No label judges, so nothing is tested,
# and the sentence says so. `guard_.expected` is a guess from how sure the answers are, no
# measurement.

# %%
rec = gk.Reconstructor(model, seed=0).fit(source)
out = rec.adapt(target)
print(out.guard_.reason)
print(f"expected: {out.guard_.expected:.0f} %")
print(f"adapted: {accuracy(out.predict(target)):.1f} %, same weights")
assert accuracy(out.predict(target)) > accuracy(untouched)

# %% [markdown]
# ## With twenty labels
#
# A person labels the twenty nodes that `suggest` names. Now labels judge, and there is a statement.

# %%
nodes = out.suggest(20)
out.feedback(nodes, target.y[nodes])
print(out.guard_.reason)
print(f"with {len(nodes)} labels: {accuracy(out.predict(target)):.1f} %")

# %% [markdown]
# What the answers rest on. Self-training starts from the model's own answers, so most of this is
# the model, read with the help of the graph.

# %%
for found in out.evidence_[:5]:
    print(f"{100 * found.share:3.0f} % {found.kind}: {found.name}")
