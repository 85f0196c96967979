"""networks: the program's networks, written for PyTorch.

Each network declares its arrays in the order of the program's flat array: layer by layer, and
within a layer weight, bias, gamma, beta. Branches come in their order, and the body of a residual
comes before its shortcut. So losses.py can copy weights one array after another.
`python3 networks.py` prints each network's number of parameters and compares it with the published
one.
"""

import sys
from collections import namedtuple

import torch
from torch import nn
from torch.nn import functional as F

# `input`: the shape of an image; `batch`: images per step in comparisons; `parameters`: the number
# that was published.
Network = namedtuple("Network", "build input classes batch parameters")


def factory(inputs, filters, kernel, stride=1, pad=0):
    """Convolution, batch norm, ReLU."""
    return nn.Sequential(nn.Conv2d(inputs, filters, kernel, stride, pad),
                         nn.BatchNorm2d(filters, eps=1e-3), nn.ReLU(inplace=True))


class Concat(nn.Module):
    """Branches side by side: their channels one after another."""

    def __init__(self, *branches):
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x):
        return torch.cat([branch(x) for branch in self.branches], 1)


class Residual(nn.Module):
    """relu(body(x) + shortcut(x)); without a shortcut x itself is added."""

    def __init__(self, body, shortcut=None):
        super().__init__()
        self.body = body
        self.shortcut = shortcut

    def forward(self, x):
        beside = x if self.shortcut is None else self.shortcut(x)
        return F.relu(self.body(x) + beside, inplace=True)


class Scale(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x * self.factor


def head(inputs, classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(inputs, classes))


def mlp_sigmoid():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 100), nn.Sigmoid(), nn.Linear(100, 10))


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(inplace=True),
                         nn.Linear(128, 64), nn.ReLU(inplace=True), nn.Linear(64, 10))


