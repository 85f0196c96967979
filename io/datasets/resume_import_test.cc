// Tests imports that continue where a killed one ended.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/datasets/bad_images.h"
#include "io/datasets/datasets.h"
#include "io/datasets/import.h"
#include "io/paths.h"
#include "io/testing/image_folder.h"
#include "tests/text.h"

namespace {

// The process is killed after it has removed a file whose path ends with this text. Empty: it is
// not killed.
const char* endsAfterRemoving = "";

}  // namespace

// Replaces the C library's function in this program.
extern "C" int unlink(const char* path) noexcept {
  int result = ::unlinkat(AT_FDCWD, path, 0);
  bool ends = *endsAfterRemoving != '\0' && kj::StringPtr(path).endsWith(endsAfterRemoving);
  if (ends) ::raise(SIGKILL);
  return result;
}

namespace io {

namespace {

// 24 images of 3 MiB each as records, so that a database is committed before its end. The fourth
// cat cannot be decoded.
constexpr uint IMAGES = 24;
constexpr uint BAD = 6;

class LargeImages: public CacheScratch {
public:
  LargeImages(): config(testConfig("image_folder", path("images"))) {
    config.encoding = Encoding::RAW;
    config.onBadRecord = BadRecordPolicy::SKIP;
    for (uint i = 0; i < IMAGES; ++i) {
      auto file = jpegOf(i, {3, 1024, 1024});
      write(nameOf(i), file.slice(0, i == BAD ? file.size() / 2 : file.size()));
    }
  }

  static kj::String nameOf(uint i) {
    return kj::str("images/", i % 2 == 0 ? "cat" : "dog", "/", 100 + i, ".jpg");
  }

