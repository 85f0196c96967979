#include "runner/checkpoints/weights.h"

#include <errno.h>
#include <kj/debug.h>
#include <kj/vector.h>
#include <unistd.h>

#include "io/checksum.h"
#include "nn/loops/floats.h"
#include "runner/system/files.h"
#include "runner/text/json.h"

namespace runner {

namespace {

constexpr uint64_t FILE_BYTES_MAX = 1ull << 36;

Tensor tensorOf(kj::StringPtr name, kj::String shape, uint64_t size) {
  return {kj::str(name), "F32"_kj, kj::mv(shape), size * sizeof(float)};
}

}  // namespace

kj::String shapeOf(const nn::Key& key, const nn::Graph& graph) {
  if (key.role != nn::Key::WEIGHT) return kj::str(key.rows);
  auto& op = graph.nodes[key.node].op;
  if (op.is<nn::Conv2d>()) {
    uint kernel = op.get<nn::Conv2d>().kernel;
    return kj::str(key.rows, ",", key.cols / (kernel * kernel), ",", kernel, ",", kernel);
  }
  return kj::str(key.rows, ",", key.cols);
}

bool classNamesFit(const nn::Graph& graph) {
  return inJson(kj::strArray(graph.classNames, "\n")).size() <= CLASS_NAMES_BYTES_MAX;
}

kj::Array<kj::byte> weightsHead(
    const nn::Graph& graph, kj::StringPtr digest, kj::ArrayPtr<const Note> more) {
  kj::Vector<Tensor> tensors;
  for (auto& key: graph.keys) {
    tensors.add(tensorOf(key.name, shapeOf(key, graph), key.size));
  }
  for (auto& statistic: graph.statistics) {
    tensors.add(tensorOf(statistic.name, kj::str(statistic.size), statistic.size));
  }
  kj::Vector<Note> notes;
  notes.add(Note{"format"_kj, kj::str("pt")});
  notes.add(Note{"experiment_sha256"_kj, kj::str(digest)});
  if (graph.classNames.size() > 0 && classNamesFit(graph)) {
    notes.add(Note{"class_names"_kj, kj::strArray(graph.classNames, "\n")});
  }
  for (auto& note: more) notes.add(Note{note.name, kj::str(note.text)});
  return safetensorsHead(notes, tensors);
}

kj::String writeWeights(kj::StringPtr path, const nn::Graph& graph, kj::StringPtr digest,
    kj::ArrayPtr<const float> parameters, kj::ArrayPtr<const float> statistics,
    kj::ArrayPtr<const Note> notes) {
  KJ_REQUIRE(parameters.size() == graph.parameters);
  KJ_REQUIRE(statistics.size() == graph.statisticsSize);
  auto values = kj::heapArray<float>(parameters.size() + statistics.size());
  nn::copy(parameters, values.slice(0, parameters.size()));
  nn::copy(statistics, values.slice(parameters.size(), values.size()));

  auto head = weightsHead(graph, digest, notes);
  kj::ArrayPtr<const kj::byte> pieces[] = {head, values.asBytes()};
  writeWhole(path, kj::arrayPtr(pieces, kj::size(pieces)));
  return io::sha256Hex(values.asBytes());
}

kj::Maybe<kj::String> whyNotWeights(kj::StringPtr path, kj::StringPtr sha256) {
  if (::access(path.cStr(), F_OK) != 0 && errno == ENOENT) return kj::str(path, " is missing");
  auto text = readWhole(path, FILE_BYTES_MAX);
  KJ_IF_MAYBE(values, valuesIn(text.asBytes())) {
    if (io::sha256Hex(*values) == sha256) return nullptr;
  } else {
    return kj::str(path, " is cut short");
  }
  return kj::str(path, " does not hold the weights that the run has written");
}

}  // namespace runner
