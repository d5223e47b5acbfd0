"""A PyG model trained elsewhere, handed over with its `Data`: better predictions from the same weights."""

import torch
from torch_geometric.nn import GCN

import graphkeel as gk
from graphkeel.data import load

# What a user brings along: a graph with masks, and a model trained on it without graphkeel.
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
    return 100 * float((predicted == data.y)[data.test_mask].float().mean())


# What graphkeel adds.
rec = gk.Reconstructor(model, seed=0).fit(data)
print(rec.guard_.reason)
print(f"test accuracy: {accuracy(model.eval()(data.x, data.edge_index).argmax(1)):.1f} % untouched")
print(f"               {accuracy(rec.predict(data)):.1f} % with reconstructed features, same weights")
fresh = data.val_mask.nonzero().flatten()[::2]  # labels that arrive later
rec.feedback(fresh, data.y[fresh])
print(f"               {accuracy(rec.predict(data)):.1f} % after {len(fresh)} labels were fed back")
