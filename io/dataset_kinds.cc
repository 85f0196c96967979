#include "io/dataset_kinds.h"

namespace io {

namespace {

constexpr DatasetFile MNIST_FILES[] = {
    {"train-images-idx3-ubyte", 47040016,
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"},
    {"train-labels-idx1-ubyte", 60008,
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"},
    {"t10k-images-idx3-ubyte", 7840016,
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"},
    {"t10k-labels-idx1-ubyte", 10008,
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"},
};

constexpr DatasetFile FASHION_MNIST_FILES[] = {
    {"train-images-idx3-ubyte", 47040016,
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"},
    {"train-labels-idx1-ubyte", 60008,
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"},
    {"t10k-images-idx3-ubyte", 7840016,
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"},
    {"t10k-labels-idx1-ubyte", 10008,
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"},
};

constexpr DatasetFile CIFAR10_FILES[] = {
    {"data_batch_1.bin", 30730000,
        "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"},
    {"data_batch_2.bin", 30730000,
        "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"},
    {"data_batch_3.bin", 30730000,
        "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"},
    {"data_batch_4.bin", 30730000,
        "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"},
    {"data_batch_5.bin", 30730000,
        "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"},
    {"test_batch.bin", 30730000,
        "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"},
};

// Their checksums are not published. The archive's md5 is 03b5dce01913d631647c71ecec9e9cb8.
constexpr DatasetFile CIFAR100_FILES[] = {
    {"train.bin", 153700000, nullptr},
    {"test.bin", 30740000, nullptr},
};

constexpr const char* IDX_DOWNLOADS[] = {"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"};
constexpr const char* CIFAR10_DOWNLOADS[] = {"cifar-10-binary.tar.gz"};

constexpr const char* CIFAR100_DOWNLOADS[] = {"cifar-100-binary.tar.gz"};

constexpr const char* MNIST_ADDRESSES[] = {
    "http://yann.lecun.com/exdb/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/"};
constexpr const char* FASHION_MNIST_ADDRESSES[] = {
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"};
constexpr const char* CIFAR_ADDRESSES[] = {"https://www.cs.toronto.edu/~kriz/"};

constexpr const char* DIGITS[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
// The README of Fashion-MNIST.
constexpr const char* CLOTHES[] = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal",
    "Shirt", "Sneaker", "Bag", "Ankle boot"};
// batches.meta.txt of CIFAR-10.
constexpr const char* CIFAR10_CLASSES[] = {
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};

constexpr DatasetSource MNIST = {
    .format = DatasetSource::IDX,
    .shape = {1, 28, 28},
    .classes = 10,
    .classNames = {DIGITS, 10},
    .trainingRecords = 60000,
    .validationRecords = 10000,
    .encoding = Encoding::RAW,
    .files = {MNIST_FILES, 4},
    .downloads = {IDX_DOWNLOADS, 4},
    .addresses = {MNIST_ADDRESSES, 2},
    .folder = "mnist",
};

constexpr DatasetSource FASHION_MNIST = {
    .format = DatasetSource::IDX,
    .shape = {1, 28, 28},
    .classes = 10,
    .classNames = {CLOTHES, 10},
    .trainingRecords = 60000,
    .validationRecords = 10000,
    .encoding = Encoding::RAW,
    .files = {FASHION_MNIST_FILES, 4},
    .downloads = {IDX_DOWNLOADS, 4},
    .addresses = {FASHION_MNIST_ADDRESSES, 1},
    .folder = "fashion-mnist",
    .systemPackage = "dataset-fashion-mnist",
    .systemFolder = "/usr/share/datasets/fashion-mnist",
};

constexpr DatasetSource CIFAR10 = {
    .format = DatasetSource::CIFAR,
    .shape = {3, 32, 32},
    .classes = 10,
    .classNames = {CIFAR10_CLASSES, 10},
    .trainingRecords = 50000,
    .validationRecords = 10000,
    .encoding = Encoding::RAW,
    .files = {CIFAR10_FILES, 6},
    .downloads = {CIFAR10_DOWNLOADS, 1},
    .addresses = {CIFAR_ADDRESSES, 1},
    .archivePrefix = "cifar-10-binary.tar",
    .archiveFolder = "cifar-10-batches-bin",
    .folder = "cifar10",
};

// The fine labels of CIFAR-100 (fine_label_names.txt).
constexpr const char* CIFAR100_CLASSES[] = {"apple", "aquarium_fish", "baby", "bear", "beaver",
    "bed", "bee", "beetle", "bicycle", "bottle", "bowl", "boy", "bridge", "bus", "butterfly",
    "camel", "can", "castle", "caterpillar", "cattle", "chair", "chimpanzee", "clock", "cloud",
    "cockroach", "couch", "crab", "crocodile", "cup", "dinosaur", "dolphin", "elephant", "flatfish",
    "forest", "fox", "girl", "hamster", "house", "kangaroo", "keyboard", "lamp", "lawn_mower",
    "leopard", "lion", "lizard", "lobster", "man", "maple_tree", "motorcycle", "mountain", "mouse",
    "mushroom", "oak_tree", "orange", "orchid", "otter", "palm_tree", "pear", "pickup_truck",
    "pine_tree", "plain", "plate", "poppy", "porcupine", "possum", "rabbit", "raccoon", "ray",
    "road", "rocket", "rose", "sea", "seal", "shark", "shrew", "skunk", "skyscraper", "snail",
    "snake", "spider", "squirrel", "streetcar", "sunflower", "sweet_pepper", "table", "tank",
    "telephone", "television", "tiger", "tractor", "train", "trout", "tulip", "turtle", "wardrobe",
    "whale", "willow_tree", "wolf", "woman", "worm"};

constexpr DatasetSource CIFAR100 = {
    .format = DatasetSource::CIFAR,
    .shape = {3, 32, 32},
    .classes = 100,
    .classNames = {CIFAR100_CLASSES, 100},
    .trainingRecords = 50000,
    .validationRecords = 10000,
    .encoding = Encoding::RAW,
    .files = {CIFAR100_FILES, 2},
    .downloads = {CIFAR100_DOWNLOADS, 1},
    .addresses = {CIFAR_ADDRESSES, 1},
    .archivePrefix = "cifar-100-binary.tar",
    .archiveFolder = "cifar-100-binary",
    .folder = "cifar100",
    .labels = 2,
};

constexpr DatasetSource IDX_FOLDER = {
    .format = DatasetSource::IDX,
    .encoding = Encoding::RAW,
    .folder = "idx",
};

constexpr DatasetSource IMAGE_FOLDER = {
    .format = DatasetSource::FOLDER,
    .encoding = Encoding::JPEG,
    .folder = "imagenet-sample",
};

constexpr DatasetKind ROWS[] = {
    {"mnist",
        "Handwritten digits (LeCun, Cortes, Burges): 60,000 training and 10,000 validation images "
        "of 1×28×28, 10 classes.",
        &MNIST},
    {"fashion_mnist",
        "Articles of clothing (Xiao, Rasul, Vollgraf 2017): 60,000 training and 10,000 validation "
        "images of 1×28×28, 10 classes. Debian's package dataset-fashion-mnist contains it.",
        &FASHION_MNIST},
    {"cifar10",
        "Small photographs (Krizhevsky 2009): 50,000 training and 10,000 validation images of "
        "3×32×32, 10 classes.",
        &CIFAR10},
    {"cifar100",
        "Small photographs in 100 classes (Krizhevsky 2009), by their fine labels: 50,000 training "
        "and 10,000 validation images of 3×32×32.",
        &CIFAR100},
    {"idx",
        "Grey images of any size in MNIST's format, such as EMNIST, KMNIST or QMNIST. `source` is "
        "a folder with four files, which may be compressed with gzip: images and labels for "
        "training, and images and labels for validation. The names of the two training files "
        "contain `train`. The names of image files contain `images-idx3`, and those of label files "
        "`labels-idx1`.",
        &IDX_FOLDER},
    {"image_folder",
        "JPEG and PNG files in `source`: a folder, an archive (such as tar or zip), archives in a "
        "folder or in an archive, or a RecordIO file of MXNet (.rec). The class of an image comes "
        "from its sub-folder, from a file of labels (see `labels`), from the `.cls` file beside it "
        "(WebDataset), or from its record (RecordIO). `validation_source` says which images are "
        "used for validation.",
        &IMAGE_FOLDER},
};

}  // namespace

constinit const kj::ArrayPtr<const DatasetKind> DATASETS(ROWS);

kj::Array<kj::String> classNamesOf(const DatasetKind& kind) {
  return KJ_MAP(name, kind.source->classNames) {
    return kj::str(name);
  };
}

}  // namespace io
