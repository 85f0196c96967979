// Checks that docs/formats/checkpoints.md documents every field of manifest.json, and that its
// program reads a checkpoint.
#include <capnp/schema.h>
#include <doctest/doctest.h>
#include <kj/debug.h>

#include "runner/checkpoints/checkpoints.h"
#include "runner/checkpoints/manifest.capnp.h"
#include "runner/checkpoints/saved_part.h"
#include "tests/command.h"
#include "tests/text.h"

namespace runner {
namespace {

using tests::contains;

// The number of $Json.name in capnp/compat/json.capnp.
constexpr uint64_t JSON_NAME = 0xfa5b1fd61c2e7c3d;

void checkNames(capnp::StructSchema schema, kj::StringPtr page) {
  for (auto field: schema.getFields()) {
    kj::StringPtr name = field.getProto().getName();
    for (auto annotation: field.getProto().getAnnotations()) {
      if (annotation.getId() == JSON_NAME) name = annotation.getValue().getText();
    }
    CHECK_MESSAGE(contains(page, kj::str('`', name, '`')), name);
  }
}

TEST_CASE("checkpoints.md: names every field of manifest.json") {
  auto page = tests::readFile("docs/formats/checkpoints.md");
  checkNames(capnp::Schema::from<Manifest>(), page);
  checkNames(capnp::Schema::from<Manifest::File>(), page);
}

TEST_CASE("checkpoints.md: its Python program checks and reads a checkpoint") {
  RunFolder run{tests::newFolder()};
  float weights[] = {1.5, -2};
  uint64_t steps[] = {12345678901234567890u};
  double seconds = 0.125;
  PartSaver saver(0);
  saver.floats("weights", weights);
  saver.floats("nothing", kj::ArrayPtr<float>());
  saver.counts("steps", steps);
  saver.number("seconds", seconds);
  auto part = saver.finish();
  CheckpointFile files[] = {
      {workerPartName(0), kj::arr(part.head.asPtr().asConst(), part.values.asPtr().asConst())}};
  GrowingFiles logs(run.path);
  writeCheckpoint(run, {kj::str("0123"), kj::str("avx2"), 1, 7, 0.1, 0}, files, 1, logs);
  auto folder = kj::str(run.checkpoints(), "/step-7");

  auto page = tests::readFile("docs/formats/checkpoints.md");
  constexpr kj::StringPtr BEGIN = "```python\n"_kj;
  auto from = KJ_REQUIRE_NONNULL(page.findFirst('`'));
  while (!page.slice(from).startsWith(BEGIN)) from++;
  auto program = kj::heapString(page.slice(from + BEGIN.size()));
  size_t end = 0;
  while (!program.slice(end).startsWith("```")) end++;
  program = kj::heapString(program.slice(0, end));

  auto read = tests::Command({"python3", "-c", program, folder}).wait();
  CHECK(read.errors == "");
  CHECK(read.output ==
        "worker-0.safetensors weights 2 1.5\n"
        "worker-0.safetensors nothing 0 \n"
        "worker-0.safetensors steps 1 12345678901234567890\n"
        "worker-0.safetensors seconds 1 0.125\n");
  // The program notices damage.
  for (auto name: {"manifest.json"_kj, "worker-0.safetensors"_kj}) {
    auto path = kj::str(folder, "/", name);
    auto whole = tests::readFile(path);
    auto damaged = kj::heapString(whole);
    damaged[damaged.size() - 3] ^= 1;
    tests::writeFile(path, damaged);
    CHECK(tests::Command({"python3", "-c", program, folder}).wait().exitCode == 1);
    tests::writeFile(path, whole);
  }
}

}  // namespace
}  // namespace runner
