#include "io/datasets/import_into.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <kj/vector.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "configs/language/environment.h"
#include "configs/language/failure.h"
#include "io/datasets/bad_images.h"
#include "io/datasets/import.h"
#include "io/datasets/remote_images.h"
#include "io/paths.h"

namespace io {

namespace {

[[noreturn]] void failInTheWay(const DataConfig& config, kj::StringPtr path) {
  configs::fail("cannot make the folder ", path, ": a file has that name. Rename it, or set ",
      config.names.folder, " to another folder");
}

// Removes what is at `path`, if anything is. KJ's paths are of no use here: in them a `..` after a
// symbolic link leads to another place than in the file system.
void removeAll(kj::StringPtr path) {
  std::error_code problem;
  std::filesystem::remove_all(path.cStr(), problem);
  if (problem) configs::fail("cannot remove ", path, ": ", strerror(problem.value()));
}

// Returns the sorted names of everything in `folder`.
kj::Array<kj::String> namesIn(kj::StringPtr folder) {
  std::error_code problem;
  kj::Vector<kj::String> names;
  std::filesystem::directory_iterator end;
  for (std::filesystem::directory_iterator entry(folder.cStr(), problem); !problem && entry != end;
       entry.increment(problem)) {
    names.add(kj::str(entry->path().filename().c_str()));
  }
  if (problem) configs::fail("cannot read the folder ", folder, ": ", strerror(problem.value()));
  std::sort(names.begin(), names.end());
  return names.releaseAsArray();
}

// A file, beside the databases, with sentences about everything that an import left out, one per
// line. Absent if it left out nothing.
constexpr kj::StringPtr LEFT_OUT_FILE = "left_out.txt"_kj;
constexpr size_t LEFT_OUT_BYTES_MAX = size_t(1) << 30;

void writeLeftOut(kj::StringPtr folder, kj::ArrayPtr<const kj::String> sentences) {
  auto path = kj::str(folder, "/", LEFT_OUT_FILE);
  if (sentences.size() == 0) {
    // A killed import may have left this file, with sentences that are no longer true.
    removeAll(path);
    return;
  }
  // Without it, an import that is complete after a power loss would seem to have left out nothing.
  writeSynced(path, kj::str(kj::strArray(sentences, "\n"), "\n"));
}

// This file is in a folder while an import writes the folder. A folder without it is not ours. It
// holds the mark of the import, by which another process decides whether it can continue the
// import.
constexpr kj::StringPtr UNFINISHED_FILE = "unfinished"_kj;
constexpr size_t MARK_BYTES_MAX = 4096;

// Returns the mark of this import: the name of the records, a space, and the boot of the machine.
// An import can continue that of a killed process with the same mark. It cannot do so after a
// reboot, because files that were not synced may have holes after a power failure. Empty if this
// import can never continue another.
kj::String markOf(const DataConfig& config, kj::StringPtr records) {
  constexpr kj::StringPtr BOOT = "/proc/sys/kernel/random/boot_id"_kj;
  std::string boot;
  std::getline(std::ifstream(BOOT.cStr()), boot);
  bool isFolder = config.dataset->source->format == DatasetSource::FOLDER;
  if (!isFolder || boot.empty()) return kj::String();
  return kj::str(records, " ", boot.c_str());
}

// Prepares the folder `part` for an import. Removes everything that another import has left there,
// unless it has the same `mark`. Downloads of `remote` stay unless the machine was rebooted,
// because another import of the same files may have begun them. Throws if the folder holds anything
// that is not ours.
void takeOver(const DataConfig& config, kj::ArrayPtr<const RemoteFile> remote, kj::StringPtr part,
    kj::StringPtr mark) {
  auto names = namesIn(part);
  if (names.size() > 0 && !hasFile(part, UNFINISHED_FILE)) {
    configs::fail("the folder ", part, " is in the way: it contains ", printable(names[0]),
        ", so it was not left by an unfinished import. Rename or remove it, or set ",
        config.names.folder, " to another folder");
  }
  auto markFile = kj::str(part, "/", UNFINISHED_FILE);
  bool isSameStart = false;
  if (names.size() > 0 && mark.size() > 0) {
    auto before = kj::heapString(readFile(markFile, MARK_BYTES_MAX).asChars());
    if (before == mark) return;
    isSameStart = before.endsWith(mark.slice(KJ_ASSERT_NONNULL(mark.findFirst(' '))));
  }
  auto stays = [&](kj::StringPtr name) {
    if (name == UNFINISHED_FILE) return true;
    for (auto& file: remote) {
      if (isSameStart && name == downloadFolder(file)) return true;
    }
    return false;
  };
  // Clears the mark first, so that nobody continues an import while parts of it are being removed.
  writeText(markFile, ""_kj);
  for (auto& name: names) {
    if (!stays(name)) removeAll(kj::str(part, "/", name));
  }
  writeText(markFile, mark);
}

// Makes the folder `part`, in which `into` will be made, as takeOver() does. The result holds the
// lock of the folder; a killed process leaves no lock. Throws if another process has the lock, or
// if the folder is not an import's.
kj::AutoCloseFd takeFolder(const DataConfig& config, kj::ArrayPtr<const RemoteFile> remote,
    kj::StringPtr part, kj::StringPtr into, kj::StringPtr mark) {
  for (;;) {
    if (pathKind(part) == PathKind::FILE) failInTheWay(config, part);
    naming(part, into, [&]() { makeFolders(config, part); });
    int fd = ::open(part.cStr(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    // The owner has just moved or removed the folder.
    if (fd < 0 && errno == ENOENT) continue;
    if (fd < 0) configs::fail("cannot open the folder ", part, ": ", strerror(errno));
    kj::AutoCloseFd owned(fd);
    // On a file system without such locks, nothing keeps two processes apart.
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      configs::fail("another process is writing ", into, ". Wait until it has ended, or set ",
          config.names.folder, " to another folder");
    }
    if (!isOpenedAt(fd, part)) continue;
    takeOver(config, remote, part, mark);
    return owned;
  }
}

std::atomic<uint> imports(0);

}  // namespace

bool isOpenedAt(int fd, kj::StringPtr path) {
  struct stat opened, there;
  return ::fstat(fd, &opened) == 0 && ::stat(path.cStr(), &there) == 0 &&
         opened.st_dev == there.st_dev && opened.st_ino == there.st_ino;
}

bool hasFile(kj::StringPtr folder, kj::StringPtr name) {
  return pathKind(kj::str(folder, "/", name)) == PathKind::FILE;
}

void makeFolders(const DataConfig& config, kj::StringPtr path) {
  for (size_t i = 1; i <= path.size(); ++i) {
    if (i < path.size() && path[i] != '/') continue;
    auto folder = kj::heapString(path.slice(0, i));
    if (::mkdir(folder.cStr(), 0777) == 0) continue;
    int error = errno;
    // Above an existing folder there may be folders that we may not make.
    if (pathKind(folder) == PathKind::FOLDER) continue;
    if (error == EEXIST) failInTheWay(config, folder);
    configs::fail("cannot make the folder ", folder, ": ", strerror(error), ". Set ",
        config.names.folder, " to a folder that can be written");
  }
}

void importInto(const DataConfig& config, kj::ArrayPtr<const RemoteFile> remote,
    kj::StringPtr records, kj::StringPtr into, bool keepsIfInterrupted, Progress& progress,
    Warn& warn, kj::FunctionParam<void(kj::StringPtr part)> complete) {
  auto part = kj::str(into, ".part");
  ++imports;
  KJ_DEFER(--imports);
  auto mark = markOf(config, records);
  auto locked = takeFolder(config, remote, part, into, mark);
  bool isInterrupted = false;
  bool isDiskFull = false;
  Progress interruptible = [&](kj::StringPtr what, uint64_t done, uint64_t total) {
    KJ_ON_SCOPE_FAILURE(isInterrupted = true);
    progress(what, done, total);
  };
  auto import = [&]() {
    kj::Vector<kj::String> leftOut;
    Warn warnAndKeep = [&](kj::StringPtr sentence) {
      leftOut.add(kj::str(sentence));
      warn(sentence);
    };
    auto write = [&]() {
      importDataset(config, configs::environment("RUNNER_DATASETS"), remote, part, interruptible,
          warnAndKeep);
    };
    KJ_IF_MAYBE(e, kj::runCatchingExceptions(write)) {
      isDiskFull = e->getType() == kj::Exception::Type::OVERLOADED;
      kj::throwFatalException(kj::mv(*e));
    }
    writeLeftOut(part, leftOut);
    for (auto name: config.dataset->source->downloads) {
      ::unlink(kj::str(part, "/", name).cStr());
    }
    complete(part);
    for (auto& file: remote) removeAll(kj::str(part, "/", downloadFolder(file)));
    removeAll(into);
    moveIntoPlace(part, into);
    // If the process is killed before the move, the next import continues with these files. So they
    // are removed last. It does no harm if one of them stays.
    for (auto name: {BAD_IMAGES_FILE, UNFINISHED_FILE}) {
      ::unlink(kj::str(into, "/", name).cStr());
    }
  };
  KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { naming(part, into, import); })) {
    bool isKept = (isInterrupted || isDiskFull) && keepsIfInterrupted && mark.size() > 0;
    bool removesDownload = false;
    // An interruption of this check does not hide the error of the import.
    kj::runCatchingExceptions(
        [&]() { removesDownload = !isInterrupted && removeDamaged(remote, part, interruptible); });
    bool keepsDownload = mark.size() > 0 && hasDownload(remote, part);
    if (!isKept && !keepsDownload) kj::runCatchingExceptions([&]() { removeAll(part); });
    if (removesDownload) {
      configs::fail(e->getDescription(),
          ". The damaged download was removed, so that the next import downloads the file again");
    }
    if (isKept && isDiskFull) {
      configs::fail(e->getDescription(),
          ". What is packed so far is kept, and the same command continues from there");
    }
    if (!keepsDownload) kj::throwFatalException(kj::mv(*e));
    configs::fail(e->getDescription(), ". What was downloaded stays in ", part,
        " for the next import of the same file. Remove that folder to download the file again");
  }
}

