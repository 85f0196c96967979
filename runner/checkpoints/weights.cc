#include "runner/checkpoints/weights.h"

#include <errno.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <kj/encoding.h>
#include <kj/io.h>
#include <kj/vector.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "configs/language/failure.h"
#include "io/checksum.h"
#include "io/records/mapped_file.h"
#include "nn/loops/floats.h"
#include "runner/system/files.h"
#include "runner/system/reason.h"
#include "runner/text/json.h"

namespace runner {

namespace {

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
  // Opening a FIFO would wait for its writer.
  int raw = ::open(path.cStr(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (raw < 0 && errno == ENOENT) return kj::str(path, " is missing");
  if (raw < 0) configs::fail("cannot read ", path, ": ", strerror(errno));
  kj::AutoCloseFd fd(raw);
  struct stat about;
  KJ_SYSCALL(::fstat(fd, &about), path);
  if (!S_ISREG(about.st_mode)) configs::fail("cannot read ", path, ": it is not a regular file");
  if (about.st_size == 0) return kj::str(path, " is empty");
  auto chunk = kj::heapArray<kj::byte>(1 << 20);
  auto read = [&](uint64_t at) {
    auto n = ::pread(fd, chunk.begin(), chunk.size(), at);
    if (n < 0) configs::fail("cannot read ", path, ": ", strerror(errno));
    return chunk.slice(0, n);
  };
  // A disk that fails is noticed here: an error in a mapped file would end the process.
  read(0);
  uint64_t begin = 0;
  auto look = [&]() {
    auto lost = kj::str(path, " can no longer be read: it was cut short, or its disk fails");
    auto bytes = io::mapFile(path, lost);
    // The header tells the size of the file, so that a wrong one is not read as a whole.
    tensorsIn(bytes);
    begin = KJ_ASSERT_NONNULL(valuesIn(bytes)).begin() - bytes.begin();
  };
  KJ_IF_MAYBE(e, kj::runCatchingExceptions(look)) {
    return kj::str(path, " is damaged: ", reasonOf(*e));
  }
  io::Sha256 hash;
  for (uint64_t at = begin;;) {
    auto bytes = read(at);
    if (bytes.size() == 0) break;
    hash.update(bytes);
    at += bytes.size();
  }
  if (kj::encodeHex(hash.finish()) == sha256) return nullptr;
  return kj::str(path, " does not hold the weights that the run has written");
}

}  // namespace runner
