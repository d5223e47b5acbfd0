# %% [markdown]
# A PyG model that was trained elsewhere is handed over together with its `Data`. Nothing of it is
# changed: graphkeel writes new features, and the same weights are asked again.

# %%
import torch
from torch_geometric.nn import GCN

import graphkeel as gk
from graphkeel.graph import load

# %% [markdown]
# ## What a user brings along
#
# A graph with masks, and a model trained on it without graphkeel. The graph here is scikit-learn's
# handwritten digits, joined to their nearest neighbours; its training nodes are biased, twenty
# close neighbours of one node in each class.

# %%
data = load("digits", seed=0).to_data()
torch.manual_seed(0)
model = GCN(data.num_features, hidden_channels=16, num_layers=2, out_channels=10)
optimiser = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
for _ in range(100):
    optimiser.zero_grad()
    scores = model(data.x, data.edge_index)
    torch.nn.functional.cross_entropy(scores[data.train_mask], data.y[data.train_mask]).backward()
    optimiser.step()


def accuracy(predicted: torch.Tensor) -> float:
    """Percent of the test nodes, whose labels graphkeel never sees."""
    return 100 * float((predicted == data.y)[data.test_mask].float().mean())


print(f"untouched: {accuracy(model.eval()(data.x, data.edge_index).argmax(1)):.1f} %")

# %% [markdown]
# ## What graphkeel adds
#
# `fit` uses the labels of `train_mask` and `val_mask` and erases every other label first. What it
# decides is judged on labels that had no part in it; `guard_` says whether it is kept, and why.

# %%
rec = gk.Reconstructor(model, seed=0).fit(data)
print(rec.guard_.reason)
print(f"reconstructed: {accuracy(rec.predict(data)):.1f} %, same weights")

# %% [markdown]
# `transform` gives the features themselves, in a copy of the data; the model's own call then needs
# no graphkeel at all.

# %%
changed = rec.transform(data)
assert torch.equal(model(changed.x, changed.edge_index).argmax(1), rec.predict(data))
assert not torch.equal(changed.x, data.x)

# %% [markdown]
# ## A page about it
#
# What was decided and why, what changed and for which nodes, in one HTML file that loads nothing.
# Test labels are looked at here alone, to score.

# %%
rec.report("report.html", data)

# %% [markdown]
# ## Which labels next
#
# A person labels the nodes that `suggest` names; `feedback` takes them in, without retraining.

# %%
nodes = rec.suggest(20)
rec.feedback(nodes, data.y[nodes])
print(f"with {len(nodes)} more labels: {accuracy(rec.predict(data)):.1f} %")

# %% [markdown]
# ## Keeping it
#
# `save` writes safetensors and JSON. The model is yours to keep; hand it over again to predict.

# %%
rec.save("reconstruction")
again = gk.load("reconstruction", model=model)
assert torch.equal(again.predict(data), rec.predict(data))
