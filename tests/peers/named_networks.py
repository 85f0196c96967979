#!/usr/bin/env python3
"""named_networks: the program's networks in PyTorch, under the names that people give their layers.

  named_networks.py FOLDER NETWORK IMAGES TYPE [NETWORK IMAGES TYPE …]

Makes FOLDER/NETWORK for each network. There it writes weights.safetensors, with random weights and
statistics as after training, and with values of TYPE (F32, F64, F16 or BF16); pixels.f32, with
random images; and logits.f32, which the network computes from these images.

The names of residual networks are torchvision's, and those of Inception are Caffe's; other networks
have names of their own. Exit code 77: there is no PyTorch.
"""

import json
import os
import struct
import sys
from collections import OrderedDict, namedtuple

NO_TORCH = 77
try:
    import torch
    from torch import nn
    from torch.nn import functional as F
except ImportError:
    print("named_networks: PyTorch is not installed", file=sys.stderr)
    sys.exit(NO_TORCH)

Network = namedtuple("Network", "build input")


class Factories(nn.Module):
    """Convolutions with batch norm and ReLU. `named` turns our name of a layer into theirs."""

    def __init__(self, named=lambda name: name):
        super().__init__()
        self.named = named

    def add(self, name, inputs, filters, kernel, stride=1, pad=0):
        name = self.named(name)
        self.add_module(name, nn.Conv2d(inputs, filters, kernel, stride, pad))
        self.add_module(name + "_bn", nn.BatchNorm2d(filters))

    def run(self, name, x):
        name = self.named(name)
        return F.relu(getattr(self, name + "_bn")(getattr(self, name)(x)))


class LeNetBN(Factories):
    def __init__(self):
        super().__init__()
        self.add("conv1", 1, 32, 3, 2)
        self.add("conv2", 32, 32, 3, 2)
        self.fc = nn.Linear(128, 10)

    def forward(self, x):
        for name in ("conv1", "conv2"):
            x = F.max_pool2d(self.run(name, x), 2, ceil_mode=True)
        return self.fc(x.flatten(1))


class SmallInception(Factories):
    BLOCKS = (("in3a", 32, 32), ("in3b", 32, 48), ("in3c", 0, 80), ("in4a", 112, 48),
              ("in4b", 96, 64), ("in4c", 80, 80), ("in4d", 48, 96), ("in4e", 0, 96),
              ("in5a", 176, 160), ("in5b", 176, 160))

    def __init__(self):
        super().__init__()
        self.add("conv1", 3, 96, 3, 1, 1)
        inputs = 96
        for name, small, large in self.BLOCKS:
            if small:
                self.add(name + "_1x1", inputs, small, 1)
            self.add(name + "_3x3", inputs, large, 3, 1 if small else 2, 1)
            inputs = large + (small or inputs)
        self.fc = nn.Linear(inputs, 10)

    def forward(self, x):
        x = self.run("conv1", x)
        for name, small, _ in self.BLOCKS:
            large = self.run(name + "_3x3", x)
            if small:
                x = torch.cat([self.run(name + "_1x1", x), large], 1)
            else:
                x = torch.cat([large, F.max_pool2d(x, 3, 2, ceil_mode=True)], 1)
        return self.fc(x.mean((2, 3)))


def of_caffe(name):
    stem = {"conv1": "conv1_7x7_s2", "conv2_reduce": "conv2_3x3_reduce", "conv2": "conv2_3x3"}
    if name in stem:
        return stem[name]
    block, layer = name.split("/")
    return f"inception_{block}_{layer}"


