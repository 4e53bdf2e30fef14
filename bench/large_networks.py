"""Networks of the size of ViT-B/16 and ResNet-50, of random weights, for a thousand classes."""

from __future__ import annotations

import torch
from torch import nn

CLASSES = 1000


class Attention(nn.Module):
    """A block of ViT-B on images of features.  [n, 768, h, w] -> the same"""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(768, 12, 3072, activation="gelu", norm_first=True)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        patches = images.flatten(2).permute(2, 0, 1)  # [h w, n, 768]
        found: torch.Tensor = self.layer(patches)
        return found.permute(1, 2, 0).reshape(images.shape)


def vit() -> nn.Module:
    torch.backends.mha.set_fastpath_enabled(False)  # ONNX does not know it
    return nn.Sequential(nn.Conv2d(3, 768, 16, 16), *(Attention() for _ in range(12)), *ending(768))


def resnet() -> nn.Module:
    """The convolutions of ResNet-50, one after the other."""
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 7, 2, 3), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for number in range(blocks):
            stride = 2 if number == 0 and width > 64 else 1
            for outputs, side, step in ((width, 1, 1), (width, 3, stride), (4 * width, 1, 1)):
                layers += [nn.Conv2d(inputs, outputs, side, step, side // 2), nn.ReLU()]
                inputs = outputs
    return nn.Sequential(*layers, *ending(inputs))


def ending(width: int) -> list[nn.Module]:
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, CLASSES)]
