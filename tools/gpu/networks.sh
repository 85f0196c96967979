# tools/gpu/networks.sh: the common settings of the stages of verify.sh: devices, networks,
# precisions.
# shellcheck shell=bash disable=SC2034,SC2154

GPU='cluster.devices=["cuda:0"]'
CPU='cluster.devices=["cpu"]'

# One network per line: name, file, batch size, and the colours, side and classes of its synthetic
# images. The table of `bench peers` (GPU_NETWORKS) has the same networks and batches.
NETWORKS="\
mlp                 configs/mnist_mlp_local.toml          100  1 28  10
lenet               tests/peers/lenet.toml                128  1 28  10
inception-small     configs/cifar10_local.toml            128  3 28  10
inception-small-512 configs/cifar10_local.toml            512  3 28  10
resnet-20           configs/cifar10_resnet20.toml         128  3 28  10
resnet-56           configs/cifar10_resnet56.toml         128  3 28  10
airbench94          tests/peers/airbench94.toml           1024 3 32  10
inception-224       configs/imagenet_inception_bn.toml    64   3 224 1000"
PRECISIONS="fp32 tf32 bf16 fp16"
WAYS="plain autocast compiled"

# synthetic COLOURS SIDE CLASSES: the options of `bench` for synthetic images.
synthetic() {
  echo "--colours=$1 --classes=$3 --set=data.augment.crop=$2"
}