class Inception(Factories):
    # Name, and filters: of 1×1; of 3×3 (reduction, convolution); of double 3×3 (reduction,
    # convolutions); after the pool. A block without 1×1 has stride 2.
    BLOCKS = (("3a", 64, (64, 64), (64, 96), 32), ("3b", 64, (64, 96), (64, 96), 64),
              ("3c", 0, (128, 160), (64, 96), 0), ("4a", 224, (64, 96), (96, 128), 128),
              ("4b", 192, (96, 128), (96, 128), 128), ("4c", 160, (128, 160), (128, 160), 128),
              ("4d", 96, (128, 192), (160, 192), 128), ("4e", 0, (128, 192), (192, 256), 0),
              ("5a", 352, (192, 320), (160, 224), 128), ("5b", 352, (192, 320), (192, 224), 128))

    def __init__(self):
        super().__init__(of_caffe)
        self.add("conv1", 3, 64, 7, 2, 3)
        self.add("conv2_reduce", 64, 64, 1)
        self.add("conv2", 64, 192, 3, 1, 1)
        inputs = 192
        for block, single, triple, double, projected in self.BLOCKS:
            stride = 1 if single else 2
            if single:
                self.add(block + "/1x1", inputs, single, 1)
                self.add(block + "/pool_proj", inputs, projected, 1)
            self.add(block + "/3x3_reduce", inputs, triple[0], 1)
            self.add(block + "/3x3", triple[0], triple[1], 3, stride, 1)
            self.add(block + "/double_3x3_reduce", inputs, double[0], 1)
            self.add(block + "/double_3x3_1", double[0], double[1], 3, 1, 1)
            self.add(block + "/double_3x3_2", double[1], double[1], 3, stride, 1)
            inputs = triple[1] + double[1] + (single + projected if single else inputs)
        self.last_linear = nn.Linear(inputs, 1000)

    def block(self, block, single, x):
        def run(*layers):
            y = x
            for layer in layers:
                y = self.run(f"{block}/{layer}", y)
            return y

        branches = [run("3x3_reduce", "3x3"),
                    run("double_3x3_reduce", "double_3x3_1", "double_3x3_2")]
        if not single:
            return torch.cat(branches + [F.max_pool2d(x, 3, 2, ceil_mode=True)], 1)
        pooled = F.max_pool2d(x, 3, 1, 1) if block == "5b" else F.avg_pool2d(x, 3, 1, 1)
        return torch.cat([run("1x1"), *branches, self.run(f"{block}/pool_proj", pooled)], 1)

    def forward(self, x):
        x = F.max_pool2d(self.run("conv1", x), 3, 2, ceil_mode=True)
        x = self.run("conv2", self.run("conv2_reduce", x))
        x = F.max_pool2d(x, 3, 2, ceil_mode=True)
        for block, single, *_ in self.BLOCKS:
            x = self.block(block, single, x)
        return self.last_linear(x.mean((2, 3)))


def convolution(inputs, filters, stride=1, bias=False):
    return nn.Conv2d(inputs, filters, 3, stride, 1, bias=bias)


class BasicBlock(nn.Module):
    def __init__(self, inputs, filters, stride, bias):
        super().__init__()
        self.conv1 = convolution(inputs, filters, stride, bias)
        self.bn1 = nn.BatchNorm2d(filters)
        self.conv2 = convolution(filters, filters, 1, bias)
        self.bn2 = nn.BatchNorm2d(filters)
        self.downsample = None
        if stride > 1:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, filters, 1, stride, bias=bias),
                                            nn.BatchNorm2d(filters))

    def forward(self, x):
        beside = x if self.downsample is None else self.downsample(x)
        x = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(x)) + beside)


class ResNet(nn.Module):
    """torchvision's layers in three stages. With `bias`, every convolution has a bias."""

    def __init__(self, depth, bias):
        super().__init__()
        self.conv1 = convolution(3, 16, 1, bias)
        self.bn1 = nn.BatchNorm2d(16)
        inputs = 16
        for stage, filters in enumerate((16, 32, 64), 1):
            units = []
            for unit in range((depth - 2) // 6):
                units.append(BasicBlock(inputs, filters, 2 if stage > 1 and unit == 0 else 1, bias))
                inputs = filters
            self.add_module(f"layer{stage}", nn.Sequential(*units))
        self.fc = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(x.mean((2, 3)))


class Bottleneck(nn.Module):
    def __init__(self, inputs, filters, stride):
        super().__init__()
        outputs = 4 * filters
        self.conv1 = nn.Conv2d(inputs, filters, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(filters)
        self.conv2 = convolution(filters, filters, stride)
        self.bn2 = nn.BatchNorm2d(filters)
        self.conv3 = nn.Conv2d(filters, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride > 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False),
                                            nn.BatchNorm2d(outputs))

    def forward(self, x):
        beside = x if self.downsample is None else self.downsample(x)
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)))
        return F.relu(self.bn3(self.conv3(x)) + beside)


