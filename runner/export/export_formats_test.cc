#include "runner/export/export_formats.h"

#include <dirent.h>
#include <doctest/doctest.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/testing/scratch.h"
#include "runner/system/files.h"
#include "tests/text.h"

namespace {

// Whether the process ends after it has renamed a file.
bool endsAfterRename = false;
// How many of the next renames fail.
uint renamesThatFail = 0;
// Which of the next fsyncs fails: 1 is the first one, and 0 none.
uint syncThatFails = 0;

}  // namespace

// Replace the C library's functions in this program.
extern "C" int rename(const char* from, const char* to) noexcept {
  if (renamesThatFail > 0) {
    renamesThatFail--;
    errno = EPERM;
    return -1;
  }
  int result = ::renameat(AT_FDCWD, from, AT_FDCWD, to);
  if (endsAfterRename) ::raise(SIGKILL);
  return result;
}

extern "C" int fsync(int fd) {
  if (syncThatFails > 0 && --syncThatFails == 0) {
    errno = ENOSPC;
    return -1;
  }
  return ::fdatasync(fd);
}

namespace runner {
namespace {

const ExportFormat& format(kj::StringPtr name) {
  return *io::row(EXPORT_FORMATS, name);
}

uint filesIn(kj::StringPtr folder) {
  uint count = 0;
  auto open = ::opendir(folder.cStr());
  REQUIRE(open != nullptr);
  while (auto entry = ::readdir(open)) count += entry->d_name[0] != '.';
  ::closedir(open);
  return count;
}

ExportedFile fileOf(kj::String path, kj::StringPtr text) {
  return {kj::mv(path), kj::heapArray<kj::byte>(text.asBytes())};
}

TEST_CASE("Export: a script must end in .py, and replaces only files that an export has written") {
  io::Scratch scratch;
  auto& torch = format("torch");
  auto misfit = [&](kj::StringPtr name) {
    return torch.misfit(scratch.path(name)).orDefault(kj::str("none"));
  };
  CHECK(misfit("network.py") == "none");
  CHECK(tests::contains(misfit("network"), "/network` must end in .py, such as network.py"));
  CHECK(tests::contains(misfit(".py"), "must end in .py"));
  // An earlier export may be replaced, but not the weights of a run.
  scratch.write("weights.safetensors", "trained weights"_kj.asBytes());
  CHECK(tests::contains(misfit("weights.py"), "/weights.safetensors, which does not belong to"));
  scratch.write("weights.py", "\"\"\"A trained network, exported by runner 0.1."_kj.asBytes());
  CHECK(misfit("weights.py") == "none");
  REQUIRE(::mkdir(scratch.path("place.safetensors").cStr(), 0777) == 0);
  scratch.write("place.py", "\"\"\"A trained network, exported by runner 0.1."_kj.asBytes());
  CHECK(tests::contains(misfit("place.py"), "place.safetensors: "));
  // Nor may anything that no export has written.
  scratch.write("mine.py", "import torch"_kj.asBytes());
  CHECK(tests::contains(misfit("mine.py"), "mine.py exists, and no export has written it"));
  CHECK(format("onnx").misfit("network") == nullptr);
  auto weights = scratch.path("weights.safetensors");
  CHECK(tests::contains(
      KJ_ASSERT_NONNULL(format("onnx").misfit(weights)), "exists, and no export has written it"));
}

TEST_CASE("Export: files are replaced together, and nothing is left behind after an error") {
  io::Scratch scratch;
  scratch.write("a", "old"_kj.asBytes());
  auto first = kj::arr(fileOf(scratch.path("a"), "new"), fileOf(scratch.path("b"), "beside"));
  writeExported(first);
  CHECK(readWhole(scratch.path("a"), 100) == "new");
  CHECK(readWhole(scratch.path("b"), 100) == "beside");
  auto second = kj::arr(fileOf(scratch.path("a"), "newer"), fileOf(scratch.path("no/b"), "beside"));
  CHECK(tests::contains(
      io::thrownBy([&]() { writeExported(second); }), "no/b: No such file or directory"));
  CHECK(readWhole(scratch.path("a"), 100) == "new");
  CHECK(filesIn(scratch.path("")) == 2);
}

TEST_CASE("Export: a process that is killed leaves no old script beside new weights") {
  io::Scratch scratch;
  scratch.write("a", "old weights"_kj.asBytes());
  scratch.write("b", "old script"_kj.asBytes());
  auto files =
      kj::arr(fileOf(scratch.path("a"), "new weights"), fileOf(scratch.path("b"), "new script"));
  auto pid = ::fork();
  if (pid == 0) {
    endsAfterRename = true;
    writeExported(files);
    ::_exit(0);
  }
  int status;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  REQUIRE(WIFSIGNALED(status));
  CHECK(readWhole(scratch.path("a"), 100) == "new weights");
  CHECK(::access(scratch.path("b").cStr(), F_OK) != 0);
}

TEST_CASE(
    "Export: if the weights cannot be replaced, the old script stays beside the old weights") {
  io::Scratch scratch;
  scratch.write("a", "old weights"_kj.asBytes());
  scratch.write("b", "old script"_kj.asBytes());
  auto files =
      kj::arr(fileOf(scratch.path("a"), "new weights"), fileOf(scratch.path("b"), "new script"));
  renamesThatFail = 1;
  CHECK(tests::contains(
      io::thrownBy([&]() { writeExported(files); }), "/a: Operation not permitted"));
  CHECK(readWhole(scratch.path("a"), 100) == "old weights");
  CHECK(readWhole(scratch.path("b"), 100) == "old script");
  CHECK(filesIn(scratch.path("")) == 2);
}

TEST_CASE("Export: if a file does not reach the disk, the old files stay") {
  for (uint sync: {1, 2}) {
    CAPTURE(sync);
    io::Scratch scratch;
    scratch.write("a", "old weights"_kj.asBytes());
    scratch.write("b", "old script"_kj.asBytes());
    auto files =
        kj::arr(fileOf(scratch.path("a"), "new weights"), fileOf(scratch.path("b"), "new script"));
    syncThatFails = sync;
    CHECK(tests::contains(io::thrownBy([&]() { writeExported(files); }), "No space left"));
    CHECK(readWhole(scratch.path("a"), 100) == "old weights");
    CHECK(readWhole(scratch.path("b"), 100) == "old script");
    CHECK(filesIn(scratch.path("")) == 2);
  }
}

TEST_CASE("Export: if a file cannot be written completely, the old files stay") {
  io::Scratch scratch;
  scratch.write("a", "old"_kj.asBytes());
  constexpr size_t MOST = 100'000;
  rlimit before;
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  rlimit limited = {MOST, before.rlim_max};
  auto handler = ::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &limited) == 0);
  KJ_DEFER({
    ::setrlimit(RLIMIT_FSIZE, &before);
    ::signal(SIGXFSZ, handler);
  });
  auto files = kj::arr(fileOf(scratch.path("a"), "new"),
      ExportedFile{scratch.path("b"), kj::heapArray<kj::byte>(2 * MOST)});
  CHECK(tests::contains(io::thrownBy([&]() { writeExported(files); }), "/b: File too large"));
  CHECK(readWhole(scratch.path("a"), 100) == "old");
  CHECK(filesIn(scratch.path("")) == 1);
}

