// `bench peers`, and the networks that it compares with.
#include <doctest/doctest.h>
#include <stdlib.h>

#include "tests/command.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr PYTHON = "/usr/bin/python3"_kj;

// The cells of the last line, which are two spaces or more apart.
kj::Vector<kj::String> lastCells(kj::StringPtr text) {
  kj::Vector<kj::String> cells;
  size_t end = text.size() - 1;
  size_t begin = end;
  while (begin > 0 && text[begin - 1] != '\n') --begin;
  while (begin < end) {
    size_t stop = begin;
    while (stop < end && !text.slice(stop).startsWith("  ")) ++stop;
    cells.add(kj::heapString(text.begin() + begin, stop - begin));
    for (begin = stop; begin < end && text[begin] == ' ';) ++begin;
  }
  return cells;
}

TEST_CASE("bench peers: a row has both figures and their ratio, or says why it has none") {
  auto ended = Command({"tools/bench", "peers", "mlp", "--rounds=1", "--seconds=1"}).wait();
  REQUIRE(ended.exitCode == 0);
  INFO(ended.output);
  auto cells = lastCells(ended.output);
  REQUIRE(cells.size() >= 3);
  CHECK(cells[0] == "mlp");
  CHECK(cells[1] == "images/s");
  double ours = strtod(cells[2].cStr(), nullptr);
  CHECK(ours > 0);
  if (cells[3] == "skipped: no python3-torch") SKIP_CASE("no python3-torch");
  REQUIRE(cells.size() == 7);
  double theirs = strtod(cells[3].cStr(), nullptr);
  CHECK(strtod(cells[4].cStr(), nullptr) == doctest::Approx(ours / theirs).epsilon(0.01));
  CHECK(cells[5] == cells[4]);
  CHECK(cells[6] == cells[4]);
}

TEST_CASE("bench peers: a row that there is not is a wrong command") {
  auto ended = Command({"tools/bench", "peers", "alexnet"}).wait();
  CHECK(ended.exitCode == 2);
  CHECK(contains(ended.errors, "no such row"));
  auto help = Command({"tools/bench", "peers", "--help"}).wait();
  CHECK(contains(help.output, "two-workers: the small Inception in two workers"));
}

TEST_CASE("bench peers: a row that fails says why, and the exit code is 1") {
  // bf16 is refused then.
  kj::StringPtr setting = "DNNL_MAX_CPU_ISA=AVX2";
  auto ended = Command({"tools/bench", "peers", "inception-small-bf16", "--rounds=1"},
      {.environment = kj::arrayPtr(&setting, 1)})
                   .wait();
  INFO(ended.output);
  CHECK(ended.exitCode == 1);
  CHECK(contains(ended.output, "failed: "));
  CHECK(!contains(ended.output, "skipped"));
}

TEST_CASE("the peers' networks have the published numbers of parameters") {
  if (Command({PYTHON, "-c", "import torch"}).wait().exitCode != 0) SKIP_CASE("no python3-torch");
  auto ended = Command({PYTHON, "tests/peers/networks.py"}).wait();
  INFO(ended.output);
  CHECK(ended.errors == "");
  CHECK(ended.exitCode == 0);
}

}  // namespace
}  // namespace tests