class ImageNetResNet(nn.Module):
    """torchvision's ResNet. `units` has the number of units of each stage."""

    def __init__(self, units, is_bottleneck):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        inputs = 64
        for stage, count in enumerate(units, 1):
            filters = 32 << stage
            blocks = []
            for unit in range(count):
                stride = 2 if stage > 1 and unit == 0 else 1
                if is_bottleneck:
                    blocks.append(Bottleneck(inputs, filters, stride))
                    inputs = 4 * filters
                else:
                    blocks.append(BasicBlock(inputs, filters, stride, False))
                    inputs = filters
            self.add_module(f"layer{stage}", nn.Sequential(*blocks))
        self.fc = nn.Linear(inputs, 1000)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


def norm_v2(filters):
    return nn.BatchNorm2d(filters, eps=2e-5)


class PreActBlock(nn.Module):
    def __init__(self, inputs, filters, stride, is_first):
        super().__init__()
        self.bn1 = norm_v2(inputs)
        self.conv1 = convolution(inputs, filters, stride)
        self.bn2 = norm_v2(filters)
        self.conv2 = convolution(filters, filters)
        self.shortcut = None
        if is_first:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, filters, 1, stride, bias=False))

    def forward(self, x):
        y = F.relu(self.bn1(x))
        beside = x if self.shortcut is None else self.shortcut(y)
        return self.conv2(F.relu(self.bn2(self.conv1(y)))) + beside


