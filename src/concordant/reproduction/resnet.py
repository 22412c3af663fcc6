"""ResNet-34 for images of 32 × 32 pixels, with one score as its output (needs the extra torch)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["Block", "ResNet"]

STAGES = (3, 4, 6, 3)
"""Blocks of ResNet-34 at each resolution."""
WIDTH = 64


class Block(nn.Module):  # type: ignore[misc]
    """Two 3 × 3 convolutions, added to the input (projected by 1 × 1 where the shape changes)."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(outside)
        self.second = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(outside)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inside != outside:
            self.shortcut = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x: Tensor) -> Tensor:
        """Return the features (images, outside, height / stride, width / stride)."""
        y = torch.relu(self.first_norm(self.first(x)))
        return torch.relu(self.second_norm(self.second(y)) + self.shortcut(x))


class ResNet(nn.Module):  # type: ignore[misc]
    """Images (n, 3, height, width) → scores (n,): 3 × 3 stem without pooling, four stages, global mean, linear.

    With the default stages and width it has the layers of ResNet-34 (He et al., 2016) in the form usual for CIFAR.
    ``width`` and ``stages`` make smaller ones of the same kind. Starts from torch's generator.
    """

    def __init__(self, width: int = WIDTH, stages: tuple[int, ...] = STAGES) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, 1, 1, bias=False)
        self.stem_norm = nn.BatchNorm2d(width)
        blocks, inside = [], width
        for stage, number in enumerate(stages):
            outside = width << stage
            for place in range(number):
                blocks.append(Block(inside, outside, 2 if stage and not place else 1))
                inside = outside
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(inside, 1)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        """Return one score for each image."""
        y = self.blocks(torch.relu(self.stem_norm(self.stem(x))))
        return self.head(y.mean(dim=(2, 3))).squeeze(1)