void removeLock(kj::StringPtr lock) {
  auto folder = lock.slice(0, lock.size() - LOCK_ENDING.size());
  for (auto ending: {"", ".part"}) {
    if (pathKind(kj::str(folder, ending)) != PathKind::NOTHING) return;
  }
  // A lock that stays does no harm.
  ::unlink(lock.cStr());
}

void removeUnfinished(
    kj::StringPtr cache, kj::StringPtr own, kj::ArrayPtr<const RemoteFile> remote) {
  constexpr kj::StringPtr ENDING = ".part"_kj;
  for (auto& name: namesIn(cache)) {
    if (!name.endsWith(ENDING) || name == kj::str(own, ENDING)) continue;
    auto path = kj::str(cache, "/", name);
    // Copies of other hosts' records have the same ending. An interrupted copy is continued later.
    if (pathKind(kj::str(path, "/", UNFINISHED_FILE)) != PathKind::FILE) continue;
    auto lockPath = kj::str(path.slice(0, path.size() - ENDING.size()), LOCK_ENDING);
    int fd = ::open(lockPath.cStr(), O_RDWR | O_CLOEXEC);
    if (fd < 0) continue;
    kj::AutoCloseFd owned(fd);
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0 || !isOpenedAt(fd, lockPath)) continue;
    bool isUseful = hasDownload(remote, path);
    if (!isUseful || ::rename(path.cStr(), kj::str(cache, "/", own, ENDING).cStr()) != 0) {
      // A folder that cannot be removed, for example another user's, takes room but does no other
      // harm.
      kj::runCatchingExceptions([&]() { removeAll(path); });
    }
    removeLock(lockPath);
  }
}

bool isImporting() {
  return imports > 0;
}

kj::Array<kj::String> readLeftOut(kj::StringPtr folder) {
  constexpr size_t SENTENCES_MAX = 5;
  auto path = kj::str(folder, "/", LEFT_OUT_FILE);
  if (pathKind(path) != PathKind::FILE) return nullptr;
  auto bytes = readFile(path, LEFT_OUT_BYTES_MAX);
  kj::Vector<kj::String> sentences;
  uint64_t count = 0;
  for (size_t begin = 0; begin < bytes.size(); count++) {
    size_t end = std::find(bytes.begin() + begin, bytes.end(), '\n') - bytes.begin();
    if (count <= SENTENCES_MAX) {
      sentences.add(kj::heapString(bytes.slice(begin, end).asChars()));
    }
    begin = end + 1;
  }
  // If only one sentence is hidden, a sentence about that fact would take as much room as the
  // hidden one.
  if (count > SENTENCES_MAX + 1) {
    sentences[SENTENCES_MAX] =
        kj::str(count - SENTENCES_MAX, " more warnings about what the import left out: see ", path);
  }
  return sentences.releaseAsArray();
}

}  // namespace io
