#include "runner/checkpoints/checkpoints.h"

#include <capnp/compat/json.h>
#include <capnp/message.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <kj/encoding.h>
#include <kj/map.h>
#include <kj/vector.h>
#include <stdio.h>
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
#include "runner/text/json.h"
#include "runner/text/numbers.h"

namespace runner {

namespace {

constexpr kj::StringPtr PREFIX = "step-"_kj;
constexpr kj::StringPtr MANIFEST = "manifest.json"_kj;
constexpr kj::StringPtr EVENTS = "events.jsonl"_kj;
constexpr kj::StringPtr SET_ASIDE = ".refused"_kj;
constexpr uint64_t MANIFEST_BYTES_MAX = 1 << 24;
constexpr uint SHA256_DIGITS = 64;
// How many files writeFiles() holds open at a time.
constexpr uint OPEN_FILES_MAX = 64;

kj::String pathOf(const RunFolder& folder, uint64_t step) {
  return kj::str(folder.checkpoints(), "/", PREFIX, step);
}

// Returns the steps of the folders of checkpoints, whole or not, the newest first.
kj::Vector<uint64_t> stepsIn(const RunFolder& folder) {
  kj::Vector<uint64_t> steps;
  // Only a missing folder means that there are no checkpoints. A link to a folder is followed, and
  // a folder that cannot be read is an error.
  if (::access(folder.checkpoints().cStr(), F_OK) != 0 && errno == ENOENT) return steps;
  for (auto& name: foldersIn(folder.checkpoints())) {
    if (!name.startsWith(PREFIX)) continue;
    KJ_IF_MAYBE(step, parseWhole(name.slice(PREFIX.size()))) {
      // Ignores names such as step-007.
      if (kj::str(PREFIX, *step) == name) steps.add(*step);
    }
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

// Syncs the folders above `path`, because they may be new. Ignores folders that cannot be synced.
void syncAbove(kj::StringPtr path) {
  for (size_t end = path.size(); end-- > 0;) {
    if (path[end] != '/') continue;
    auto above = end == 0 ? kj::str("/") : kj::heapString(path.slice(0, end));
    kj::runCatchingExceptions([&]() { syncPath(above); });
  }
  if (!path.startsWith("/")) kj::runCatchingExceptions([&]() { syncPath("."); });
}

// Writes the files to `folder`. Returns their sizes and checksums.
kj::Array<FileExtent> writeFiles(kj::StringPtr folder, kj::ArrayPtr<const CheckpointFile> files) {
  kj::Vector<FileExtent> extents;
  kj::Vector<kj::Own<WholeFile>> written;
  auto finish = [&]() {
    WholeFile::finish(written);
    written.clear();
  };
  for (auto& file: files) {
    auto whole = kj::heap<WholeFile>(kj::str(folder, "/", file.name));
    auto& extent = extents.add(FileExtent{kj::str(file.name), 0});
    for (auto& piece: file.pieces) {
      whole->append(piece);
      extent.crc32 = io::crc32(piece, extent.crc32);
      extent.bytes += piece.size();
    }
    written.add(kj::mv(whole));
    if (written.size() == OPEN_FILES_MAX) finish();
  }
  finish();
  return extents.releaseAsArray();
}

// Whether a manifest may name this file, which must be in the manifest's own folder.
bool isFileName(kj::StringPtr name) {
  bool isPlain = name.size() > 0 && name[0] != '.';
  for (char c: name) {
    bool isLetter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    isPlain = isPlain && (isLetter || c == '-' || c == '.');
  }
  return isPlain;
}

// Returns the checksum of a manifest with this text, leaving out `sum`: the checksum in the text,
// or its placeholder.
kj::String sumOf(kj::StringPtr text, kj::StringPtr sum) {
  auto found =
      static_cast<const char*>(::memmem(text.begin(), text.size(), sum.begin(), sum.size()));
  size_t at = found == nullptr ? text.size() : found - text.begin();
  io::Sha256 hash;
  hash.update(text.asBytes().slice(0, at));
  if (found != nullptr) hash.update(text.asBytes().slice(at + sum.size(), text.size()));
  return kj::encodeHex(hash.finish());
}

// Whether the folder is a checkpoint. An unfinished checkpoint of a killed process has no manifest.
bool hasManifest(kj::StringPtr path) {
  return ::access(kj::str(path, "/", MANIFEST).cStr(), F_OK) == 0 || errno != ENOENT;
}

// Returns why the system does not let this process open a file. Null if it does, or if the file is
// gone or something else is in its place.
kj::Maybe<kj::String> whyNotOpened(kj::StringPtr path) {
  int fd = ::open(path.cStr(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  int error = errno;
  if (fd >= 0) {
    kj::AutoCloseFd owned(fd);
    return nullptr;
  }
  bool isDamaged = error == ENOENT || error == ENOTDIR || error == ELOOP || error == ENXIO;
  if (isDamaged) return nullptr;
  return kj::str("cannot open ", path, ": ", strerror(error));
}

bool hasCheckpoints(const RunFolder& folder) {
  for (auto step: stepsIn(folder)) {
    if (hasManifest(pathOf(folder, step))) return true;
  }
  return false;
}

// Returns the codec of all manifests, which all threads share. Making one takes longer than parsing
// a manifest.
const capnp::JsonCodec& codecOfManifests() {
  static const auto codec = []() {
    auto made = kj::heap<capnp::JsonCodec>();
    made->handleByAnnotation<Manifest>();
    made->setPrettyPrint(true);
    return made;
  }();
  return *codec;
}

// Reads the manifest of the checkpoint in the folder `path` into `manifest`, and returns its text.
kj::String readManifest(kj::StringPtr path, Manifest::Builder manifest) {
  auto text = readRegular(kj::str(path, "/", MANIFEST), MANIFEST_BYTES_MAX);
  auto decode = [&]() {
    decodeJson(
        text, [&](kj::ArrayPtr<const char> json) { codecOfManifests().decode(json, manifest); });
  };
  if (kj::runCatchingExceptions(decode) != nullptr) configs::fail("its manifest is damaged");
  return text;
}

kj::String otherFormat(Manifest::Reader manifest) {
  return kj::str(" has format ", manifest.getFormat(), " of program version ",
      manifest.getVersion(), ", and this program reads format ", CHECKPOINT_FORMAT);
}

// Whether the folder has a manifest, and it says that the checkpoint ends an epoch.
bool endsEpoch(kj::StringPtr path) {
  capnp::MallocMessageBuilder message;
  auto manifest = message.initRoot<Manifest>();
  return kj::runCatchingExceptions([&]() { readManifest(path, manifest); }) == nullptr &&
         manifest.getEndsEpoch();
}

// Throws unless the file in `folder` has the size and the checksum that the manifest names.
void check(kj::StringPtr folder, Manifest::File::Reader file) {
  auto name = kj::str("its ", file.getName());
  struct stat facts;
  if (::stat(kj::str(folder, "/", file.getName()).cStr(), &facts) != 0) {
    configs::fail(name, " cannot be read: ", strerror(errno));
  }
  if (!S_ISREG(facts.st_mode) || double(facts.st_size) != file.getBytes()) {
    configs::fail(name, " does not have ", file.getBytes(), " bytes");
  }
  if (GrowingFiles(folder).sumOf(file.getName(), facts.st_size, name) != file.getCrc32()) {
    configs::fail(name, " is damaged: its checksum does not match the manifest");
  }
}

// Returns the checksum of a run's events up to a checkpoint.
uint32_t sumOfEvents(GrowingFiles& logs, uint64_t bytes) {
  // A run without events has no events.jsonl.
  if (bytes == 0) return 0;
  return logs.sumOf(EVENTS, bytes, "the run's events.jsonl");
}

void set(Manifest::File::Builder target, const FileExtent& file) {
  target.setName(file.name);
  target.setBytes(file.bytes);
  target.setCrc32(file.crc32);
}

// Prepares the folder of a checkpoint. An earlier attempt may have left an unfinished one.
void beginFolder(const RunFolder& run, kj::StringPtr path) {
  if (!makeFolder(run.checkpoints()) || !makeFolder(path)) {
    configs::fail("the folder of the run, ", run.path, ", was removed or renamed during the run");
  }
  ::unlink(kj::str(path, "/", MANIFEST).cStr());
}

void describe(Manifest::Builder manifest, const SavedPoint& point) {
  manifest.setFormat(CHECKPOINT_FORMAT);
  manifest.setVersion(VERSION);
  manifest.setDigest(point.digest);
  manifest.setInstructionSet(point.instructionSet);
  manifest.setEpoch(point.epoch);
  manifest.setStep(point.step);
  manifest.setTimeS(double(::time(nullptr)));
  manifest.setRunS(point.run_s);
  manifest.setEventsBytes(point.events_bytes);
  manifest.setEventsCrc32(point.events_crc32);
  manifest.setEndsEpoch(point.endsEpoch);
}

// Returns the bytes of all files together.
uint64_t setFiles(Manifest::Builder manifest, kj::ArrayPtr<const FileExtent> files) {
  auto list = manifest.initFiles(files.size());
  uint64_t bytes = 0;
  for (auto i: kj::indices(files)) {
    set(list[i], files[i]);
    bytes += files[i].bytes;
  }
  return bytes;
}

// Syncs the events that belong to the checkpoint to the disk, and checks them. At the end of an
// epoch, checks all of them, and not only those since the last checkpoint.
void syncEvents(const RunFolder& folder, const SavedPoint& point, GrowingFiles& logs) {
  logs.sync(EVENTS);
  if (point.endsEpoch) logs.forgetSumOf(EVENTS);
  if (sumOfEvents(logs, point.events_bytes) != point.events_crc32) {
    configs::fail(folder.events(), " does not hold what the run has written to it: its disk has ",
        "lost a part (see `dmesg`), or another program has changed the file");
  }
}

// Records the logs with their checksums, if all of them can be read.
void setLogs(Manifest::Builder manifest, const LogExtents& logs, GrowingFiles& files) {
  manifest.setLogStyle(logs.style);
  auto list = manifest.initLogs(logs.files.size());
  auto note = [&]() {
    for (auto i: kj::indices(logs.files)) {
      auto& file = logs.files[i];
      set(list[i], {kj::str(file.name), file.bytes, files.sumOf(file.name, file.bytes, file.name)});
    }
  };
  // Without this list, --resume makes the logs again from the events.
  if (kj::runCatchingExceptions(note) != nullptr) manifest.initLogs(0);
}

// Syncs the name of the checkpoint's folder to the disk. For the run's first checkpoint, also syncs
// the names of the folders above.
void syncNames(const RunFolder& folder, bool isFirst) {
  syncPath(folder.checkpoints());
  if (!isFirst) return;
  syncPath(folder.path);
  syncAbove(folder.path);
}

// Writes the manifest, which makes the folder a checkpoint.
void seal(kj::StringPtr path, Manifest::Builder manifest) {
  auto text = [&]() { return kj::str(codecOfManifests().encode(manifest), "\n"); };
  // The placeholder is as long as a checksum, so that the encoder breaks lines at the same places.
  auto noSum = kj::str(kj::repeat('0', SHA256_DIGITS));
  manifest.setSha256(noSum);
  manifest.setSha256(sumOf(text(), noSum));
  writeWhole(kj::str(path, "/", MANIFEST), text());
}

// Of the checkpoints up to step `newest`, keeps the newest `keep` and the newest that ends an
// epoch. Removes all others, and unfinished ones that killed processes have left.
void removeOld(const RunFolder& folder, uint64_t newest, uint keep) {
  uint kept = 0;
  bool hasEnd = false;
  for (auto step: stepsIn(folder)) {
    if (step > newest) continue;
    auto each = pathOf(folder, step);
    bool isOne = hasManifest(each);
    bool isEnd = isOne && !hasEnd && endsEpoch(each);
    if (isOne && kept < keep) {
      kept++;
    } else if (!isEnd) {
      removeCheckpoint(each);
    }
    hasEnd = hasEnd || isEnd;
  }
}

// Whether a run may have a log of this name: log.txt, worker-0.log, tensorboard/worker-0/….
bool isLogName(kj::StringPtr name) {
  auto isPlain = [](kj::ArrayPtr<const char> part) {
    if (part.size() == 0 || part[0] == '.') return false;
    return ::memchr(part.begin(), '/', part.size()) == nullptr;
  };
  constexpr kj::StringPtr OF_BOARD = "tensorboard/"_kj;
  if (!name.startsWith(OF_BOARD)) return name != EVENTS && isPlain(name);
  auto inside = name.slice(OF_BOARD.size());
  KJ_IF_MAYBE(slash, inside.findFirst('/')) {
    return isPlain(inside.slice(0, *slash)) && isPlain(inside.slice(*slash + 1));
  }
  return false;
}

// Returns no files if the manifest names something that is not a log. The logs are then made again.
LogExtents logsOf(Manifest::Reader manifest) {
  LogExtents logs{kj::str(manifest.getLogStyle()), nullptr};
  kj::Vector<FileExtent> files;
  kj::HashSet<kj::String> folders;  // each curve of TensorBoard has one file
  for (auto file: manifest.getLogs()) {
    double bytes = file.getBytes();
    kj::StringPtr name = file.getName();
    auto folder = kj::str(name.slice(0, name.findLast('/').orDefault(name.size())));
    bool isRight = isLogName(name) && bytes >= 0 && bytes <= double(1ull << 53);
    if (!isRight || folders.contains(folder)) return logs;
    folders.insert(kj::mv(folder));
    files.add(FileExtent{kj::str(name), uint64_t(bytes), file.getCrc32()});
  }
  logs.files = files.releaseAsArray();
  return logs;
}

}  // namespace

kj::String workerPartName(uint rank) {
  return kj::str("worker-", rank, ".safetensors");
}

kj::String shardPartName(uint shard) {
  return kj::str("shard-", shard, ".safetensors");
}

uint64_t writeCheckpoint(const RunFolder& folder, const SavedPoint& point,
    kj::ArrayPtr<const CheckpointFile> files, uint keep, GrowingFiles& logs) {
  auto path = pathOf(folder, point.step);
  // The process that wrote the first checkpoint has synced the folders above.
  bool isFirst = !hasCheckpoints(folder);
  beginFolder(folder, path);
  KJ_ON_SCOPE_FAILURE(removeCheckpoint(path));
  capnp::MallocMessageBuilder message;
  auto manifest = message.initRoot<Manifest>();
  describe(manifest, point);
  uint64_t bytes = setFiles(manifest, writeFiles(path, files));
  syncEvents(folder, point, logs);
  setLogs(manifest, point.logs, logs);
  syncNames(folder, isFirst);
  seal(path, manifest);
  removeOld(folder, point.step, keep);
  return bytes;
}

FoundCheckpoint readCheckpoint(kj::StringPtr path) {
  capnp::MallocMessageBuilder message;
  auto manifest = message.initRoot<Manifest>();
  auto text = readManifest(path, manifest);
  if (sumOf(text, manifest.getSha256()) != manifest.getSha256()) {
    configs::fail("its manifest is damaged: its checksum does not match");
  }
  if (manifest.getFormat() != CHECKPOINT_FORMAT) {
    configs::fail("it", otherFormat(manifest));
  }
  // A double can represent every whole number up to this one.
  constexpr double EVENTS_BYTES_MAX = 1ull << 53;
  double events_bytes = manifest.getEventsBytes();
  if (!(events_bytes >= 0 && events_bytes <= EVENTS_BYTES_MAX)) {
    configs::fail("its manifest is damaged: it states ", events_bytes, " bytes of events");
  }
  kj::Vector<kj::String> files;
  for (auto file: manifest.getFiles().asReader()) {
    if (!isFileName(file.getName())) {
      configs::fail("its manifest names a file that is not one of a checkpoint");
    }
    check(path, file);
    files.add(kj::str(file.getName()));
  }
  return {kj::str(path),
      {kj::str(manifest.getDigest()), kj::str(manifest.getInstructionSet()), manifest.getEpoch(),
          manifest.getStep(), manifest.getRunS(), uint64_t(events_bytes), manifest.getEventsCrc32(),
          logsOf(manifest), manifest.getEndsEpoch()},
      kj::str(manifest.getVersion()), manifest.getTimeS(), files.releaseAsArray()};
}

kj::Array<uint64_t> checkpointedSteps(const RunFolder& folder) {
  kj::Vector<uint64_t> steps;
  for (auto step: stepsIn(folder)) {
    if (hasManifest(pathOf(folder, step))) steps.add(step);
  }
  return steps.releaseAsArray();
}

kj::Maybe<FoundCheckpoint> newestCheckpoint(const RunFolder& folder,
    kj::Maybe<kj::StringPtr> digest, kj::FunctionParam<void(kj::String why)> refuse,
    Standing standing) {
  GrowingFiles logs(folder.path);
  for (auto step: checkpointedSteps(folder)) {
    auto path = pathOf(folder, step);
    if (standing == Standing::AT_EPOCH_END && !endsEpoch(path)) continue;
    kj::Maybe<FoundCheckpoint> found;
    auto attempt = [&]() {
      auto read = readCheckpoint(path);
      KJ_IF_MAYBE(wanted, digest) {
        if (read.point.digest != *wanted) configs::fail("it belongs to another experiment");
      }
      if (read.point.step != step) configs::fail("it belongs to step ", read.point.step);
      if (sumOfEvents(logs, read.point.events_bytes) != read.point.events_crc32) {
        configs::fail("the run's events.jsonl is damaged: its checksum does not match");
      }
      found = kj::mv(read);
    };
    KJ_IF_MAYBE(e, kj::runCatchingExceptions(attempt)) {
      refuse(kj::str("the checkpoint ", path, " is not used: ", reasonOf(*e)));
    } else {
      return found;
    }
  }
  return nullptr;
}

kj::Maybe<kj::String> whyForeign(const RunFolder& folder, kj::StringPtr digest) {
  for (auto step: checkpointedSteps(folder)) {
    auto path = pathOf(folder, step);
    capnp::MallocMessageBuilder message;
    auto manifest = message.initRoot<Manifest>();
    bool isWhole = false;
    auto read = [&]() {
      auto text = readManifest(path, manifest);
      isWhole = sumOf(text, manifest.getSha256()) == manifest.getSha256();
    };
    if (kj::runCatchingExceptions(read) != nullptr || !isWhole) continue;
    if (manifest.getFormat() != CHECKPOINT_FORMAT) return kj::str(path, otherFormat(manifest));
    if (manifest.getDigest() != digest) return kj::str(path, " belongs to another experiment");
  }
  return nullptr;
}

kj::Maybe<kj::String> whyUnreadable(const RunFolder& folder) {
  for (auto step: stepsIn(folder)) {
    auto path = pathOf(folder, step);
    KJ_IF_MAYBE(why, whyNotOpened(kj::str(path, "/", MANIFEST))) return kj::mv(*why);
    capnp::MallocMessageBuilder message;
    auto manifest = message.initRoot<Manifest>();
    if (kj::runCatchingExceptions([&]() { readManifest(path, manifest); }) != nullptr) continue;
    for (auto file: manifest.getFiles().asReader()) {
      if (!isFileName(file.getName())) continue;
      KJ_IF_MAYBE(why, whyNotOpened(kj::str(path, "/", file.getName()))) return kj::mv(*why);
    }
  }
  return nullptr;
}

void requireContinuable(const RunFolder& folder, kj::StringPtr digest) {
  auto foreign = whyForeign(folder, digest), unreadable = whyUnreadable(folder);
  if (foreign == nullptr && unreadable == nullptr) return;
  if (newestCheckpoint(folder, digest, [](kj::String) {}) != nullptr) return;
  KJ_IF_MAYBE(why, foreign) {
    configs::fail("cannot continue the run in ", folder.path, ": ", *why, ". Continue it with the ",
        "program and the file that made it, or move the folder elsewhere to begin again");
  }
  configs::fail("cannot continue the run in ", folder.path, ": ", KJ_ASSERT_NONNULL(unreadable),
      ". Make the files of ",
      "its checkpoints readable, or move the folder elsewhere to begin again");
}

void setAsideAfter(const RunFolder& folder, kj::Maybe<const FoundCheckpoint&> kept) {
  for (auto step: stepsIn(folder)) {
    KJ_IF_MAYBE(oldest, kept) {
      if (step <= oldest->point.step) return;
    }
    auto path = pathOf(folder, step);
    if (!hasManifest(path)) {
      removeCheckpoint(path);
      continue;
    }
    auto aside = kj::str(path, SET_ASIDE);
    removeCheckpoint(aside);
    if (::rename(path.cStr(), aside.cStr()) != 0) {
      configs::fail("cannot rename ", path, ": ", strerror(errno),
          "; remove it, so that the run can be continued from an older checkpoint");
    }
  }
}

}  // namespace runner
