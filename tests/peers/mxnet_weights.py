#!/usr/bin/env python3
"""mxnet_weights: writes checkpoints of MXNet, and the logits of its networks for some images.

  mxnet_weights.py FOLDER NETWORK IMAGES [NETWORK IMAGES …]

Makes FOLDER/NETWORK for each network. There it writes net-0001.params, with random weights and
statistics as after training; pixels.f32, with random images; and logits.f32, which the network
computes from these images.

`lenet` is trained for an epoch on Fashion-MNIST first. Its images are the first test images, and
labels.i32 has their labels.

The symbols have the names of those in MXNet's example/image-classification. Pools round up, as they
did in 2015. It needs MXNet 1.9 (PyPI; numpy before 1.24) and Debian's dataset-fashion-mnist. Exit
code 77: one of them is not installed.
"""

import os
import sys

from mxnet_lenet import NOT_HERE, images_and_labels

FASHION_MNIST = "/usr/share/datasets/fashion-mnist"
BATCH = 64

try:
    import mxnet as mx
    import numpy
except ImportError as error:
    print(f"mxnet_weights: MXNet does not load: {error}", file=sys.stderr)
    sys.exit(NOT_HERE)


def conv(x, filters, kernel, stride=1, pad=0, **more):
    return mx.sym.Convolution(x, num_filter=filters, kernel=(kernel, kernel),
                              stride=(stride, stride), pad=(pad, pad), **more)


def pool(x, kind, kernel, stride, pad=0):
    return mx.sym.Pooling(x, pool_type=kind, kernel=(kernel, kernel), stride=(stride, stride),
                          pad=(pad, pad), pooling_convention="full")


def relu(x):
    return mx.sym.Activation(x, act_type="relu")


def norm(x, name=None, eps=1e-3, fix_gamma=False):
    return mx.sym.BatchNorm(x, eps=eps, fix_gamma=fix_gamma, name=name)


def factory(x, filters, kernel, stride=1, pad=0, name=None):
    """Convolution, batch norm and ReLU. The scripts of 2015 give them no name."""
    names = [name and f"{kind}_{name}" for kind in ("conv", "bn")]
    return relu(norm(conv(x, filters, kernel, stride, pad, name=names[0]), names[1]))


def lenet(x):
    for filters in (20, 50):
        x = pool(mx.sym.Activation(conv(x, filters, 5), act_type="tanh"), "max", 2, 2)
    x = mx.sym.FullyConnected(mx.sym.flatten(x), num_hidden=500)
    return mx.sym.FullyConnected(mx.sym.Activation(x, act_type="tanh"), num_hidden=10)


def lenet_bn(x):
    for _ in range(2):
        x = pool(factory(x, 32, 3, 2), "max", 2, 2)
    return mx.sym.FullyConnected(mx.sym.flatten(x), num_hidden=10)


def mlp(x):
    x = mx.sym.flatten(x)
    for number, units in enumerate((128, 64), 1):
        x = relu(mx.sym.FullyConnected(x, num_hidden=units, name=f"fc{number}"))
    return mx.sym.FullyConnected(x, num_hidden=10, name="fc3")


def small_inception(has_names):
    """For 28×28: symbol_inception-bn-28-small.py of 2015. With `has_names`, layers have the names
    of symbols/inception-bn.py of 2016."""

    def build(x):
        x = factory(x, 96, 3, 1, 1, name=has_names and "1" or None)
        for name, small, large in (
                ("in3a", 32, 32), ("in3b", 32, 48), ("in3c", 0, 80), ("in4a", 112, 48),
                ("in4b", 96, 64), ("in4c", 80, 80), ("in4d", 48, 96), ("in4e", 0, 96),
                ("in5a", 176, 160), ("in5b", 176, 160)):
            if small:
                names = [f"{name}_{kind}" if has_names else None for kind in ("1x1", "3x3")]
                x = mx.sym.concat(factory(x, small, 1, name=names[0]),
                                  factory(x, large, 3, 1, 1, name=names[1]))
            else:
                x = mx.sym.concat(
                    factory(x, large, 3, 2, 1, name=has_names and name + "_conv" or None),
                    pool(x, "max", 3, 2))
        x = mx.sym.flatten(pool(x, "avg", 7, 7))
        return mx.sym.FullyConnected(x, num_hidden=10, name=None if has_names else "fc1")

    return build


