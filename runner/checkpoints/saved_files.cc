#include "runner/checkpoints/saved_files.h"

#include <errno.h>
#include <kj/vector.h>
#include <string.h>
#include <sys/stat.h>

#include "configs/language/failure.h"
#include "io/records/mapped_file.h"
#include "runner/logs/run_folder.h"
#include "runner/system/reason.h"

namespace runner {

namespace {

SavedFile readSavedFile(kj::StringPtr path) {
  auto lost = kj::str(path, " can no longer be read: it was cut short, or its disk fails");
  kj::Array<const kj::byte> bytes;
  kj::Array<FoundTensor> arrays;
  auto read = [&]() {
    bytes = io::mapFile(path, lost);
    arrays = tensorsIn(bytes);
  };
  KJ_IF_MAYBE(e, kj::runCatchingExceptions(read)) {
    configs::fail(path, " is not a file of weights or of a checkpoint: ", reasonOf(*e));
  }
  size_t begin = 0;
  KJ_IF_MAYBE(slash, path.findLast('/')) begin = *slash + 1;
  return {kj::str(path.slice(begin)), kj::mv(bytes), kj::mv(arrays)};
}

// Finds out from the files in `folder` where each key of the network is in flat arrays. Without
// these files, the commands can say less.
void findKeys(SavedFiles& saved, kj::StringPtr folder) {
  kj::runCatchingExceptions([&]() {
    saved.weights = readSavedFile(kj::str(folder, "/", CHECKPOINT_WEIGHTS));
    auto first = readSavedFile(kj::str(folder, "/", workerPartName(0)));
    for (auto& array: first.arrays) {
      if (array.name != "program.statistics") continue;
      uint64_t all = 0;
      for (auto& key: KJ_ASSERT_NONNULL(saved.weights).arrays) all += key.values.size();
      saved.parameters_bytes = all - kj::min(all, array.values.size());
    }
  });
}

SavedFiles filesOf(FoundCheckpoint checkpoint) {
  auto files = KJ_MAP(name, checkpoint.files) {
    return readSavedFile(checkpoint.file(name));
  };
  auto path = kj::str(checkpoint.path);
  SavedFiles saved{kj::mv(path), kj::mv(checkpoint), kj::mv(files), nullptr};
  findKeys(saved, saved.path);
  return saved;
}

SavedFiles fileAt(kj::StringPtr path) {
  kj::Vector<SavedFile> files;
  files.add(readSavedFile(path));
  auto folder = kj::str(".");
  KJ_IF_MAYBE(slash, path.findLast('/')) folder = kj::heapString(path.slice(0, *slash));
  SavedFiles saved{kj::str(path), nullptr, files.releaseAsArray(), nullptr};
  findKeys(saved, folder);
  return saved;
}

bool exists(kj::StringPtr path) {
  struct stat about;
  return ::stat(path.cStr(), &about) == 0;
}

// Returns the files of the run's newest checkpoint. Null if it has none.
kj::Maybe<SavedFiles> newestFilesOf(
    const RunFolder& folder, kj::FunctionParam<void(kj::String why)>& refuse) {
  constexpr uint TRIES = 20;
  for (uint i = 1;; i++) {
    auto before = checkpointedSteps(folder);
    kj::Vector<kj::String> refused;
    kj::Maybe<SavedFiles> files;
    auto problem = kj::runCatchingExceptions([&]() {
      auto found =
          newestCheckpoint(folder, nullptr, [&](kj::String why) { refused.add(kj::mv(why)); });
      KJ_IF_MAYBE(checkpoint, found) files = filesOf(kj::mv(*checkpoint));
    });
    // A run in progress removes a checkpoint when it has newer ones.
    bool isMissing = problem != nullptr || files == nullptr || refused.size() > 0;
    if (isMissing && i < TRIES && checkpointedSteps(folder) != before) continue;
    for (auto& why: refused) refuse(kj::mv(why));
    KJ_IF_MAYBE(e, problem) kj::throwFatalException(kj::mv(*e));
    return files;
  }
}

}  // namespace

SavedFiles readSavedFiles(kj::StringPtr path, kj::FunctionParam<void(kj::String why)> refuse) {
  struct stat about;
  if (::stat(path.cStr(), &about) != 0) {
    configs::fail("cannot find ", path, ": ", strerror(errno),
        ". Name a run, a checkpoint, or a file of one, such as "
        "runs/fashion_mnist_dist_sync/1/weights.safetensors");
  }
  if (!S_ISDIR(about.st_mode)) return fileAt(path);
  if (exists(kj::str(path, "/manifest.json"))) {
    kj::Maybe<FoundCheckpoint> checkpoint;
    KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { checkpoint = readCheckpoint(path); })) {
      configs::fail("the checkpoint ", path, " cannot be used: ", reasonOf(*e));
    }
    return filesOf(kj::mv(KJ_ASSERT_NONNULL(checkpoint)));
  }
  KJ_IF_MAYBE(saved, newestFilesOf({kj::str(path)}, refuse)) return kj::mv(*saved);
  auto weights = RunFolder{kj::str(path)}.weights();
  if (exists(weights)) return fileAt(weights);
  configs::fail(path,
      " is neither a checkpoint nor a run that has a checkpoint or weights. Name for example "
      "runs/fashion_mnist_dist_sync/1, or the file weights.safetensors in it");
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
  auto whole = [&]() {
    return kj::arr(FoundTensor{kj::str(), kj::str(array.type), kj::str(array.shape), array.values});
  };
  kj::Vector<FoundTensor> pieces;
  KJ_IF_MAYBE(weights, saved.weights) {
    uint64_t all = 0;
    for (auto& key: weights->arrays) all += key.values.size();
    uint64_t size = array.values.size(), border = saved.parameters_bytes;
    bool isOfParameters = size == border, isOfStatistics = size == all - border;
    if (border == 0 || array.type != "F32" || (!isOfParameters && !isOfStatistics)) return whole();
    uint64_t begin = isOfParameters ? 0 : border, end = begin + size;
    uint64_t at = 0;
    for (auto& key: weights->arrays) {
      uint64_t next = at + key.values.size();
      // The files may be of different checkpoints.
      bool isCut = (at < begin && next > begin) || (at < end && next > end);
      if (isCut) return whole();
      if (at >= begin && at < end) {
        auto values = array.values.slice(at - begin, next - begin);
        pieces.add(FoundTensor{kj::str(key.name), kj::str(array.type), kj::str(key.shape), values});
      }
      at = next;
    }
  }
  if (pieces.empty()) return whole();
  return pieces.releaseAsArray();
}

bool isMeasured(const FoundTensor& array) {
  kj::StringPtr name = array.name;
  return name.startsWith("store.traffic.") || (name.startsWith("worker.") && name.endsWith("_s"));
}

}  // namespace runner
