#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/vector.h>
#include <stdio.h>
#include <string.h>

#include "tests/command.h"
#include "tests/skip.h"

namespace nn::cuda {
namespace {

using kj::uint;

// ptxas's report about one function of the GPU.
struct Figures {
  kj::String name;  // as the linker knows it
  uint storedSpills_bytes, loadedSpills_bytes;
};

// Reads what `nvcc -Xptxas -v` writes.
kj::Array<Figures> readFigures(kj::StringPtr log) {
  constexpr char NAME[] = "Function properties for ";
  kj::Vector<Figures> all;
  for (const char* at = log.cStr(); (at = strstr(at, NAME)) != nullptr;) {
    at += strlen(NAME);
    size_t length = strcspn(at, "\n");
    Figures figures{kj::heapString(at, length), 0, 0};
    int fields =
        sscanf(at + length, " %*u bytes stack frame, %u bytes spill stores, %u bytes spill loads",
            &figures.storedSpills_bytes, &figures.loadedSpills_bytes);
    KJ_REQUIRE(fields == 2, "ptxas writes another form than this test reads", figures.name);
    all.add(kj::mv(figures));
  }
  return all.releaseAsArray();
}

TEST_CASE("Kernels: no kernel spills registers to memory") {
  auto log = tests::readFile("nn/cuda/kernels.ptxas");
  if (log.size() == 0) SKIP_CASE("built without CUDA");
  auto kernels = readFigures(log);
  CHECK(kernels.size() > 0);
  for (auto& kernel: kernels) {
    INFO(doctest::String(kernel.name.cStr()));
    CHECK(kernel.storedSpills_bytes == 0);
    CHECK(kernel.loadedSpills_bytes == 0);
  }
}

TEST_CASE("Kernels: the test recognizes a spill in the output of ptxas") {
  auto figures = readFigures(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function '_Z1kPf' for 'sm_90'\n"
      "ptxas info    : Function properties for _Z1kPf\n"
      "    1024 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads\n"
      "ptxas info    : Used 255 registers, used 0 barriers, 1024 bytes cumulative stack size\n");
  REQUIRE(figures.size() == 1);
  CHECK((figures[0].name == "_Z1kPf"));
  CHECK(figures[0].storedSpills_bytes == 12);
  CHECK(figures[0].loadedSpills_bytes == 16);
}

}  // namespace
}  // namespace nn::cuda