TEST_CASE("Export: the formats write the script last, after its weights") {
  configs::Diagnostics diagnostics;
  nn::GraphBuilder builder({1, 2, 2}, diagnostics);
  nn::NodeId images = 0;
  auto graph =
      builder.finish(builder.add("fc", nn::Dense{2, false}, kj::arrayPtr(&images, 1), {}), {});
  float parameters[8] = {};
  ExportedNetwork network{graph, parameters, nullptr, nullptr};
  Preprocessing steps{.means = kj::heapArray<float>({0}), .factors = kj::heapArray<float>({1})};
  auto torch = format("torch").write(network, steps, {}, "x/network.py");
  // A process that was killed has left only the weights. The same command replaces them.
  io::Scratch scratch;
  scratch.write("network.safetensors", torch[0].bytes);
  CHECK(format("torch").misfit(scratch.path("network.py")) == nullptr);
  REQUIRE(torch.size() == 2);
  CHECK(torch[0].path == "x/network.safetensors");
  CHECK(torch[1].path == "x/network.py");
  auto onnx = format("onnx").write(network, steps, {}, "network.onnx");
  REQUIRE(onnx.size() == 1);
  CHECK(onnx[0].path == "network.onnx");
  CHECK(onnx[0].bytes.size() > 100);
}

}  // namespace
}  // namespace runner
