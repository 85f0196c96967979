#include "runner/export/torch_module.h"

#include <kj/debug.h>
#include <kj/vector.h>
#include <string.h>

#include "runner/checkpoints/safetensors.h"
#include "runner/export/torch_names.h"
#include "runner/export/torch_network.h"
#include "runner/export/torch_preprocess.h"
#include "runner/system/version.h"

namespace runner {

namespace {

constexpr kj::StringPtr IMPORTS = R"(
import json
import pathlib
import sys

import torch
from torch import nn
from torch.nn import functional as F

WEIGHTS = pathlib.Path(__file__).with_suffix(".safetensors")
)"_kj;

constexpr kj::StringPtr READING = R"(
def read_tensors():
    """Returns the tensors in the file of weights, by name."""
    data = bytearray(WEIGHTS.read_bytes())
    begin = 8 + int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8:begin]).items():
        if name != "__metadata__":
            first, end = entry["data_offsets"]
            values = torch.frombuffer(data, dtype=torch.float32, count=(end - first) // 4,
                                      offset=begin + first)
            tensors[name] = values.reshape(entry["shape"])
    return tensors


def load():
    """Returns the trained network, in eval mode."""
    network = Network()
    tensors = read_tensors()
)"_kj;

constexpr kj::StringPtr MAIN = R"(    network.load_state_dict(tensors)
    return network.eval()


def main():
    """Prints the most likely classes of an image."""
    if len(sys.argv) != 2:
        sys.exit(f"usage: python {sys.argv[0]} IMAGE")
    from PIL import Image
    try:
        network = load()
        image = preprocess(Image.open(sys.argv[1]))
    except (OSError, ValueError) as error:
        sys.exit(f"error: {error}")
    with torch.inference_mode():
        probabilities = network(image[None])[0].softmax(0)
    for value, label in zip(*probabilities.topk(min(5, len(CLASS_NAMES)))):
        print(f"{value:.4f}  {CLASS_NAMES[label]}")


if __name__ == "__main__":
    main()
)"_kj;

kj::String introduction(const ExportedNetwork& network) {
  auto from =
      network.digest.size() > 0
          ? kj::str("\n\nIt comes from the experiment with the sha256\n", network.digest, ".")
          : kj::str();
  return kj::str("\"\"\"A trained network, exported by ", VERSION, ".", from, R"(

load() returns it as a PyTorch module. preprocess() makes what it takes of an image:

    network = load()
    logits = network(preprocess(PIL.Image.open("image.jpg"))[None])

As a program, this script prints the five most likely classes of an image. It needs PyTorch, and
Pillow to open images. The weights are in the file of the same name that ends in .safetensors.
"""
)");
}

kj::String classNamesOf(const ExportedNetwork& network) {
  auto names = network.classNames();
  if (names.size() == 0) {
    return kj::str("CLASS_NAMES = [str(label) for label in range(", network.graph.classes, ")]\n");
  }
  auto lines = KJ_MAP(name, names) {
    return kj::str("    ", pythonText(name), ",\n");
  };
  return kj::str("CLASS_NAMES = [\n", kj::strArray(lines, ""), "]\n");
}

kj::StringPtr roleOf(nn::Key::Role role) {
  switch (role) {
    case nn::Key::WEIGHT:
    case nn::Key::GAMMA:
      return "weight"_kj;
    case nn::Key::BIAS:
    case nn::Key::BETA:
      return "bias"_kj;
  }
  KJ_UNREACHABLE;
}

// Collects tensors and their values.
struct Values {
  kj::Vector<Tensor> tensors;
  kj::Vector<kj::ArrayPtr<const kj::byte>> bytes;

  void add(kj::String name, kj::ArrayPtr<const uint64_t> shape, kj::ArrayPtr<const float> values) {
    tensors.add(
        Tensor{kj::mv(name), "F32"_kj, kj::strArray(shape, ","), values.size() * sizeof(float)});
    bytes.add(values.asBytes());
  }
};

}  // namespace

kj::String torchScript(const ExportedNetwork& network, const Preprocessing& preprocessing) {
  auto names = torchNames(network.graph);
  auto dropMean = preprocessing.hasMeanImage()
                      ? kj::str("    del tensors[\"", MEAN_IMAGE, "\"]  # see preprocess()\n")
                      : kj::str();
  return kj::str(introduction(network), IMPORTS, classNamesOf(network), "\n\n",
      torchNetwork(network.graph, names), "\n\n", torchPreprocess(preprocessing), "\n", READING,
      dropMean, MAIN);
}

kj::Array<kj::byte> torchWeights(
    const ExportedNetwork& network, const Preprocessing& preprocessing) {
  auto& graph = network.graph;
  auto names = torchNames(graph);
  auto keyValues = KJ_MAP(key, graph.keys) {
    return network.valuesOf(key);
  };
  Values values;
  for (auto i: kj::indices(graph.keys)) {
    auto& key = graph.keys[i];
    values.add(kj::str(names[key.node], ".", roleOf(key.role)), network.shapeOf(key), keyValues[i]);
  }
  for (auto i: kj::indices(graph.statistics)) {
    auto& statistic = graph.statistics[i];
    bool isMean = i == graph.nodes[statistic.node].statistics.begin;
    uint64_t size = statistic.size;
    values.add(kj::str(names[statistic.node], isMean ? ".running_mean" : ".running_var"),
        kj::arrayPtr(&size, 1), network.valuesOf(statistic));
  }
  auto shape = graph.inputShape();
  if (preprocessing.hasMeanImage()) {
    values.add(kj::str(MEAN_IMAGE), kj::arr<uint64_t>(shape.channels, shape.height, shape.width),
        preprocessing.means);
  }

  kj::Vector<Note> notes;
  notes.add(Note{"format"_kj, kj::str("pt")});
  if (network.digest.size() > 0) notes.add(Note{"experiment_sha256"_kj, kj::str(network.digest)});
  if (graph.classNames.size() > 0) {
    notes.add(Note{"class_names"_kj, kj::strArray(network.classNames(), "\n")});
  }
  notes.add(Note{EXPORT_NOTE, preprocessing.toJson()});
  auto head = safetensorsHead(notes, values.tensors);
  size_t size = head.size();
  for (auto& bytes: values.bytes) size += bytes.size();
  auto file = kj::heapArray<kj::byte>(size);
  auto to = file.begin();
  auto append = [&](kj::ArrayPtr<const kj::byte> bytes) {
    memcpy(to, bytes.begin(), bytes.size());
    to += bytes.size();
  };
  append(head);
  for (auto& bytes: values.bytes) append(bytes);
  return file;
}

}  // namespace runner
