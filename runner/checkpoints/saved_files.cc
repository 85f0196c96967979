#include "runner/checkpoints/saved_files.h"

#include <kj/vector.h>
#include <string.h>
#include <sys/stat.h>

#include "configs/language/failure.h"
#include "runner/system/files.h"
#include "runner/system/reason.h"

namespace runner {

namespace {

constexpr uint64_t FILE_BYTES_MAX = 1ull << 36;

SavedFile readSavedFile(kj::StringPtr path) {
  auto bytes = readRegular(path, FILE_BYTES_MAX);
  kj::Array<FoundTensor> arrays;
  KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { arrays = tensorsIn(bytes.asBytes()); })) {
    configs::fail(path, " is not a file of weights or of a checkpoint: ", reasonOf(*e));
  }
  size_t begin = 0;
  KJ_IF_MAYBE(slash, path.findLast('/')) begin = *slash + 1;
  return {kj::str(path.slice(begin)), kj::mv(bytes), kj::mv(arrays)};
}

kj::Maybe<SavedFile> weightsIn(kj::StringPtr folder) {
  kj::Maybe<SavedFile> weights;
  // Without them, the commands say less.
  kj::runCatchingExceptions(
      [&]() { weights = readSavedFile(kj::str(folder, "/", CHECKPOINT_WEIGHTS)); });
  return weights;
}

SavedFiles filesOf(FoundCheckpoint checkpoint) {
  auto files = KJ_MAP(name, checkpoint.files) {
    return readSavedFile(checkpoint.file(name));
  };
  auto path = kj::str(checkpoint.path);
  auto weights = weightsIn(path);
  return {kj::mv(path), kj::mv(checkpoint), kj::mv(files), kj::mv(weights)};
}

bool exists(kj::StringPtr path) {
  struct stat about;
  return ::stat(path.cStr(), &about) == 0;
}

bool isStatistic(kj::StringPtr key) {
  return key.endsWith("_moving_mean") || key.endsWith("_moving_var");
}

}  // namespace

SavedFiles readSavedFiles(kj::StringPtr path, kj::FunctionParam<void(kj::String why)> refuse) {
  struct stat about;
  if (::stat(path.cStr(), &about) == 0 && !S_ISDIR(about.st_mode)) {
    kj::Vector<SavedFile> files;
    files.add(readSavedFile(path));
    auto folder = kj::str(".");
    KJ_IF_MAYBE(slash, path.findLast('/')) folder = kj::heapString(path.slice(0, *slash));
    return {kj::str(path), nullptr, files.releaseAsArray(), weightsIn(folder)};
  }
  if (exists(kj::str(path, "/manifest.json"))) {
    kj::Maybe<FoundCheckpoint> checkpoint;
    KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { checkpoint = readCheckpoint(path); })) {
      configs::fail("the checkpoint ", path, " cannot be used: ", reasonOf(*e));
    }
    return filesOf(kj::mv(KJ_ASSERT_NONNULL(checkpoint)));
  }
  KJ_IF_MAYBE(checkpoint, newestCheckpoint({kj::str(path)}, nullptr, refuse)) {
    return filesOf(kj::mv(*checkpoint));
  }
  configs::fail(path,
      " is not a checkpoint, not a file of one, and not a run with one; name for example "
      "runs/fashion_mnist_dist_sync/1");
}

kj::Maybe<double> numberIn(const SavedFile& file, kj::StringPtr name) {
  for (auto& array: file.arrays) {
    uint64_t whole;
    double real;
    if (array.name != name || array.values.size() != sizeof(whole)) continue;
    if (array.type == "U64") {
      memcpy(&whole, array.values.begin(), sizeof(whole));
      return double(whole);
    }
    if (array.type != "F64") continue;
    memcpy(&real, array.values.begin(), sizeof(real));
    return real;
  }
  return nullptr;
}

kj::Array<FoundTensor> piecesByKey(const FoundTensor& array, const SavedFiles& saved) {
  kj::Vector<FoundTensor> pieces;
  KJ_IF_MAYBE(weights, saved.weights) {
    for (bool ofStatistics: {false, true}) {
      uint64_t at = 0;
      pieces.clear();
      for (auto& key: weights->arrays) {
        if (isStatistic(key.name) != ofStatistics) continue;
        uint64_t end = at + key.values.size();
        if (end > array.values.size()) {
          at = array.values.size() + 1;
          break;
        }
        pieces.add(FoundTensor{kj::str(key.name), kj::str(array.type), kj::str(key.shape),
            array.values.slice(at, end)});
        at = end;
      }
      if (array.type == "F32" && at > 0 && at == array.values.size()) {
        return pieces.releaseAsArray();
      }
    }
  }
  pieces.clear();
  pieces.add(FoundTensor{kj::str(), kj::str(array.type), kj::str(array.shape), array.values});
  return pieces.releaseAsArray();
}

bool isMeasured(const FoundTensor& array) {
  kj::StringPtr name = array.name;
  return name.startsWith("store.traffic.") || (name.startsWith("worker.") && name.endsWith("_s"));
}

}  // namespace runner