def inception(x):
    """For 224×224: symbol_inception-bn.py of 2015."""
    x = pool(factory(x, 64, 7, 2, 3, name="conv1"), "max", 3, 2)
    x = factory(factory(x, 64, 1, name="conv2red"), 192, 3, 1, 1, name="conv2")
    x = pool(x, "max", 3, 2)
    for name, single, triple, double, kind, projected in (
            ("3a", 64, (64, 64), (64, 96), "avg", 32), ("3b", 64, (64, 96), (64, 96), "avg", 64),
            ("3c", 0, (128, 160), (64, 96), "max", 0),
            ("4a", 224, (64, 96), (96, 128), "avg", 128),
            ("4b", 192, (96, 128), (96, 128), "avg", 128),
            ("4c", 160, (128, 160), (128, 160), "avg", 128),
            ("4d", 96, (128, 192), (160, 192), "avg", 128),
            ("4e", 0, (128, 192), (192, 256), "max", 0),
            ("5a", 352, (192, 320), (160, 224), "avg", 128),
            ("5b", 352, (192, 320), (192, 224), "max", 128)):
        stride = 1 if single else 2
        y = factory(x, triple[0], 1, name=f"{name}_3x3_reduce")
        z = factory(x, double[0], 1, name=f"{name}_double_3x3_reduce")
        z = factory(z, double[1], 3, 1, 1, name=f"{name}_double_3x3_0")
        branches = [factory(y, triple[1], 3, stride, 1, name=f"{name}_3x3"),
                    factory(z, double[1], 3, stride, 1, name=f"{name}_double_3x3_1")]
        if single:
            pooled = pool(x, kind, 3, 1, 1)
            branches = [factory(x, single, 1, name=f"{name}_1x1"), *branches,
                        factory(pooled, projected, 1, name=f"{name}_proj")]
        else:
            branches.append(pool(x, "max", 3, 2))
        x = mx.sym.concat(*branches)
    x = mx.sym.flatten(pool(x, "avg", 7, 1))
    return mx.sym.FullyConnected(x, num_hidden=1000, name="fc1_1000_classes")


def resnet(x):
    """Depth 20: symbol_resnet-28-small.py."""
    x = factory(x, 16, 3, 1, 1)
    for filters in (16, 32, 64):
        for unit in range(3):
            halves = unit == 0 and filters > 16
            y = factory(x, filters, 3, 2 if halves else 1, 1)
            y = norm(conv(y, filters, 3, 1, 1))
            if halves:
                x = norm(conv(x, filters, 1, 2))
            x = relu(x + y)
    x = mx.sym.flatten(pool(x, "avg", 7, 7))
    return mx.sym.FullyConnected(x, num_hidden=10, name="fc1_10_classes")


def resnet_v2(x):
    """Depth 20: symbols/resnet.py."""
    x = norm(x, "bn_data", 2e-5, True)
    x = conv(x, 16, 3, 1, 1, no_bias=True, name="conv0")
    for stage, filters in enumerate((16, 32, 64), 1):
        for unit in range(1, 4):
            name = f"stage{stage}_unit{unit}"
            stride = 2 if unit == 1 and stage > 1 else 1
            y = relu(norm(x, name + "_bn1", 2e-5))
            beside = x
            if unit == 1:
                beside = conv(y, filters, 1, stride, no_bias=True, name=name + "_sc")
            y = conv(y, filters, 3, stride, 1, no_bias=True, name=name + "_conv1")
            y = relu(norm(y, name + "_bn2", 2e-5))
            x = conv(y, filters, 3, 1, 1, no_bias=True, name=name + "_conv2") + beside
    x = relu(norm(x, "bn1", 2e-5))
    x = mx.sym.flatten(mx.sym.Pooling(x, global_pool=True, kernel=(7, 7), pool_type="avg"))
    return mx.sym.FullyConnected(x, num_hidden=10, name="fc1")


