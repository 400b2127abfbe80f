"""A regression with a module of its own and a learning-rate schedule. A plain PyTorch script.

    python regression.py weights.npz

Fits a sum of waves whose frequencies are learned too. Prints the loss of each step.
"""

import math
import sys

import numpy as np
import torch
from torch import nn, optim


class Waves(nn.Module):
    """y = sum over waves of amplitude * sin(frequency * x + phase), and a learned offset."""

    def __init__(self, waves):
        super().__init__()
        self.frequency = nn.Parameter(torch.ones(waves))
        self.phase = nn.Parameter(torch.zeros(waves))
        self.mix = nn.Linear(waves, 1, bias=False)
        self.offset = nn.Parameter(torch.zeros(1))
        self.register_buffer("scale", torch.tensor(math.pi))

    def forward(self, x):
        angles = x.unsqueeze(-1) * self.frequency * self.scale + self.phase
        return self.mix(torch.sin(angles)).squeeze(-1) + self.offset


positions = np.linspace(-1, 1, 128)
x = torch.tensor(positions, dtype=torch.float32)
y = torch.tensor(np.sin(5 * positions) + 0.5 * np.cos(9 * positions), dtype=torch.float32)

model = Waves(12)
with np.load(sys.argv[1]) as archive:
    weights = dict(archive)
state = model.state_dict()
state.update({name: torch.tensor(weights[name]) for name in weights})
model.load_state_dict(state)

criterion = nn.MSELoss()
optimizer = optim.AdamW(
    [
        {"params": [model.frequency, model.phase], "lr": 0.02},
        {"params": [model.mix.weight, model.offset]},
    ],
    lr=0.05,
    weight_decay=1e-3,
)
scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=40)

for _ in range(40):
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
    optimizer.step()
    scheduler.step()
    print(f"{loss.item():.9f}")