  DataConfig config;
};

// Packs in a child process, which ends immediately after it has imported `images` images: by
// `signal`, or by an exception if that is 0.
void packAndEnd(const DataConfig& config, kj::StringPtr into, uint64_t images, int signal) {
  auto pid = ::fork();
  if (pid == 0) {
    kj::runCatchingExceptions([&]() {
      packDataset(config, into, [&](kj::StringPtr what, uint64_t done, uint64_t) {
        if (!what.startsWith("importing") || done < images) return;
        if (signal != 0) ::raise(signal);
        KJ_FAIL_REQUIRE("interrupted");
      });
    });
    ::_exit(0);
  }
  REQUIRE(::waitpid(pid, nullptr, 0) == pid);
}

// Packs, and returns the warnings.
kj::String packed(const DataConfig& config, kj::StringPtr into) {
  kj::Vector<kj::String> warnings;
  packDataset(config, into, unheard(), [&](kj::StringPtr text) { warnings.add(kj::str(text)); });
  return kj::strArray(warnings, "\n");
}

kj::Array<kj::byte> databaseOf(kj::StringPtr folder, kj::StringPtr name) {
  return readFile(kj::str(folder, "/", name), size_t(1) << 30);
}

void checkSame(kj::StringPtr folder, kj::StringPtr other) {
  for (auto name: {TRAINING_FILE, VALIDATION_FILE, "left_out.txt"_kj}) {
    CHECK(databaseOf(folder, name) == databaseOf(other, name));
  }
  CHECK(namesIn(folder).size() == namesIn(other).size());
}

// Makes a file useless without a change of its size and its times.
void spoil(kj::StringPtr path) {
  struct stat status;
  KJ_SYSCALL(::stat(path.cStr(), &status));
  int raw;
  KJ_SYSCALL(raw = ::open(path.cStr(), O_WRONLY | O_CLOEXEC));
  kj::AutoCloseFd fd(raw);
  auto zeros = kj::heapArray<kj::byte>(status.st_size);
  memset(zeros.begin(), 0, zeros.size());
  writeTo(fd, zeros);
  timespec times[] = {status.st_atim, status.st_mtim};
  KJ_SYSCALL(::futimens(fd, times));
}

}  // namespace

TEST_CASE("packDataset: continues where a killed process ended, and makes the same bytes") {
  LargeImages scratch;
  auto& config = scratch.config;
  auto whole = scratch.path("whole"), killed = scratch.path("killed");
  auto warnings = packed(config, whole);
  CHECK(tests::contains(warnings, "; left out "));
  // Killed while it imports, and twice while it goes over the images that it has.
  for (uint64_t images: {16, 16, 16}) {
    packAndEnd(config, killed, images, SIGKILL);
    CHECK(pathKind(killed) == PathKind::NOTHING);
  }
  // The first images are committed and not read again. Cats come first.
  for (uint cat = 0; cat < 6; ++cat) spoil(scratch.path(LargeImages::nameOf(2 * cat)));
  CHECK(packed(config, killed) == warnings);
  checkSame(killed, whole);
}

TEST_CASE("packDataset: continues after an interruption") {
  LargeImages scratch;
  auto whole = scratch.path("whole"), interrupted = scratch.path("interrupted");
  auto warnings = packed(scratch.config, whole);
  packAndEnd(scratch.config, interrupted, 16, 0);
  CHECK(packed(scratch.config, interrupted) == warnings);
  checkSame(interrupted, whole);
}

TEST_CASE("packDataset: does not keep a killed import's list of what it left out") {
  ImageFolder scratch;
  scratch.write("images/x.gif", nullptr);
  auto into = scratch.path("packed"), list = kj::str(into, ".part/left_out.txt");
  auto pid = ::fork();
  if (pid == 0) {
    kj::runCatchingExceptions([&]() {
      // The mean image is computed after the list was written.
      packDataset(scratch.config, into, [&](kj::StringPtr, uint64_t, uint64_t) {
        if (pathKind(list) == PathKind::FILE) ::raise(SIGKILL);
      });
    });
    ::_exit(0);
  }
  REQUIRE(::waitpid(pid, nullptr, 0) == pid);
  REQUIRE(pathKind(list) == PathKind::FILE);
  REQUIRE(::unlink(scratch.path("images/x.gif").cStr()) == 0);
  CHECK(packed(scratch.config, into) == "");
  CHECK(pathKind(kj::str(into, "/", TRAINING_FILE)) == PathKind::FILE);
  CHECK(pathKind(kj::str(into, "/left_out.txt")) == PathKind::NOTHING);
}

TEST_CASE("openDataset: uses or completes an import whose process was killed in its last steps") {
  for (auto file: {"/bad_images.txt", "/unfinished"}) {
    INFO(file);
    LargeImages scratch;
    auto warn = [](kj::StringPtr) {};
    auto pid = ::fork();
    if (pid == 0) {
      endsAfterRemoving = file;
      kj::runCatchingExceptions([&]() { openDataset(scratch.config, unheard(), warn); });
      ::_exit(0);
    }
    int status;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    REQUIRE(WIFSIGNALED(status));
    auto dataset = openDataset(scratch.config, unheard(), warn);
    CHECK(dataset->training().count() + dataset->validation().count() == IMAGES - 1);
    for (auto& name: namesIn(scratch.path("cache"))) CHECK(!name.endsWith(".part"));
  }
}

TEST_CASE("packDataset: begins again if the images or the settings have changed") {
  LargeImages scratch;
  auto& config = scratch.config;
  packAndEnd(config, scratch.path("packed"), 16, SIGKILL);
  scratch.write(LargeImages::nameOf(0), jpegOf(200, {3, 1024, 1024}));
  packed(config, scratch.path("packed"));
  packed(config, scratch.path("whole"));
  checkSame(scratch.path("packed"), scratch.path("whole"));

  packAndEnd(config, scratch.path("small"), 16, SIGKILL);
  config.resizeShortSide = 512;
  packed(config, scratch.path("small"));
  packed(config, scratch.path("whole small"));
  checkSame(scratch.path("small"), scratch.path("whole small"));
}

TEST_CASE("packDataset: begins again if the remaining files are damaged") {
  LargeImages scratch;
  auto& config = scratch.config;
  packed(config, scratch.path("whole"));
  auto left = kj::str(scratch.path("packed"), ".part/", TRAINING_FILE, ".part");
  for (size_t keepOneIn: {1, 2}) {
    packAndEnd(config, scratch.path("packed"), 16, SIGKILL);
    auto bytes = readFile(left, size_t(1) << 30);
    if (keepOneIn == 1) {
      bytes[bytes.size() / 2] ^= 1;
      // Also all of LMDB's own pages but the first ones.
      memset(bytes.end() - (bytes.size() / 3), 0, bytes.size() / 3);
    }
    scratch.write(
        kj::str("packed.part/", TRAINING_FILE, ".part"), bytes.slice(0, bytes.size() / keepOneIn));
    packed(config, scratch.path("packed"));
    checkSame(scratch.path("packed"), scratch.path("whole"));
    KJ_SYSCALL(
        ::rename(scratch.path("packed").cStr(), scratch.path(kj::str("done", keepOneIn)).cStr()));
  }
}

TEST_CASE("BadImages: remembers reasons, and passes over a line that was cut short") {
  Scratch scratch;
  auto folder = scratch.path("");
  BadImages first(folder);
  CHECK(first.find(3) == nullptr);
  first.add(3, "has\nno pixels");
  first.add(12, "is empty");
  CHECK(KJ_ASSERT_NONNULL(first.find(3)) == "has no pixels");
  auto path = scratch.path(BAD_IMAGES_FILE);
  auto text = readFile(path, 1000);
  CHECK(kj::heapString(text.asChars()) == "3 has no pixels\n12 is empty\n");
  scratch.write(BAD_IMAGES_FILE, kj::str("3 has no pixels\nx y\n12 is em").asBytes());
  BadImages second(folder);
  CHECK(KJ_ASSERT_NONNULL(second.find(3)) == "has no pixels");
  CHECK(second.find(12) == nullptr);
  second.add(13, "is dark");
  BadImages third(folder);
  CHECK(third.find(12) == nullptr);
  CHECK(KJ_ASSERT_NONNULL(third.find(13)) == "is dark");
}

}  // namespace io