NETWORKS = {
    "mlp": (mlp, (1, 28, 28)),
    "lenet": (lenet, (1, 28, 28)),
    "lenet-bn": (lenet_bn, (1, 28, 28)),
    "inception-bn-28-small": (small_inception(False), (3, 28, 28)),
    "inception-bn-28-small-2016": (small_inception(True), (3, 28, 28)),
    "inception-bn": (inception, (3, 224, 224)),
    "resnet-20": (resnet, (3, 28, 28)),
    "resnet-20-v2": (resnet_v2, (3, 28, 28)),
}


def random_arrays(logits, shape):
    """The parameters and statistics of a symbol, by name."""
    draw = numpy.random.RandomState(1)
    shapes, _, statistics = logits.infer_shape(data=(1, *shape))
    arrays = {}
    for name, size in zip(logits.list_arguments() + logits.list_auxiliary_states(),
                          shapes + statistics):
        values = draw.normal(0, .2, size)
        if name.endswith("_weight"):
            values *= 5 * (2 / numpy.prod(size[1:])) ** .5
        elif name.endswith(("_gamma", "_moving_var")):
            values = draw.uniform(.5, 1.5, size)
        arrays[name] = mx.nd.array(values)
    # MXNet treats this gamma as 1, and writes 1 into checkpoints.
    if "bn_data_gamma" in arrays:
        arrays["bn_data_gamma"][:] = 1
    return ({name: arrays[name] for name in logits.list_arguments() if name != "data"},
            {name: arrays[name] for name in logits.list_auxiliary_states()})


def trained(logits):
    """LeNet's parameters after an epoch on Fashion-MNIST."""
    images, labels = images_and_labels(FASHION_MNIST, "train")
    data = mx.io.NDArrayIter(images.astype("float32") / 256, labels, BATCH, shuffle=False)
    module = mx.mod.Module(mx.sym.SoftmaxOutput(logits, name="softmax"), context=mx.cpu())
    mx.random.seed(1)
    module.fit(data, num_epoch=1, initializer=mx.init.Xavier(), optimizer="sgd",
               optimizer_params={"learning_rate": .05, "momentum": .9})
    return module.get_params()


def save(name, folder, count):
    os.mkdir(folder)
    build, shape = NETWORKS[name]
    # MXNet numbers layers without a name.
    with mx.name.NameManager():
        logits = build(mx.sym.Variable("data"))

    def write(file, array):
        with open(os.path.join(folder, file), "wb") as output:
            output.write(array.tobytes())

    if name == "lenet":
        parameters, statistics = trained(logits)
        images, labels = images_and_labels(FASHION_MNIST, "t10k")
        pixels = images[:count].astype("float32") / 256
        write("labels.i32", labels[:count].astype("int32"))
    else:
        parameters, statistics = random_arrays(logits, shape)
        pixels = numpy.random.RandomState(2).normal(0, 1, (count, *shape)).astype("float32")
    mx.model.save_checkpoint(os.path.join(folder, "net"), 1, logits, parameters, statistics)

    executor = logits.simple_bind(mx.cpu(), grad_req="null", data=pixels.shape)
    executor.copy_params_from(parameters, statistics)
    write("pixels.f32", pixels)
    write("logits.f32", executor.forward(is_train=False, data=pixels)[0].asnumpy())


def main():
    folder, *words = sys.argv[1:]
    if not os.path.isdir(FASHION_MNIST):
        print(f"mxnet_weights: no folder {FASHION_MNIST}", file=sys.stderr)
        return NOT_HERE
    for name, count in zip(words[::2], words[1::2]):
        save(name, os.path.join(folder, name), int(count))
    return 0


if __name__ == "__main__":
    sys.exit(main())
