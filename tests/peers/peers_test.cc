// `bench peers`, and the networks that it compares with.
#include <doctest/doctest.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/command.h"
#include "tests/peers/torch.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace tests {
namespace {

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
  auto python = torchPython();
  auto ended = Command({"tools/bench/bench", "peers", "mlp", "--rounds=1", "--seconds=1"}).wait();
  REQUIRE(ended.exitCode == 0);
  INFO(ended.output);
  if (python != "") CHECK(ended.errors.startsWith("PyTorch "));
  auto cells = lastCells(ended.output);
  REQUIRE(cells.size() >= 3);
  CHECK(cells[0] == "mlp");
  CHECK(cells[1] == "images/s");
  double ours = strtod(cells[2].cStr(), nullptr);
  CHECK(ours > 0);
  if (python == "") {
    CHECK(cells[3].startsWith("skipped: "));
    SKIP_CASE(NO_TORCH);
  }
  REQUIRE(cells.size() == 7);
  double theirs = strtod(cells[3].cStr(), nullptr);
  CHECK(strtod(cells[4].cStr(), nullptr) == doctest::Approx(ours / theirs).epsilon(0.01));
  CHECK(cells[5] == cells[4]);
  CHECK(cells[6] == cells[4]);
}

TEST_CASE("bench peers --python: a Python without PyTorch is an error that names it") {
  auto folder = newFolder();
  auto python = kj::str(folder, "/bin/python3");
  REQUIRE(Command({"mkdir", kj::str(folder, "/bin")}).wait().exitCode == 0);
  writeFile(python, "#!/bin/sh\nexit 77\n");
  REQUIRE(Command({"chmod", "+x", python}).wait().exitCode == 0);
  auto ended = Command({"tools/bench/bench", "peers", "mlp", "--python", folder}).wait();
  CHECK(ended.exitCode == 1);
  CHECK(contains(ended.errors, kj::str("error: ", python, " has no PyTorch. Name another Python")));
}

TEST_CASE("bench peers: an unknown row is refused with exit code 2") {
  auto ended = Command({"tools/bench/bench", "peers", "alexnet"}).wait();
  CHECK(ended.exitCode == 2);
  CHECK(contains(ended.errors, "no such row"));
  auto help = Command({"tools/bench/bench", "peers", "--help"}).wait();
  CHECK(contains(help.output, "two-workers: the small Inception in two workers"));
}

TEST_CASE("bench peers: a row that fails says why, and the exit code is 1") {
  // With this setting, bf16 is refused.
  kj::StringPtr setting = "DNNL_MAX_CPU_ISA=AVX2";
  auto ended = Command({"tools/bench/bench", "peers", "inception-small-bf16", "--rounds=1"},
      {.environment = kj::arrayPtr(&setting, 1)})
                   .wait();
  INFO(ended.output);
  CHECK(ended.exitCode == 1);
  CHECK(contains(ended.output, "failed: "));
  CHECK(!contains(ended.output, "skipped"));
}

TEST_CASE(
    "bench peers: has a row for every network of verify.sh, and says why it fails without a GPU") {
  if (::access("/dev/nvidiactl", F_OK) == 0) SKIP_CASE("there is a GPU here");
  auto ended =
      Command({"sh", "-c",
                  ". tools/gpu/networks.sh && exec tools/bench/bench peers --device=cuda --json "
                  "--rounds=1 --seconds=1 $(echo \"$NETWORKS\" | cut -d ' ' -f 1)"})
          .wait();
  INFO(ended.output);
  INFO(ended.errors);
  CHECK(ended.exitCode == 1);
  size_t rows = 0;
  for (char c: ended.output) rows += c == '\n';
  CHECK(rows == 8 * 3);
  CHECK(contains(ended.output,
      "\n{\"row\":\"inception-224-compiled\",\"unit\":\"images/s\",\"rounds\":0,\"failed\":\""));
  CHECK(Command({"tools/bench/bench", "peers", "disturbed", "--device=cuda"}).wait().exitCode == 2);
}

TEST_CASE("train_step.py --asked: answers each line with a measurement") {
  auto python = torchPython();
  if (python == "") SKIP_CASE(NO_TORCH);
  auto ended = Command({"sh", "-c",
                           "printf '\\n\\n' | \"$0\" tests/peers/train_step.py mlp --asked "
                           "--plain --seconds=0.1",
                           python})
                   .wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  size_t answers = 0;
  for (char c: ended.output) answers += c == '\n';
  CHECK(answers == 2);
  CHECK(ended.output.startsWith("{\"images_per_s\": "));
  auto gpu = Command({python, "tests/peers/train_step.py", "--precision=tf32"}).wait();
  CHECK(gpu.exitCode == 2);
  CHECK(contains(gpu.errors, "argument --precision: tf32 needs a GPU"));
}

TEST_CASE("the peers' networks have the published numbers of parameters") {
  auto python = torchPython();
  if (python == "") SKIP_CASE(NO_TORCH);
  auto ended = Command({python, "tests/peers/networks.py"}).wait();
  INFO(ended.output);
  CHECK(ended.errors == "");
  CHECK(ended.exitCode == 0);
}

}  // namespace
}  // namespace tests
