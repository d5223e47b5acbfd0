# %% [markdown]
# Labels arrive after the model was frozen. They improve the predictions at once, without
# retraining: new labels change the features, never the weights.

# %%
import torch

import graphkeel as gk
from graphkeel.graph import load
from graphkeel.models import train_model

task = load("digits", seed=0)
data = task.to_data()
model = train_model("sgc", task, seed=0)
rec = gk.Reconstructor(model, seed=0).fit(data)

# %% [markdown]
# ## Labels arriving in batches
#
# 200 test nodes are labelled one after another. They leave the test set first, so that all
# accuracies below are measured on the same nodes, none of whose labels is ever used.

# %%
test = data.test_mask.nonzero().flatten()
shuffled = test[torch.randperm(len(test), generator=torch.Generator().manual_seed(0))]
arriving, measured = shuffled[:200], shuffled[200:]


def accuracy() -> float:
    return 100 * float((rec.predict(data)[measured] == data.y[measured]).float().mean())


weights_before = {name: weight.clone() for name, weight in model.state_dict().items()}
print(f"{len(rec.labels_):3d} labels: {accuracy():.1f} %")
for nodes in arriving.split(50):
    rec.feedback(nodes, data.y[nodes])
    print(f"{len(rec.labels_):3d} labels: {accuracy():.1f} %")
assert all(torch.equal(weight, weights_before[name]) for name, weight in model.state_dict().items())

# %% [markdown]
# More labels help, but not every batch does: the guard judges on 300 labels, and its choice may
# change.
#
# ## The guard looks again each time
#
# Every call decides anew. Labels that the model was not trained on serve and judge, by
# cross-fitting: each one is judged by an answer that was decided from the others.

# %%
held_back = data.val_mask.nonzero().flatten()
half = held_back[::2]
rec.feedback(half, data.y[half])
print(f"judged on {rec.guard_.n_labels} labels: {rec.guard_.reason}")
assert rec.guard_.n_labels >= len(held_back)

# %% [markdown]
# `reset` forgets all feedback.

# %%
rec.reset()
assert len(rec.labels_) == int((data.train_mask | data.val_mask).sum())
