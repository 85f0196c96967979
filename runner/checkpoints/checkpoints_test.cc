#include "runner/checkpoints/checkpoints.h"

#include <doctest/doctest.h>
#include <errno.h>
#include <kj/debug.h>
#include <kj/function.h>
#include <kj/thread.h>
#include <kj/vector.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "io/checksum.h"
#include "runner/system/files.h"
#include "runner/system/reason.h"
#include "tests/command.h"
#include "tests/text.h"

namespace {

// The paths of synced descriptors, in order.
kj::Vector<kj::String> synced;
// The file that a test watches: what was written to it, with a bar for each sync.
kj::String watched;
kj::Vector<char> seen;
bool syncFails = false;  // of that file

kj::String pathOf(int fd) {
  char path[4096] = {};
  KJ_SYSCALL(::readlink(kj::str("/proc/self/fd/", fd).cStr(), path, sizeof(path) - 1));
  return kj::str(path);
}

}  // namespace

// Replace the system's functions, so that a test sees the calls.
extern "C" int fsync(int fd) {
  synced.add(pathOf(fd));
  if (synced.back() == watched) {
    seen.add('|');
    if (syncFails) {
      errno = EIO;
      return -1;
    }
  }
  return ::syscall(SYS_fsync, fd);
}

extern "C" ssize_t write(int fd, const void* bytes, size_t size) {
  if (watched.size() > 0 && pathOf(fd) == watched) {
    seen.addAll(kj::arrayPtr(static_cast<const char*>(bytes), size));
  }
  return ::syscall(SYS_write, fd, bytes, size);
}

