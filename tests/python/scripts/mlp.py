"""A multi-layer perceptron that tells three arms of a spiral apart. A plain PyTorch script.

    python mlp.py weights.npz

Prints the mean loss of each epoch, and at last the accuracy.
"""

import sys

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def spiral(points_per_arm):
    angles = np.linspace(0.5, 4.5, points_per_arm)
    points, labels = [], []
    for arm in range(3):
        turned = angles + arm * 2 * np.pi / 3
        points.append(np.stack([angles * np.cos(turned), angles * np.sin(turned)], axis=1) / 4)
        labels.append(np.full(points_per_arm, arm))
    order = np.arange(3 * points_per_arm).reshape(3, -1).T.reshape(-1)  # arms take turns
    return np.concatenate(points)[order], np.concatenate(labels)[order]


points, labels = spiral(64)
x = torch.tensor(points, dtype=torch.float32)
y = torch.tensor(labels, dtype=torch.int64)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=False)

model = nn.Sequential(
    nn.Linear(2, 32),
    nn.Tanh(),
    nn.Linear(32, 32),
    nn.ReLU(),
    nn.Linear(32, 3),
)
with np.load(sys.argv[1]) as archive:
    weights = dict(archive)
model.load_state_dict({name: torch.tensor(weights[name]) for name in weights})

criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

model.train()
for _ in range(12):
    total = 0.0
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
        total += loss.item() * inputs.size(0)
    print(f"{total / len(x):.9f}")

model.eval()
with torch.no_grad():
    predicted = model(x).argmax(dim=1)
    print(f"{(predicted == y).float().mean().item():.9f}")
