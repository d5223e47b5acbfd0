# %% [markdown]
# graphkeel may say no. A model that tells malignant from benign tumours is already good, and
# whoever runs it wants strong evidence before its inputs are touched. The data is the Wisconsin
# breast cancer study that scikit-learn ships; patients are joined to those with similar
# measurements.

# %%
import numpy as np
import torch
from sklearn.datasets import load_breast_cancer
from sklearn.neighbors import kneighbors_graph
from sklearn.preprocessing import StandardScaler
from torch_geometric.data import Data

import graphkeel as gk

study = load_breast_cancer()
measured = StandardScaler().fit_transform(study.data)
near = kneighbors_graph(measured, 6)
edges = torch.from_numpy(np.stack((near + near.T).nonzero())).long()
order = torch.randperm(len(measured), generator=torch.Generator().manual_seed(2))
part = torch.empty(len(order), dtype=torch.long)
part[order] = torch.arange(len(order))
data = Data(
    x=torch.from_numpy(measured).float(),
    edge_index=edges,
    y=torch.from_numpy(study.target).long(),
    train_mask=part < 250,
    val_mask=(part >= 250) & (part < 350),
)

# %% [markdown]
# ## A model with little left to gain
#
# A small perceptron that reads the measurements and never looks at the graph.


# %%
class Diagnosis(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.hidden = torch.nn.Linear(data.num_features, 16)
        self.answer = torch.nn.Linear(16, 2)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return self.answer(self.hidden(x).relu())


torch.manual_seed(2)
model = Diagnosis()
optimiser = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
for _ in range(200):
    optimiser.zero_grad()
    scores = model(data.x, data.edge_index)
    torch.nn.functional.cross_entropy(scores[data.train_mask], data.y[data.train_mask]).backward()
    optimiser.step()
untouched = model.eval()(data.x, data.edge_index).argmax(1)
rest = part >= 350
print(f"untouched: {100 * float((untouched == data.y)[rest].float().mean()):.1f} %")

# %% [markdown]
# ## Ask for strong evidence
#
# `risk` is the probability of harm up to which a change is kept. A small one asks for clear
# evidence on labels that had no part in the decision. There is none, so nothing is changed.

# %%
rec = gk.Reconstructor(model, risk=0.05, seed=0).fit(data)
print(rec.guard_.reason)
assert not rec.guard_.kept

# %% [markdown]
# Nothing means nothing: features and predictions are those of before, to the last bit.

# %%
assert torch.equal(rec.transform(data).x, data.x)
assert torch.equal(rec.predict(data), untouched)
print(f"largest change of a feature: {float(rec.change_.max())}")

# %% [markdown]
# ## What the refusal tells
#
# How many labels only one side had right, and what can be said of the patients that are predicted,
# with its interval. Where the interval of the gain holds zero, the honest answer is: leave it.

# %%
said = rec.guard_
print(f"{said.n_labels} labels judged: {said.wins} won, {said.losses} lost")
print(f"probability of harm: {said.harm:.2f}")
print(f"accuracy {said.statement.accuracy_low:.0f} to {said.statement.accuracy_high:.0f} %")
assert said.harm > rec.risk

# %% [markdown]
# A refusal is not the end. `suggest` names the patients whose diagnosis would help most; when these
# labels have arrived, `feedback` decides and tests anew.

# %%
print(rec.suggest(5).tolist())
