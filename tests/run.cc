#include "tests/run.h"

#include <kj/debug.h>
#include <kj/vector.h>
#include <stdlib.h>
#include <string.h>

namespace tests {

namespace {

// `a/b/mlp.toml` → `mlp`.
kj::String nameOf(kj::StringPtr file) {
  KJ_IF_MAYBE(slash, file.findLast('/')) file = file.slice(*slash + 1);
  return kj::heapString(file.slice(0, KJ_ASSERT_NONNULL(file.findLast('.'))));
}

kj::Array<kj::StringPtr> words(kj::StringPtr program, kj::StringPtr file, kj::StringPtr runs,
    kj::ArrayPtr<const kj::StringPtr> settings) {
  kj::Vector<kj::StringPtr> result;
  result.addAll(kj::ArrayPtr<const kj::StringPtr>({program, "run", file, "--runs", runs}));
  for (auto setting: settings) {
    result.add("--set");
    result.add(setting);
  }
  return result.releaseAsArray();
}

}  // namespace

kj::String cacheSetting() {
  auto parent = ::getenv("TEST_TMPDIR");
  return kj::str("RUNNER_CACHE=", parent == nullptr ? "/tmp" : parent, "/cache");
}

Run::Run(kj::StringPtr file, kj::ArrayPtr<const kj::StringPtr> settings, kj::StringPtr program)
    : Run(program, file, settings, newFolder(), cacheSetting()) {}

Run::Run(kj::StringPtr program, kj::StringPtr file, kj::ArrayPtr<const kj::StringPtr> settings,
    kj::StringPtr runs, kj::StringPtr cache)
    : folder(kj::str(runs, "/", nameOf(file), "/1")),
      command(words(program, file, runs, settings), {.environment = kj::arrayPtr(&cache, 1)}) {}

Process Run::role(kj::StringPtr role, uint index) const {
  for (auto& process: roles()) {
    bool is = process.commandLine.startsWith(
        kj::str("runner role --role=", role, " --index=", index, " "));
    if (is) return {process.pid, kj::str(process.commandLine)};
  }
  KJ_FAIL_REQUIRE("no such role runs", role, index, command.output(), command.errors());
}

Trained finished(const Ended& ended, kj::StringPtr folder) {
  KJ_REQUIRE(ended.exitCode == 0, "the run failed", ended.output, ended.errors);
  // The last line: `weights sha256=<64 digits>  <folder>`.
  constexpr kj::StringPtr MARK = "\nweights sha256="_kj;
  auto tail = kj::str("  ", folder, "\n");
  auto& output = ended.output;
  KJ_REQUIRE(output.endsWith(tail) && output.size() > MARK.size() + 64 + tail.size(), output);
  auto digits = output.size() - tail.size() - 64;
  KJ_REQUIRE(output.slice(digits - MARK.size()).startsWith(MARK), output);
  return {kj::str(folder), kj::heapString(output.slice(digits, digits + 64))};
}

Trained train(
    kj::StringPtr file, kj::ArrayPtr<const kj::StringPtr> settings, kj::StringPtr program) {
  Run run(file, settings, program);
  KJ_CONTEXT("run of", file, kj::strArray(settings, " "));
  return finished(run.command.wait(), run.folder);
}

kj::Vector<kj::String> linesOf(kj::StringPtr text) {
  kj::Vector<kj::String> lines;
  while (text.size() > 0) {
    auto end = KJ_REQUIRE_NONNULL(text.findFirst('\n'), "a torn line", text);
    lines.add(kj::str(text.slice(0, end)));
    text = text.slice(end + 1);
  }
  return lines;
}

kj::Array<float> weightsOf(const Trained& run) {
  auto file = readFile(kj::str(run.folder, "/weights.safetensors"));
  uint64_t headerBytes;
  KJ_REQUIRE(file.size() > sizeof(headerBytes));
  memcpy(&headerBytes, file.begin(), sizeof(headerBytes));
  auto begin = sizeof(headerBytes) + headerBytes;
  KJ_REQUIRE(begin < file.size() && (file.size() - begin) % sizeof(float) == 0);
  auto values = kj::heapArray<float>((file.size() - begin) / sizeof(float));
  memcpy(values.begin(), file.begin() + begin, values.asBytes().size());
  return values;
}

}  // namespace tests
