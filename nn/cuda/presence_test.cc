#include "nn/cuda/presence.h"

#include <doctest/doctest.h>

#include "tests/text.h"

namespace nn::cuda {
namespace {

Presence present(uint major) {
  auto gpus = kj::heapArrayBuilder<Gpu>(1);
  gpus.add(Gpu{kj::str("A GPU"), 80ull << 30, major, 0});
  return {gpus.finish(), nullptr};
}

kj::String why(const Presence& presence, uint index) {
  return whyNot(presence, index).orDefault(kj::str("it can"));
}

TEST_CASE("Presence: there are GPUs, or a reason why there is none") {
  auto& found = presence();
  CHECK((found.gpus.size() > 0) == (found.whyNone.size() == 0));
  for (auto& gpu: found.gpus) {
    CHECK(gpu.name.size() > 0);
    CHECK(gpu.memory_bytes > 0);
    CHECK(gpu.major > 0);
  }
  if (found.gpus.size() == 0) CHECK(why(found, 0) == found.whyNone);
}

TEST_CASE("Presence: a GPU that is missing or too old is refused with the reason") {
  Presence none = {nullptr, kj::str("no GPU found (no driver)")};
  CHECK(why(none, 0) == "no GPU found (no driver)");
  CHECK(why(present(9), 0) == "it can");
  CHECK(why(present(10), 0) == "it can");
  CHECK(why(present(9), 1) == "the last GPU that this process may use is cuda:0");
  CHECK(why(present(8), 0) == "A GPU has compute capability 8.0, and the program needs 9.0");
}

}  // namespace
}  // namespace nn::cuda
