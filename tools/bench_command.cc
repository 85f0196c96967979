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
      .addOptionWithArg({"steps"}, numberSetter(steps), "N", stepsDoc)
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

kj::Function<kj::MainBuilder::Validity(kj::StringPtr)> numberSetter(uint& to) {
  return [&to](kj::StringPtr word) -> kj::MainBuilder::Validity {
    char* end;
    unsigned long n = ::strtoul(word.cStr(), &end, 10);
    if (*end != '\0' || n < 1 || n > 1000000) return kj::str("not a number from 1");
    to = n;
    return true;
  };
}

}  // namespace tools