class PreActResNet(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.data_bn = norm_v2(3)
        self.conv1 = convolution(3, 16)
        inputs = 16
        for stage, filters in enumerate((16, 32, 64), 1):
            units = []
            for unit in range((depth - 2) // 6):
                stride = 2 if stage > 1 and unit == 0 else 1
                units.append(PreActBlock(inputs, filters, stride, unit == 0))
                inputs = filters
            self.add_module(f"layer{stage}", nn.Sequential(*units))
        self.bn = norm_v2(64)
        self.linear = nn.Linear(64, 10)

    def forward(self, x):
        x = self.layer3(self.layer2(self.layer1(self.conv1(self.data_bn(x)))))
        return self.linear(F.relu(self.bn(x)).mean((2, 3)))


class Group(nn.Module):
    """One of the three groups of layers of airbench94."""

    def __init__(self, inputs, filters):
        super().__init__()
        self.conv1 = convolution(inputs, filters)
        self.norm1 = nn.BatchNorm2d(filters, eps=1e-12)
        self.conv2 = convolution(filters, filters)
        self.norm2 = nn.BatchNorm2d(filters, eps=1e-12)

    def forward(self, x):
        x = F.gelu(self.norm1(F.max_pool2d(self.conv1(x), 2)))
        return F.gelu(self.norm2(self.conv2(x)))


class Scale(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x * self.factor


def airbench94():
    return nn.Sequential(nn.Conv2d(3, 24, 2), nn.GELU(), Group(24, 64), Group(64, 256),
                         Group(256, 256), nn.MaxPool2d(3), nn.Flatten(),
                         nn.Linear(256, 10, bias=False), Scale(1 / 9))


def mlp():
    return nn.Sequential(OrderedDict(
        flat=nn.Flatten(), fc1=nn.Linear(784, 128), relu1=nn.ReLU(), fc2=nn.Linear(128, 64),
        relu2=nn.ReLU(), fc3=nn.Linear(64, 10)))


def lenet():
    return nn.Sequential(OrderedDict(
        conv1=nn.Conv2d(1, 20, 5), tanh1=nn.Tanh(), pool1=nn.MaxPool2d(2),
        conv2=nn.Conv2d(20, 50, 5), tanh2=nn.Tanh(), pool2=nn.MaxPool2d(2), flat=nn.Flatten(),
        fc1=nn.Linear(800, 500), tanh3=nn.Tanh(), fc2=nn.Linear(500, 10)))


def resnets():
    """Half of the networks of the first version have biases, as all of ours do."""
    for depth in (20, 32, 56, 110):
        yield f"resnet-{depth}", Network(lambda depth=depth: ResNet(depth, depth in (32, 110)),
                                         (3, 28, 28))
        yield f"resnet-{depth}-v2", Network(lambda depth=depth: PreActResNet(depth), (3, 28, 28))


NETWORKS = {
    "mlp": Network(mlp, (1, 28, 28)),
    "lenet": Network(lenet, (1, 28, 28)),
    "lenet-bn": Network(LeNetBN, (1, 28, 28)),
    "inception-bn-28-small": Network(SmallInception, (3, 28, 28)),
    "inception-bn": Network(Inception, (3, 224, 224)),
    "airbench94": Network(airbench94, (3, 32, 32)),
    "resnet-18": Network(lambda: ImageNetResNet((2, 2, 2, 2), False), (3, 224, 224)),
    "resnet-34": Network(lambda: ImageNetResNet((3, 4, 6, 3), False), (3, 64, 64)),
    "resnet-50": Network(lambda: ImageNetResNet((3, 4, 6, 3), True), (3, 224, 224)),
    **dict(resnets()),
}


def perturb(net):
    """Draws weights for logits of about 1, and statistics of batch norms as after training."""
    is_residual = isinstance(net, (ResNet, PreActResNet, ImageNetResNet))
    for module in net.modules():
        if isinstance(module, nn.Linear) or isinstance(module, nn.Conv2d) and not is_residual:
            nn.init.kaiming_normal_(module.weight)
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_var, .5, 1.5)
            nn.init.normal_(module.running_mean, 0, .2)
            nn.init.normal_(module.bias, 0, .2)
            # Our networks hold the gammas of airbench94 and of data_bn at 1.
            if not isinstance(net, nn.Sequential) and module is not getattr(net, "data_bn", None):
                nn.init.uniform_(module.weight, .5, 1.5)


def save(path, state, kind):
    """Writes a state dict in the format of safetensors, with its real numbers as `kind`. Also
    rounds the values in the dict to `kind`."""
    kinds = {"F32": torch.float32, "F64": torch.float64, "F16": torch.float16,
             "BF16": torch.bfloat16}
    header, contents, at = {}, [], 0
    for name, array in state.items():
        is_real = array.is_floating_point()
        content = array.to(kinds[kind]) if is_real else array
        array.copy_(content)
        contents.append(content.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
        header[name] = {"dtype": kind if is_real else "I64", "shape": list(array.shape),
                        "data_offsets": [at, at + len(contents[-1])]}
        at += len(contents[-1])
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(contents))


def write(name, folder, images, kind):
    os.mkdir(folder)
    network = NETWORKS[name]
    torch.manual_seed(1)
    net = network.build().eval()
    with torch.no_grad():
        perturb(net)
        save(os.path.join(folder, "weights.safetensors"), net.state_dict(), kind)
        pixels = torch.randn(int(images), *network.input)
        logits = net(pixels)
    for file, array in (("pixels", pixels), ("logits", logits)):
        with open(os.path.join(folder, file + ".f32"), "wb") as output:
            output.write(array.contiguous().numpy().tobytes())


def main():
    folder, *words = sys.argv[1:]
    for name, images, kind in zip(words[::3], words[1::3], words[2::3]):
        write(name, os.path.join(folder, name), images, kind)
    return 0


if __name__ == "__main__":
    sys.exit(main())