namespace runner {
namespace {

using tests::contains;
using tests::readFile;
using tests::writeFile;

constexpr kj::StringPtr DIGEST = "0123abcd"_kj;

// The events of a run. They go beyond what its checkpoints cover.
constexpr kj::StringPtr EVENTS =
    "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"
    "abcdefghijklmnopqrstuvwxyzabcdefghijklmnop"_kj;

SavedPoint pointAt(uint64_t step, bool endsEpoch = false) {
  constexpr uint64_t BYTES = 100;
  return {kj::str(DIGEST), kj::str("avx2"), 2, step, 1.5, BYTES,
      io::crc32(EVENTS.asBytes().slice(0, BYTES)), {}, endsEpoch};
}

RunFolder newRun() {
  RunFolder folder{tests::newFolder()};
  writeFile(folder.events(), EVENTS);
  return folder;
}

// Writes a checkpoint with a worker's part and with weights in two pieces.
uint64_t writeAt(const RunFolder& folder, uint64_t step, uint keep = 10, bool endsEpoch = false) {
  const auto part = kj::str("part of step ", step);
  CheckpointFile files[] = {{workerPartName(0), kj::arr(part.asBytes())},
      {kj::str(CHECKPOINT_WEIGHTS), kj::arr("first "_kj.asBytes(), "second"_kj.asBytes())}};
  GrowingFiles logs(folder.path);
  return writeCheckpoint(folder, pointAt(step, endsEpoch), files, keep, logs);
}

kj::String pathAt(const RunFolder& folder, uint64_t step, kj::StringPtr file = nullptr) {
  auto path = kj::str(folder.checkpoints(), "/step-", step);
  return file == nullptr ? kj::mv(path) : kj::str(path, "/", file);
}

// Calls `check` on a thread that lacks root's privilege to open every file.
void asPlainUser(kj::FunctionParam<void()> check) {
  kj::Thread thread([&]() {
    __user_cap_header_struct thisThread = {_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
    KJ_SYSCALL(::syscall(SYS_capset, &thisThread, none));
    check();
  });
}

// The result of newestCheckpoint() for a run.
struct Newest {
  kj::Maybe<FoundCheckpoint> found;
  kj::String refused;  // why it refused others

  // The step of the checkpoint, or 0.
  uint64_t step() const {
    KJ_IF_MAYBE(checkpoint, found) return checkpoint->point.step;
    return 0;
  }
};

Newest newestIn(const RunFolder& folder, kj::StringPtr digest = DIGEST) {
  kj::Vector<kj::String> refused;
  auto found = newestCheckpoint(folder, digest, [&](kj::String why) { refused.add(kj::mv(why)); });
  return {kj::mv(found), kj::strArray(refused, "\n")};
}

// Replaces the first `from` in a text by `to`.
kj::String replaced(kj::StringPtr text, kj::StringPtr from, kj::StringPtr to) {
  for (size_t at = 0; at + from.size() <= text.size(); at++) {
    if (!text.slice(at).startsWith(from)) continue;
    return kj::str(text.slice(0, at), to, text.slice(at + from.size()));
  }
  KJ_FAIL_REQUIRE("there is no such text", from, text);
}

// Replaces a text in the manifest of a step, and corrects the manifest's checksum.
void forge(const RunFolder& folder, uint64_t step, kj::StringPtr from, kj::StringPtr to) {
  auto path = pathAt(folder, step, "manifest.json");
  auto text = replaced(readFile(path), from, to);
  // The manifest's own checksum is indented by two spaces, and those of files by more.
  constexpr auto NAME = "\n  \"sha256\": \""_kj;
  auto begin = std::search(text.begin(), text.end(), NAME.begin(), NAME.end()) + NAME.size();
  auto sum = kj::heapString(begin, 64);
  auto without = replaced(text, sum, "");
  writeFile(path, replaced(text, sum, io::sha256Hex(without.asBytes())));
}

TEST_CASE("checkpoints: the newest one is found, with everything that was written") {
  auto folder = newRun();
  CHECK(newestIn(folder).step() == 0);
  CHECK(writeAt(folder, 9) == 26);
  CHECK(writeAt(folder, 10) == 27);
  auto newest = newestIn(folder);
  CHECK(newest.refused == "");
  auto& found = KJ_REQUIRE_NONNULL(newest.found);
  CHECK(found.path == pathAt(folder, 10));
  CHECK(found.point.digest == DIGEST);
  CHECK(found.point.instructionSet == "avx2");
  CHECK(found.point.epoch == 2);
  CHECK(found.point.step == 10);
  CHECK(found.point.run_s == 1.5);
  CHECK(found.point.events_bytes == 100);
  CHECK(readFile(found.file(workerPartName(0))) == "part of step 10");
  CHECK(readFile(found.file(CHECKPOINT_WEIGHTS)) == "first second");
}

TEST_CASE("checkpoints: a link to a folder on another disk works like a folder") {
  auto folder = newRun();
  writeAt(folder, 1);
  auto moved = kj::str(folder.path, "/moved");
  REQUIRE(::rename(folder.checkpoints().cStr(), moved.cStr()) == 0);
  REQUIRE(::symlink("moved", folder.checkpoints().cStr()) == 0);
  CHECK(newestIn(folder).step() == 1);
}

TEST_CASE(
    "checkpoints: the newest are kept, and unfinished ones of killed processes do not count") {
  auto folder = newRun();
  for (uint64_t step: {1, 2, 3}) writeAt(folder, step, 2);
  CHECK_FALSE(isFolder(pathAt(folder, 1)));
  CHECK(isFolder(pathAt(folder, 2)));
  // A process was killed while it wrote the next checkpoint.
  makeFolders(pathAt(folder, 4));
  writeFile(pathAt(folder, 4, workerPartName(0)), "half of");
  writeAt(folder, 5, 2);
  CHECK(isFolder(pathAt(folder, 3)));
  CHECK_FALSE(isFolder(pathAt(folder, 2)));
  CHECK_FALSE(isFolder(pathAt(folder, 4)));
}

TEST_CASE("checkpoints: a folder without a manifest and a folder with another name do not count") {
  auto folder = newRun();
  writeAt(folder, 3);
  writeAt(folder, 4);
  KJ_SYSCALL(::unlink(pathAt(folder, 4, "manifest.json").cStr()));
  for (auto name: {"step-", "step-05", "step-x", "step--7", "step-99999999999999999999", "next"}) {
    makeFolders(kj::str(folder.checkpoints(), "/", name));
  }
  auto newest = newestIn(folder);
  CHECK(newest.step() == 3);
  CHECK(newest.refused == "");
}

TEST_CASE("checkpoints: one with any flipped bit is refused, and an older one is found") {
  auto folder = newRun();
  writeAt(folder, 3);
  writeAt(folder, 4);
  for (auto name: {"manifest.json"_kj, "worker-0.safetensors"_kj, CHECKPOINT_WEIGHTS}) {
    auto path = pathAt(folder, 4, name);
    auto whole = readFile(path);
    for (size_t at: kj::indices(whole)) {
      for (uint bit = 0; bit < 8; bit++) {
        INFO(name, ", byte ", at, ", bit ", bit);
        auto damaged = kj::heapString(whole);
        damaged[at] ^= 1 << bit;
        writeFile(path, damaged);
        auto newest = newestIn(folder);
        CHECK(newest.step() == 3);
        CHECK(newest.refused.startsWith(
            kj::str("the checkpoint ", pathAt(folder, 4), " is not used: it")));
        CHECK_FALSE(contains(newest.refused, "\n"));
      }
    }
    writeFile(path, whole);
  }
  CHECK(newestIn(folder).step() == 4);
}

TEST_CASE("checkpoints: if any file of one is cut short or missing, an older one is found") {
  auto folder = newRun();
  writeAt(folder, 3);
  writeAt(folder, 4);
  for (auto name: {"manifest.json"_kj, "worker-0.safetensors"_kj, CHECKPOINT_WEIGHTS}) {
    auto path = pathAt(folder, 4, name);
    auto whole = readFile(path);
    for (size_t bytes: kj::indices(whole)) {
      INFO(name, " with ", bytes, " bytes");
      writeFile(path, kj::heapString(whole.slice(0, bytes)));
      auto newest = newestIn(folder);
      CHECK(newest.step() == 3);
      CHECK(newest.refused != "");
    }
    KJ_SYSCALL(::unlink(path.cStr()));
    CHECK(newestIn(folder).step() == 3);
    writeFile(path, whole);
  }
  KJ_SYSCALL(::unlink(pathAt(folder, 4, workerPartName(0)).cStr()));
  CHECK(newestIn(folder).refused ==
        kj::str("the checkpoint ", pathAt(folder, 4),
            " is not used: its worker-0.safetensors cannot be read: No such file or directory"));
  // The program must not block on a pipe that nobody writes to.
  KJ_SYSCALL(::mkfifo(pathAt(folder, 4, workerPartName(0)).cStr(), 0600));
  CHECK(contains(newestIn(folder).refused, "its worker-0.safetensors does not have 14 bytes"));
}

TEST_CASE("checkpoints: one is refused if the run's events before it are cut short or changed") {
  auto folder = newRun();
  writeAt(folder, 3);
  auto whole = readFile(folder.events());
  for (size_t bytes: kj::indices(whole)) {
    writeFile(folder.events(), kj::heapString(whole.slice(0, bytes)));
    // The checkpoint knows the first 100 bytes.
    CHECK(newestIn(folder).step() == (bytes < 100 ? 0 : 3));
    if (bytes < 100) {
      CHECK(contains(newestIn(folder).refused, "not used: the run's events.jsonl is cut short"));
    }
    auto damaged = kj::heapString(whole);
    damaged[bytes] ^= 1;
    writeFile(folder.events(), damaged);
    CHECK(newestIn(folder).step() == (bytes < 100 ? 0 : 3));
    if (bytes < 100) CHECK(contains(newestIn(folder).refused, "the run's events.jsonl is damaged"));
  }
}

TEST_CASE("checkpoints: a manifest records the length and the checksum of the run's logs") {
  auto folder = newRun();
  writeFile(folder.log(), "one\ntwo\n");
  auto point = pointAt(3);
  auto files = kj::heapArrayBuilder<FileExtent>(1);
  files.add(FileExtent{kj::str("log.txt"), 4});
  point.logs = {kj::str("mxnet"), files.finish()};
  GrowingFiles logs(folder.path);
  writeCheckpoint(folder, point, nullptr, 1, logs);
  auto found = readCheckpoint(pathAt(folder, 3));
  CHECK(found.point.logs.style == "mxnet");
  REQUIRE(found.point.logs.files.size() == 1);
  auto& log = found.point.logs.files[0];
  CHECK(log.name == "log.txt");
  CHECK(log.bytes == 4);
  CHECK(log.crc32 == io::crc32("one\n"_kj.asBytes()));
  // An entry of the manifest that names another file is ignored.
  REQUIRE(::mkdir(kj::str(folder.path, "/tensorboard").cStr(), 0777) == 0);
  for (auto name: {"../log.txt", "tensorboard/log.txt", "tensorboard/../../log.txt", ".log"}) {
    CAPTURE(name);
    point.logs.files[0].name = kj::str(name);
    writeFile(kj::str(folder.path, "/", name), "one\n");
    writeCheckpoint(folder, point, nullptr, 1, logs);
    CHECK(readCheckpoint(pathAt(folder, 3)).point.logs.files.size() == 0);
  }
  point.logs.files[0].name = kj::str("log.txt");
  // A log that cannot be read does not spoil the checkpoint.
  ::unlink(folder.log().cStr());
  GrowingFiles others(folder.path);
  point.step = 4;
  writeCheckpoint(folder, point, nullptr, 1, others);
  CHECK(readCheckpoint(pathAt(folder, 4)).point.logs.files.size() == 0);
}

TEST_CASE("checkpoints: at the end of an epoch, a change of old events is noticed") {
  auto folder = newRun();
  GrowingFiles logs(folder.path);
  writeCheckpoint(folder, pointAt(1), nullptr, 9, logs);
  auto events = kj::str(EVENTS);
  events[30] ^= 1;
  writeFile(folder.events(), events);
  CHECK_THROWS(writeCheckpoint(folder, pointAt(2, true), nullptr, 9, logs));
  CHECK_THROWS(writeCheckpoint(folder, pointAt(3), nullptr, 9, logs));
}

TEST_CASE("checkpoints: a run's folder that was renamed does not come back") {
  auto folder = newRun();
  REQUIRE(::rename(folder.path.cStr(), kj::str(folder.path, "-renamed").cStr()) == 0);
  CHECK_THROWS(writeAt(folder, 1));
  CHECK(::access(folder.path.cStr(), F_OK) != 0);
}

TEST_CASE("checkpoints: the newest one that ends an epoch is kept, and found") {
  auto folder = newRun();
  auto endIn = [&]() -> uint64_t {
    auto found = newestCheckpoint(
        folder, DIGEST, [](kj::String) {}, Standing::AT_EPOCH_END);
    return found == nullptr ? 0 : KJ_ASSERT_NONNULL(found).point.step;
  };
  writeAt(folder, 1, 2);
  CHECK(endIn() == 0);
  writeAt(folder, 2, 2, true);
  for (uint64_t step: {3, 4, 5}) writeAt(folder, step, 2);
  CHECK(endIn() == 2);
  CHECK(newestIn(folder).step() == 5);
  CHECK(::access(pathAt(folder, 4).cStr(), F_OK) == 0);
  CHECK(::access(pathAt(folder, 3).cStr(), F_OK) != 0);
  CHECK(::access(pathAt(folder, 1).cStr(), F_OK) != 0);
  // The checkpoint at the next end of an epoch takes its place.
  writeAt(folder, 6, 2, true);
  CHECK(endIn() == 6);
  CHECK(::access(pathAt(folder, 2).cStr(), F_OK) != 0);
  CHECK(::access(pathAt(folder, 5).cStr(), F_OK) == 0);
}

TEST_CASE("checkpoints: one of another format, experiment or step is refused") {
  auto folder = newRun();
  writeAt(folder, 3);
  writeAt(folder, 4);
  CHECK(newestIn(folder, "4567").step() == 0);
  CHECK(contains(newestIn(folder, "4567").refused, "it belongs to another experiment"));
  auto whole = readFile(pathAt(folder, 4, "manifest.json"));
  forge(folder, 4, "\"format\": 5", "\"format\": 77");
  CHECK(newestIn(folder).step() == 3);
  CHECK(contains(newestIn(folder).refused, "it has format 77 of program version "));
  CHECK(contains(newestIn(folder).refused, ", and this program reads format 5"));
  writeFile(pathAt(folder, 4, "manifest.json"), whole);
  CHECK(newestIn(folder).step() == 4);
  KJ_SYSCALL(::rename(pathAt(folder, 4).cStr(), pathAt(folder, 5).cStr()));
  CHECK(newestIn(folder).step() == 3);
  CHECK(contains(newestIn(folder).refused, "/step-5 is not used: it belongs to step 4"));
}

TEST_CASE("whyForeign: names a checkpoint of another experiment or format, but not a damaged one") {
  auto folder = newRun();
  CHECK(whyForeign(folder, DIGEST) == nullptr);
  writeAt(folder, 3);
  CHECK(whyForeign(folder, DIGEST) == nullptr);
  auto other = KJ_REQUIRE_NONNULL(whyForeign(folder, "4567"));
  CHECK(other == kj::str(pathAt(folder, 3), " belongs to another experiment"));
  forge(folder, 3, "\"format\": 5", "\"format\": 77");
  auto newer = KJ_REQUIRE_NONNULL(whyForeign(folder, DIGEST));
  CHECK(contains(newer, kj::str(pathAt(folder, 3), " has format 77 of program version ")));
  writeAt(folder, 3);
  auto path = pathAt(folder, 3, "manifest.json");
  writeFile(path, replaced(readFile(path), "\"format\": 5", "\"format\": 6"));
  CHECK(whyForeign(folder, DIGEST) == nullptr);
}

TEST_CASE("whyUnreadable: names a file that the system does not open, but not a missing one") {
  auto folder = newRun();
  CHECK(whyUnreadable(folder) == nullptr);
  writeAt(folder, 3);
  CHECK(whyUnreadable(folder) == nullptr);
  for (auto name: {"manifest.json"_kj, "weights.safetensors"_kj}) {
    CAPTURE(name);
    auto path = pathAt(folder, 3, name);
    KJ_SYSCALL(::chmod(path.cStr(), 0));
    asPlainUser([&]() {
      CHECK(KJ_REQUIRE_NONNULL(whyUnreadable(folder)) ==
            kj::str("cannot open ", path, ": Permission denied"));
    });
    KJ_SYSCALL(::unlink(path.cStr()));
    CHECK(whyUnreadable(folder) == nullptr);
    writeAt(folder, 3);
  }
}

TEST_CASE("checkpoints: a manifest that names files outside of its folder is refused") {
  auto folder = newRun();
  writeAt(folder, 3);
  writeAt(folder, 4);
  auto whole = readFile(pathAt(folder, 4, "manifest.json"));
  // The same bytes, so that only the name is wrong.
  writeFile(kj::str(folder.path, "/outside"), "part of step 4");
  writeFile(kj::str(folder.checkpoints(), "/outside"), "part of step 4");
  auto absolute = kj::str(folder.path, "/outside");
  auto forged = [&](kj::StringPtr name) {
    writeFile(pathAt(folder, 4, "manifest.json"), whole);
    forge(folder, 4, "worker-0.safetensors", name);
    return newestIn(folder);
  };
  for (kj::StringPtr name: {"../outside"_kj, "../step-3/worker-0.safetensors"_kj,
           "../../outside"_kj, kj::StringPtr(absolute), "/etc/passwd"_kj, "."_kj, ".."_kj, ""_kj,
           "\\u0000"_kj, "worker-0.safetensors\\n"_kj, "./worker-0.safetensors"_kj}) {
    INFO(name.cStr());
    auto newest = forged(name);
    CHECK(newest.step() == 3);
    CHECK(contains(newest.refused, "its manifest names a file that is not one of a checkpoint"));
  }
  CHECK(forged("worker-0.safetensors").step() == 4);
}

TEST_CASE("checkpoints: a manifest that is not JSON, is nested deeply or is huge is refused") {
  auto folder = newRun();
  writeAt(folder, 3);
  writeAt(folder, 4);
  auto deep = kj::heapString(100000), huge = kj::heapString((1 << 24) + 1);
  for (auto& each: deep) each = '[';
  for (auto& each: huge) each = ' ';
  for (kj::StringPtr text: {""_kj, "{}"_kj, "[1]"_kj, "{\"format\": 4}"_kj, "{\"format\": -1}"_kj,
           "{\"format\": 4, \"files\": [{}]}"_kj, kj::StringPtr(deep), kj::StringPtr(huge)}) {
    writeFile(pathAt(folder, 4, "manifest.json"), text);
    auto newest = newestIn(folder);
    CHECK(newest.step() == 3);
    CHECK(newest.refused.size() > 0);
    CHECK(newest.refused.size() < 500);
  }
}

TEST_CASE(
    "checkpoints: a failed write gives a plain sentence, and leaves only the older checkpoint") {
  auto folder = newRun();
  writeAt(folder, 3, 1);
  // From now on, this process can write at most 20 bytes to a file.
  auto before = ::signal(SIGXFSZ, SIG_IGN);
  rlimit limit;
  KJ_SYSCALL(::getrlimit(RLIMIT_FSIZE, &limit));
  rlimit small{20, limit.rlim_max};
  KJ_SYSCALL(::setrlimit(RLIMIT_FSIZE, &small));
  auto failure = kj::runCatchingExceptions([&]() { writeAt(folder, 4, 1); });
  KJ_SYSCALL(::setrlimit(RLIMIT_FSIZE, &limit));
  ::signal(SIGXFSZ, before);
  auto reason = reasonOf(KJ_REQUIRE_NONNULL(failure));
  INFO(reason);
  CHECK(reason.startsWith(
      kj::str("cannot write ", pathAt(folder, 4, "manifest.json"), ": File too large. ")));
  CHECK(newestIn(folder).step() == 3);
  CHECK(newestIn(folder).refused == "");
  CHECK_FALSE(isFolder(pathAt(folder, 4)));
}

TEST_CASE("checkpoints: its files, the folders and the events are synced before the manifest") {
  auto folder = newRun();
  synced.clear();
  writeAt(folder, 3);
  auto first = [&](kj::StringPtr prefix) {
    for (size_t i: kj::indices(synced)) {
      if (synced[i].startsWith(prefix)) return i;
    }
    return synced.size();
  };
  auto manifest = first(pathAt(folder, 3, "manifest.json"));
  CHECK(manifest < synced.size());
  CHECK(first(pathAt(folder, 3, workerPartName(0))) < manifest);
  CHECK(first(pathAt(folder, 3, CHECKPOINT_WEIGHTS)) < manifest);
  CHECK(first(folder.events()) < manifest);
  bool names[] = {false, false};
  for (size_t i = 0; i < manifest; i++) {
    names[0] = names[0] || synced[i] == folder.checkpoints();
    names[1] = names[1] || synced[i] == folder.path;
  }
  CHECK(names[0]);
  CHECK(names[1]);
}

TEST_CASE("checkpoints: the run's folder is synced only if it has no complete checkpoint yet") {
  auto folder = newRun();
  auto isSynced = [&](kj::StringPtr path) {
    bool is = false;
    for (auto& each: synced) is = is || each == path;
    return is;
  };
  // A folder without a manifest does not count: its writer was killed.
  writeAt(folder, 2);
  KJ_SYSCALL(::unlink(pathAt(folder, 2, "manifest.json").cStr()));
  synced.clear();
  writeAt(folder, 3);
  CHECK(isSynced(folder.path));
  synced.clear();
  writeAt(folder, 4);
  CHECK_FALSE(isSynced(folder.path));
  CHECK(isSynced(folder.checkpoints()));
}

TEST_CASE("checkpoints: after a sync of the events has failed, the next one writes them again") {
  auto folder = newRun();
  GrowingFiles logs(folder.path);
  watched = folder.events();
  KJ_DEFER({
    watched = nullptr;
    syncFails = false;
  });
  // Returns what was written to the events until the end of the attempt.
  auto attempt = [&](uint64_t step, bool fails) {
    seen.clear();
    syncFails = fails;
    auto failed = kj::runCatchingExceptions(
        [&]() { writeCheckpoint(folder, pointAt(step), nullptr, 9, logs); });
    CHECK((failed != nullptr) == fails);
    CHECK(newestIn(folder).step() == (fails ? 0 : step));
    return kj::heapString(seen.asPtr());
  };
  CHECK(attempt(3, true) == "|");
  CHECK(attempt(4, true) == kj::str(EVENTS, "|"));
  CHECK(attempt(5, false) == kj::str(EVENTS, "|"));
  CHECK(attempt(6, false) == "|");
  CHECK(readFile(folder.events()) == EVENTS);
  // Data that are already on the disk are not written again.
  LineFile(folder.events()).append("more");
  seen.clear();
  syncFails = true;
  CHECK_THROWS(writeCheckpoint(folder, pointAt(7), nullptr, 9, logs));
  CHECK(attempt(8, false) == "more\n|");
}

TEST_CASE("checkpoints: none is written if the file of events has changed since the run wrote it") {
  auto folder = newRun();
  GrowingFiles logs(folder.path);
  writeCheckpoint(folder, pointAt(3), nullptr, 1, logs);
  auto point = pointAt(4);
  point.events_bytes = 120;
  point.events_crc32 = io::crc32(EVENTS.asBytes());
  auto damaged = kj::heapString(EVENTS);
  damaged[110] = 0;
  writeFile(folder.events(), damaged);
  auto failed =
      kj::runCatchingExceptions([&]() { writeCheckpoint(folder, point, nullptr, 1, logs); });
  CHECK(
      reasonOf(KJ_REQUIRE_NONNULL(failed))
          .startsWith(kj::str(folder.events(), " does not hold what the run has written to it: ")));
  CHECK(newestIn(folder).step() == 3);
}

TEST_CASE("setAsideAfter: renames newer checkpoints, and removes unfinished ones") {
  auto folder = newRun();
  for (uint64_t step: {3, 4, 5, 6}) writeAt(folder, step);
  writeFile(pathAt(folder, 5, workerPartName(0)), "damaged");
  KJ_SYSCALL(::unlink(pathAt(folder, 6, "manifest.json").cStr()));
  auto newest = newestIn(folder);
  CHECK(newest.step() == 4);
  setAsideAfter(folder, KJ_REQUIRE_NONNULL(newest.found));
  CHECK(isFolder(pathAt(folder, 3)));
  CHECK(isFolder(pathAt(folder, 4)));
  CHECK(readFile(kj::str(pathAt(folder, 5), ".refused/", workerPartName(0))) == "damaged");
  CHECK_FALSE(isFolder(pathAt(folder, 5)));
  CHECK_FALSE(isFolder(pathAt(folder, 6)));
  CHECK_FALSE(isFolder(kj::str(pathAt(folder, 6), ".refused")));
  CHECK(newestIn(folder).refused == "");
  // The run reaches the same step once more, and its checkpoint is damaged again.
  writeAt(folder, 5);
  writeFile(pathAt(folder, 5, workerPartName(0)), "damaged again");
  setAsideAfter(folder, KJ_REQUIRE_NONNULL(newest.found));
  CHECK(readFile(kj::str(pathAt(folder, 5), ".refused/", workerPartName(0))) == "damaged again");
  // All are damaged, and the run begins again.
  setAsideAfter(folder, nullptr);
  CHECK_FALSE(isFolder(pathAt(folder, 3)));
  CHECK(isFolder(kj::str(pathAt(folder, 3), ".refused")));
  CHECK(isFolder(kj::str(pathAt(folder, 4), ".refused")));
}

}  // namespace
}  // namespace runner