def lenet():
    """Two convolutions and two dense layers with tanh."""
    return nn.Sequential(
        nn.Conv2d(1, 20, 5), nn.Tanh(), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.Tanh(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(800, 500), nn.Tanh(), nn.Linear(500, 10))


def lenet_bn():
    """MXNet's distributed-training example: 28 → 13 → 7 → 3 → 2."""
    return nn.Sequential(
        factory(1, 32, 3, 2), nn.MaxPool2d(2, ceil_mode=True),
        factory(32, 32, 3, 2), nn.MaxPool2d(2, ceil_mode=True), head(128, 10))


def inception_small():
    """MXNet's Inception with batch norm for 28×28 images."""

    def simple(inputs, small, large):
        return Concat(factory(inputs, small, 1), factory(inputs, large, 3, 1, 1))

    def down(inputs, filters):
        return Concat(factory(inputs, filters, 3, 2, 1), nn.MaxPool2d(3, 2, ceil_mode=True))

    return nn.Sequential(
        factory(3, 96, 3, 1, 1), simple(96, 32, 32), simple(64, 32, 48), down(80, 80),
        simple(160, 112, 48), simple(160, 96, 64), simple(160, 80, 80), simple(160, 48, 96),
        down(144, 96), simple(240, 176, 160), simple(336, 176, 160),
        nn.AvgPool2d(7), head(336, 10))


def inception():
    """MXNet's Inception with batch norm for ImageNet."""

    def keep(inputs, single, triple, double, pool, projected):
        """Four branches at the same size: 1×1; 3×3; twice 3×3; pool and 1×1."""
        pools = {"avg": nn.AvgPool2d(3, 1, 1), "max": nn.MaxPool2d(3, 1, 1)}
        return Concat(
            factory(inputs, single, 1),
            nn.Sequential(factory(inputs, triple[0], 1), factory(triple[0], triple[1], 3, 1, 1)),
            nn.Sequential(factory(inputs, double[0], 1), factory(double[0], double[1], 3, 1, 1),
                          factory(double[1], double[1], 3, 1, 1)),
            nn.Sequential(pools[pool], factory(inputs, projected, 1)))

    def down(inputs, triple, double):
        """Three branches at half the size."""
        return Concat(
            nn.Sequential(factory(inputs, triple[0], 1), factory(triple[0], triple[1], 3, 2, 1)),
            nn.Sequential(factory(inputs, double[0], 1), factory(double[0], double[1], 3, 1, 1),
                          factory(double[1], double[1], 3, 2, 1)),
            nn.MaxPool2d(3, 2, ceil_mode=True))

    return nn.Sequential(
        factory(3, 64, 7, 2, 3), nn.MaxPool2d(3, 2, ceil_mode=True),
        factory(64, 64, 1), factory(64, 192, 3, 1, 1), nn.MaxPool2d(3, 2, ceil_mode=True),
        keep(192, 64, (64, 64), (64, 96), "avg", 32),
        keep(256, 64, (64, 96), (64, 96), "avg", 64),
        down(320, (128, 160), (64, 96)),
        keep(576, 224, (64, 96), (96, 128), "avg", 128),
        keep(576, 192, (96, 128), (96, 128), "avg", 128),
        keep(576, 160, (128, 160), (128, 160), "avg", 128),
        keep(608, 96, (128, 192), (160, 192), "avg", 128),
        down(608, (128, 192), (192, 256)),
        keep(1056, 352, (192, 320), (160, 224), "avg", 128),
        keep(1024, 352, (192, 320), (192, 224), "max", 128),
        nn.AvgPool2d(7), head(1024, 1000))


def resnet(depth):
    """The first version for CIFAR-10: batch norm and ReLU behind each convolution."""

    def unit(inputs, filters, stride):
        body = nn.Sequential(*factory(inputs, filters, 3, stride, 1),
                             nn.Conv2d(filters, filters, 3, 1, 1),
                             nn.BatchNorm2d(filters, eps=1e-3))
        if stride == 1:
            return Residual(body)
        return Residual(body, nn.Sequential(nn.Conv2d(inputs, filters, 1, stride),
                                            nn.BatchNorm2d(filters, eps=1e-3)))

    def build():
        layers = [factory(3, 16, 3, 1, 1)]
        inputs = 16
        for filters in (16, 32, 64):
            for number in range((depth - 2) // 6):
                layers.append(unit(inputs, filters, 2 if number == 0 and filters > 16 else 1))
                inputs = filters
        return nn.Sequential(*layers, nn.AvgPool2d(7), head(64, 10))

    return build


def resnet50():
    """He et al. 2015 in torchvision's form: the 3×3 convolution has the stride."""

    def normed(inputs, filters, kernel, stride=1):
        return [nn.Conv2d(inputs, filters, kernel, stride, kernel // 2, bias=False),
                nn.BatchNorm2d(filters)]

    def unit(inputs, filters, stride, is_first):
        body = nn.Sequential(
            *normed(inputs, filters, 1), nn.ReLU(inplace=True),
            *normed(filters, filters, 3, stride), nn.ReLU(inplace=True),
            *normed(filters, 4 * filters, 1))
        return Residual(body, nn.Sequential(*normed(inputs, 4 * filters, 1, stride))
                        if is_first else None)

    layers = [*normed(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for filters, units in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for number in range(units):
            stride = 2 if number == 0 and filters > 64 else 1
            layers.append(unit(inputs, filters, stride, number == 0))
            inputs = 4 * filters
    return nn.Sequential(*layers, nn.AvgPool2d(7), head(2048, 1000))


def airbench94():
    """Jordan 2024, arXiv 2404.00498."""

    def norm(filters):
        layer = nn.BatchNorm2d(filters, eps=1e-12, momentum=0.4)
        layer.weight.requires_grad = False
        return layer

    def group(inputs, filters):
        return [nn.Conv2d(inputs, filters, 3, padding=1, bias=False), nn.MaxPool2d(2),
                norm(filters), nn.GELU(),
                nn.Conv2d(filters, filters, 3, padding=1, bias=False), norm(filters), nn.GELU()]

    whiten = nn.Conv2d(3, 24, 2)
    whiten.weight.requires_grad = False
    return nn.Sequential(whiten, nn.GELU(), *group(24, 64), *group(64, 256), *group(256, 256),
                         nn.MaxPool2d(3), nn.Flatten(), nn.Linear(256, 10, bias=False),
                         Scale(1 / 9))


NETWORKS = {
    "mlp-784-100-10": Network(mlp_sigmoid, (1, 28, 28), 10, 100, 79510),
    "mlp": Network(mlp, (1, 28, 28), 10, 100, 109386),
    "lenet": Network(lenet, (1, 28, 28), 10, 128, 431080),
    "lenet-bn": Network(lenet_bn, (1, 28, 28), 10, 128, 10986),
    "inception-bn-28-small": Network(inception_small, (3, 28, 28), 10, 128, 1652826),
    "inception-bn": Network(inception, (3, 224, 224), 1000, 16, 11295240),
    "resnet-20": Network(resnet(20), (3, 28, 28), 10, 128, 273258),
    "resnet-56": Network(resnet(56), (3, 28, 28), 10, 128, 857898),
    "resnet-50": Network(resnet50, (3, 224, 224), 1000, 16, 25557032),
    "airbench94": Network(airbench94, (3, 32, 32), 10, 1024, 1972792),
}


def main():
    wrong = 0
    for name, network in NETWORKS.items():
        built = network.build().eval()
        count = sum(array.numel() for array in built.parameters())
        arrays = sum(1 for _ in built.parameters())
        logits = built(torch.zeros(1, *network.input))
        fits = count == network.parameters and logits.shape == (1, network.classes)
        wrong += not fits
        print(f"{name}\t{count}\t{arrays}\t{'as published' if fits else 'WRONG'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
