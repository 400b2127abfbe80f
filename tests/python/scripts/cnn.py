"""A convolutional network that tells the direction of stripes. A plain PyTorch script.

    python cnn.py weights.npz

Prints the loss of each step, and at last loss and accuracy in evaluation mode.
"""

import sys

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class StripeNet(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, kernel_size=3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, kernel_size=3)
        self.fc = nn.Linear(16 * 2 * 2, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv1(x))), 2)
        x = F.avg_pool2d(F.relu(self.conv2(x)), 2)
        x = x.view(x.size(0), -1)
        return self.fc(x)


def stripes(count, size=12):
    generator = np.random.RandomState(7)
    rows, columns = np.mgrid[0:size, 0:size]
    directions = [rows, columns, rows + columns, rows - columns]
    labels = np.arange(count) % 4
    images = np.stack([np.sin(0.9 * directions[label]) for label in labels])
    return images + 0.3 * generator.randn(count, size, size), labels


images, labels = stripes(96)
x = torch.tensor(images, dtype=torch.float32).unsqueeze(1)
y = torch.tensor(labels, dtype=torch.int64)

model = StripeNet()
with np.load(sys.argv[1]) as archive:
    weights = dict(archive)
missing, unexpected = model.load_state_dict(
    {name: torch.tensor(weights[name]) for name in weights}, strict=False
)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

model.train()
for _ in range(3):
    for start in range(0, len(x), 24):
        inputs, targets = x[start : start + 24], y[start : start + 24]
        loss = F.cross_entropy(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"{loss.item():.9f}")

model.eval()
with torch.no_grad():
    logits = model(x)
    print(f"{F.cross_entropy(logits, y).item():.9f}")
    print(f"{(logits.argmax(1) == y).sum().item() / len(y):.9f}")
