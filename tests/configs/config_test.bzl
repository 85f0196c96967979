"""config_tests: the files of configs/ are right, and train a few steps on tiny data."""

# Settings that replace those of every file, unless SETTINGS sweeps over the key.
TINY = ["data.dataset=image_folder", "data.batch_size=4", "train.steps=4"]

# More settings of files whose own values (swept, held out, …) do not fit the tiny data.
SETTINGS = {
    "cifar10_airbench94": ["train.lookahead.every=2"],
    "cifar10_few_images": [
        "data.classes=[]",
        "data.held_out=10",
        "sweep.grid={ 'train.seed' = [1] }",
    ],
    "cifar10_five_classes": ["data.classes=[]"],
    "fashion_mnist_lenet_grid": ["sweep.grid={ 'data.batch_size' = [2, 4] }"],
    "fashion_mnist_modes": ["sweep.zip.'data.batch_size'=%s" % ([16] + 15 * [4])],
    "mxnet_cifar10_dist_async": ["sweep.grid={ 'train.optimizer.learning_rate' = [0.05] }"],
    "mxnet_cifar10_dist_sync": [
        "sweep.grid={ 'data.batch_size' = [2, 4], 'train.optimizer.learning_rate' = [0.1] }",
    ],
    "mxnet_cifar10_single": ["sweep.zip={ 'data.batch_size' = [2, 4] }"],
    "mxnet_ilsvrc12_dist_async": ["sweep.grid={ 'train.optimizer.learning_rate' = [0.05] }"],
    "mxnet_ilsvrc12_dist_sync": ["sweep.grid={ 'train.optimizer.learning_rate' = [0.05] }"],
    "mxnet_ilsvrc12_ec2": [
        "sweep.zip={ 'kvstore.mode' = ['device', 'dist_sync'], 'cluster.workers' = [1, 2]," +
        " 'cluster.servers' = [0, 2] }",
    ],
    "mxnet_test_data": [
        "sweep.zip={ 'data.dataset' = ['image_folder'], 'data.batch_size' = [4] }",
    ],
    "own_photos": ["data.resize_short_side=0", "sweep.grid={ 'train.seed' = [1] }"],
    "schlag_async": ["data.held_out=10"],
    "tf_replica_async": ["data.held_out=10"],
    "tf_replica_sync": ["data.held_out=10"],
    "tf_replica_sync_one_worker": ["data.held_out=10"],
}

# The published numbers of parameters of some files' networks.
PARAMETERS = {
    "cifar10_airbench94": "1,972,792",
    "cifar10_local": "1,652,826",
    "cifar10_resnet20": "273,258",
    "cifar10_resnet56": "857,898",
    "mnist_lenet_bn": "10,986",
    "mnist_mlp_local": "109,386",
    "mxnet_local_lenet": "431,080",
    "schlag_async": "79,510",
    "tf_aws_sync": "183,685",
    "tf_replica_async": "79,510",
}

# Files that leave it to the user to name a folder of images.
NEED_SOURCE = [
    "ilsvrc12_inception_bn_cuda",
    "imagenet_inception_bn",
    "imagenet_resized_crop",
    "imagenet_resnet50",
    "mxnet_ilsvrc12_crop",
    "mxnet_ilsvrc12_dist_async",
    "mxnet_ilsvrc12_dist_sync",
    "mxnet_ilsvrc12_ec2",
    "mxnet_ilsvrc12_single",
    "own_photos",
]

def config_tests(files):
    """Tests each of `files` (`x.toml`, beside the BUILD file that calls) as the target x."""
    for file in files:
        name = file[:-len(".toml")]
        own = SETTINGS.get(name, [])
        swept = " ".join(own)
        tiny = [each for each in TINY if "'%s'" % each.split("=")[0] not in swept]
        native.cc_test(
            name = name,
            size = "medium",
            data = [
                ":experiments",
                "//runner",
            ],
            env = {
                "CONFIG": name,
                "NEEDS_SOURCE": "yes" if name in NEED_SOURCE else "no",
                "PARAMETERS": PARAMETERS.get(name, ""),
                "SETTINGS": "\n".join(tiny + own),
            },
            deps = ["//tests/configs:config_test"],
        )
