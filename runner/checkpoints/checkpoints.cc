#include "runner/checkpoints/checkpoints.h"

#include <capnp/compat/json.h>
#include <capnp/message.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <kj/encoding.h>
#include <kj/vector.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <algorithm>

#include "configs/language/failure.h"
#include "io/checksum.h"
#include "runner/checkpoints/manifest.capnp.h"
#include "runner/system/files.h"
#include "runner/system/reason.h"
#include "runner/system/version.h"

namespace runner {

namespace {

constexpr kj::StringPtr PREFIX = "step-"_kj;
constexpr kj::StringPtr MANIFEST = "manifest.json"_kj;
constexpr kj::StringPtr SET_ASIDE = ".refused"_kj;
constexpr uint64_t MANIFEST_BYTES_MAX = 1 << 24;

kj::String pathOf(const RunFolder& folder, uint64_t step) {
  return kj::str(folder.checkpoints(), "/", PREFIX, step);
}

// Returns the steps of the folders of checkpoints, whole or not, the newest first.
kj::Vector<uint64_t> stepsIn(const RunFolder& folder) {
  kj::Vector<uint64_t> steps;
  if (!isFolder(folder.checkpoints())) return steps;
  for (auto& name: foldersIn(folder.checkpoints())) {
    if (!name.startsWith(PREFIX)) continue;
    uint64_t step = ::strtoull(name.slice(PREFIX.size()).cStr(), nullptr, 10);
    // Not names such as step-007.
    if (kj::str(PREFIX, step) == name) steps.add(step);
  }
  std::sort(steps.begin(), steps.end(), [](uint64_t a, uint64_t b) { return a > b; });
  return steps;
}

// Removes a folder of files. Its manifest goes first, so that a crash leaves no damaged checkpoint.
void removeCheckpoint(kj::StringPtr path) {
  ::unlink(kj::str(path, "/", MANIFEST).cStr());
  if (DIR* folder = ::opendir(path.cStr())) {
    KJ_DEFER(::closedir(folder));
    while (dirent* entry = ::readdir(folder)) ::unlink(kj::str(path, "/", entry->d_name).cStr());
  }
  ::rmdir(path.cStr());
}

struct Written {
  uint64_t bytes = 0;
  kj::String sha256;
};

Written writeFile(kj::StringPtr path, kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces) {
  writeWhole(path, pieces);
  Written written;
  io::Sha256 sum;
  for (auto& piece: pieces) {
    sum.update(piece);
    written.bytes += piece.size();
  }
  written.sha256 = kj::encodeHex(sum.finish());
  return written;
}

// Returns why the file at `path` is not the one of the manifest.
kj::Maybe<kj::String> whyNot(kj::StringPtr path, Manifest::File::Reader file) {
  int raw = ::open(path.cStr(), O_RDONLY | O_CLOEXEC);
  if (raw < 0) return kj::str("its ", file.getName(), " cannot be read: ", strerror(errno));
  kj::AutoCloseFd fd(raw);
  struct stat facts;
  if (::fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode) ||
      double(facts.st_size) != file.getBytes()) {
    return kj::str("its ", file.getName(), " does not have ", file.getBytes(), " bytes");
  }
  io::Sha256 sum;
  auto chunk = kj::heapArray<kj::byte>(1 << 20);
  for (;;) {
    ssize_t count = ::read(fd, chunk.begin(), chunk.size());
    if (count < 0) return kj::str("its ", file.getName(), " cannot be read: ", strerror(errno));
    if (count == 0) break;
    sum.update(chunk.slice(0, count));
  }
  if (kj::encodeHex(sum.finish()) == file.getSha256()) return nullptr;
  return kj::str("its ", file.getName(), " is damaged: its checksum is another one");
}

// Returns the point at which this checkpoint was made. Throws what is wrong with it.
SavedPoint read(kj::StringPtr path, kj::StringPtr digest) {
  auto text = readRegular(kj::str(path, "/", MANIFEST), MANIFEST_BYTES_MAX);
  capnp::MallocMessageBuilder message;
  auto manifest = message.initRoot<Manifest>();
  capnp::JsonCodec codec;
  codec.handleByAnnotation<Manifest>();
  auto decode = [&]() { codec.decode(text, manifest); };
  if (kj::runCatchingExceptions(decode) != nullptr) configs::fail("its manifest is damaged");
  if (manifest.getFormat() != CHECKPOINT_FORMAT) {
    configs::fail("it has format ", manifest.getFormat(), " of program version ",
        manifest.getVersion(), ", and this program reads format ", CHECKPOINT_FORMAT);
  }
  if (manifest.getDigest() != digest) configs::fail("it belongs to another experiment");
  for (auto file: manifest.getFiles().asReader()) {
    KJ_IF_MAYBE(why, whyNot(kj::str(path, "/", file.getName()), file)) configs::fail(*why);
  }
  return {kj::str(manifest.getDigest()), kj::str(manifest.getInstructionSet()), manifest.getEpoch(),
      manifest.getStep(), manifest.getRunS(), manifest.getEventsBytes()};
}

}  // namespace

