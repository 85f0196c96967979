#include "runner/roles/weights.h"

#include <kj/debug.h>
#include <kj/vector.h>

#include "io/checksum.h"
#include "nn/loops/floats.h"
#include "runner/system/files.h"

namespace runner {

namespace {

// The size of the number in front of the header.
constexpr uint LENGTH_BYTES = 8;

constexpr uint64_t FILE_BYTES_MAX = 1ull << 36;

kj::String shapeOf(const nn::Key& key, const nn::Node& node) {
  if (key.role != nn::Key::WEIGHT) return kj::str(key.rows);
  if (node.op.is<nn::Conv2d>()) {
    uint kernel = node.op.get<nn::Conv2d>().kernel;
    return kj::str(key.rows, ",", key.cols / (kernel * kernel), ",", kernel, ",", kernel);
  }
  return kj::str(key.rows, ",", key.cols);
}

kj::String tensor(kj::StringPtr name, kj::StringPtr shape, uint64_t begin, uint64_t size) {
  return kj::str("\"", name, "\":{\"dtype\":\"F32\",\"shape\":[", shape, "],\"data_offsets\":[",
      begin * sizeof(float), ",", (begin + size) * sizeof(float), "]}");
}

}  // namespace

kj::String writeWeights(kj::StringPtr path, const nn::Graph& graph, kj::StringPtr digest,
    kj::ArrayPtr<const float> parameters, kj::ArrayPtr<const float> statistics) {
  KJ_REQUIRE(parameters.size() == graph.parameters);
  KJ_REQUIRE(statistics.size() == graph.statisticsSize);

  kj::Vector<kj::String> entries;
  entries.add(
      kj::str("\"__metadata__\":{\"format\":\"pt\",\"experiment_sha256\":\"", digest, "\"}"));
  for (auto& key: graph.keys) {
    entries.add(tensor(key.name, shapeOf(key, graph.nodes[key.node]), key.offset, key.size));
  }
  for (auto& statistic: graph.statistics) {
    entries.add(tensor(statistic.name, kj::str(statistic.size), graph.parameters + statistic.offset,
        statistic.size));
  }
  auto header = kj::str("{", kj::strArray(entries, ","), "}");
  // With this padding the values begin at a multiple of 8, as readers of the format prefer.
  auto padded = kj::str(header, kj::repeat(' ', (8 - header.size() % 8) % 8));

  auto values = kj::heapArray<float>(parameters.size() + statistics.size());
  nn::copy(parameters, values.slice(0, parameters.size()));
  nn::copy(statistics, values.slice(parameters.size(), values.size()));

  kj::byte length[LENGTH_BYTES];
  for (uint i = 0; i < LENGTH_BYTES; i++) length[i] = kj::byte(uint64_t(padded.size()) >> (8 * i));
  kj::ArrayPtr<const kj::byte> pieces[] = {
      kj::arrayPtr(length, sizeof(length)), padded.asBytes(), values.asBytes()};
  writeWhole(path, kj::arrayPtr(pieces, kj::size(pieces)));
  return io::sha256Hex(values.asBytes());
}

kj::Maybe<kj::String> whyNotWeights(kj::StringPtr path, kj::StringPtr sha256) {
  kj::String text;
  KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { text = readWhole(path, FILE_BYTES_MAX); })) {
    return kj::str(e->getDescription());
  }
  auto bytes = text.asBytes();
  if (bytes.size() < LENGTH_BYTES) return kj::str(path, " is cut short");
  uint64_t header_bytes = 0;
  for (uint i = 0; i < LENGTH_BYTES; i++) header_bytes |= uint64_t(bytes[i]) << (8 * i);
  auto rest = bytes.slice(LENGTH_BYTES, bytes.size());
  if (header_bytes > rest.size()) return kj::str(path, " is cut short");
  auto values = rest.slice(header_bytes, rest.size());
  if (io::sha256Hex(values) == sha256) return nullptr;
  return kj::str(path, " does not hold the weights that the run has written");
}

}  // namespace runner
