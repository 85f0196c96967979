#include "runner/roles/confusion_message.h"

#include <capnp/message.h>
#include <doctest/doctest.h>
#include <kj/exception.h>

namespace runner {
namespace {

constexpr uint CLASSES = 3;

// Sends `cells` with a result of the given number of images, and returns the cells that arrive.
kj::Array<nn::ConfusionCell> sent(kj::ArrayPtr<const nn::ConfusionCell> cells, uint64_t images) {
  capnp::MallocMessageBuilder message;
  auto params = message.initRoot<Session::MeetParams>();
  setCells(params.initConfusion(cells.size()), cells);
  return cellsOf(params.asReader().getConfusion(), CLASSES, images);
}

bool isRefused(kj::ArrayPtr<const nn::ConfusionCell> cells, uint64_t images) {
  return kj::runCatchingExceptions([&]() { sent(cells, images); }) != nullptr;
}

TEST_CASE("cellsOf: returns the cells that were sent") {
  auto cells = sent({{0, 2, 1}, {1, 0, 2}, {1, 1, 3}}, 6);
  REQUIRE(cells.size() == 3);
  CHECK(cells[1].label == 1);
  CHECK(cells[1].predicted == 0);
  CHECK(cells[1].images == 2);
  // Most validations send no cells.
  CHECK(sent(nullptr, 100).size() == 0);
}

TEST_CASE("cellsOf: refuses cells that no validation of so many images can produce") {
  CHECK(isRefused({{0, 0, 1}, {0, 1, 1}}, 1));
  CHECK(isRefused({{0, 0, 5}}, 6));
  CHECK(isRefused({{0, 0, 7}}, 6));
  CHECK(isRefused({{CLASSES, 0, 6}}, 6));
  CHECK(isRefused({{0, CLASSES, 6}}, 6));
  CHECK(isRefused({{0, 0, 6}, {0, 1, 0}}, 6));
  CHECK(isRefused({{0, 0, 3}, {0, 0, 3}}, 6));
  CHECK(isRefused({{1, 0, 3}, {0, 1, 3}}, 6));
  // The sum of these two overflows to 6.
  CHECK(isRefused({{0, 0, ~0ull}, {0, 1, 7}}, 6));
}

}  // namespace
}  // namespace runner
