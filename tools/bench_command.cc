#include "tools/bench_command.h"

#include <stdlib.h>

namespace tools {

void ExperimentCommand::addArguments(kj::MainBuilder& builder, kj::StringPtr stepsDoc) {
  builder
      .addOptionWithArg(
          {"set"},
          [this](kj::StringPtr word) {
            overrides.add(word);
            return true;
          },
          "KEY=VALUE", "lay a value over the file's; may be repeated")
      .addOptionWithArg({"steps"}, KJ_BIND_METHOD(*this, setSteps), "N", stepsDoc)
      .expectArg("CONFIG", [this](kj::StringPtr word) {
        file = kj::str(word);
        return true;
      });
}

runner::LoadedExperiment ExperimentCommand::load() {
  auto loaded = runner::loadExperiment(file, overrides);
  if (loaded.experiment == nullptr) commandLine.exitError(loaded.errors);
  return loaded;
}

kj::MainBuilder::Validity ExperimentCommand::setSteps(kj::StringPtr word) {
  KJ_IF_MAYBE(count, countFrom(word)) {
    steps = *count;
    return true;
  }
  return kj::str("not a number from 1");
}

kj::Maybe<uint> countFrom(kj::StringPtr word) {
  char* end;
  unsigned long n = ::strtoul(word.cStr(), &end, 10);
  if (*end != '\0' || n < 1 || n > 1000000) return nullptr;
  return uint(n);
}

}  // namespace tools