kj::String workerPartName(uint rank) {
  return kj::str("worker-", rank, ".safetensors");
}

kj::String shardPartName(uint shard) {
  return kj::str("shard-", shard, ".safetensors");
}

uint64_t writeCheckpoint(const RunFolder& folder, const SavedPoint& point,
    kj::ArrayPtr<const CheckpointFile> files, uint keep) {
  auto path = pathOf(folder, point.step);
  makeFolders(path);
  // Of an attempt that another one has replaced.
  ::unlink(kj::str(path, "/", MANIFEST).cStr());
  capnp::MallocMessageBuilder message;
  auto manifest = message.initRoot<Manifest>();
  manifest.setFormat(CHECKPOINT_FORMAT);
  manifest.setVersion(VERSION);
  manifest.setDigest(point.digest);
  manifest.setInstructionSet(point.instructionSet);
  manifest.setEpoch(point.epoch);
  manifest.setStep(point.step);
  manifest.setTimeS(double(::time(nullptr)));
  manifest.setRunS(point.run_s);
  manifest.setEventsBytes(point.events_bytes);
  auto list = manifest.initFiles(files.size());
  uint64_t bytes = 0;
  for (auto i: kj::indices(files)) {
    auto written = writeFile(kj::str(path, "/", files[i].name), files[i].pieces);
    list[i].setName(files[i].name);
    list[i].setBytes(written.bytes);
    list[i].setSha256(written.sha256);
    bytes += written.bytes;
  }
  capnp::JsonCodec codec;
  codec.handleByAnnotation<Manifest>();
  codec.setPrettyPrint(true);
  writeWhole(kj::str(path, "/", MANIFEST), kj::str(codec.encode(manifest), "\n"));
  auto steps = stepsIn(folder);
  for (size_t i = keep; i < steps.size(); i++) removeCheckpoint(pathOf(folder, steps[i]));
  return bytes;
}

kj::Maybe<FoundCheckpoint> newestCheckpoint(
    const RunFolder& folder, kj::StringPtr digest, kj::FunctionParam<void(kj::String why)> refuse) {
  for (auto step: stepsIn(folder)) {
    auto path = pathOf(folder, step);
    // Without a manifest it is not complete: a kill has left it.
    if (::access(kj::str(path, "/", MANIFEST).cStr(), F_OK) != 0 && errno == ENOENT) continue;
    FoundCheckpoint found{kj::str(path)};
    auto attempt = [&]() { found.point = read(path, digest); };
    KJ_IF_MAYBE(e, kj::runCatchingExceptions(attempt)) {
      refuse(kj::str("the checkpoint ", path, " is not used: ", reasonOf(*e)));
    } else {
      return kj::mv(found);
    }
  }
  return nullptr;
}

void setAsideAfter(const RunFolder& folder, const FoundCheckpoint& kept) {
  for (auto step: stepsIn(folder)) {
    if (step <= kept.point.step) return;
    auto path = pathOf(folder, step);
    auto aside = kj::str(path, SET_ASIDE);
    removeCheckpoint(aside);
    if (::rename(path.cStr(), aside.cStr()) != 0) {
      configs::fail("cannot rename ", path, ": ", strerror(errno),
          "; remove it, so that the run can be continued from an older checkpoint");
    }
  }
}

}  // namespace runner
