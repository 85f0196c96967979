#include "tools/bench/command.h"

#include <stdlib.h>

#include "runner/system/reason.h"

namespace tools {

void ExperimentCommand::addArguments(kj::MainBuilder& builder, kj::StringPtr stepsDoc) {
  builder
      .addOptionWithArg(
          {"set"},
          [this](kj::StringPtr word) {
            overrides.add(word);
            return true;
          },
          "KEY=VALUE", "overrides a value of the file; may be repeated")
      .addOptionWithArg({"steps"}, numberSetter(steps), "N", stepsDoc)
      .expectArg("CONFIG", [this](kj::StringPtr word) {
        file = kj::str(word);
        return true;
      });
}

runner::LoadedExperiment ExperimentCommand::load() {
  runner::LoadedExperiment loaded;
  KJ_IF_MAYBE(e,
      kj::runCatchingExceptions([&]() { loaded = runner::loadExperiment(file, overrides); })) {
    commandLine.exitError(kj::str("error: ", runner::reasonOf(*e)));
  }
  if (loaded.experiment == nullptr) commandLine.exitError(loaded.errors);
  return loaded;
}

kj::Function<kj::MainBuilder::Validity(kj::StringPtr)> numberSetter(uint& to) {
  return [&to](kj::StringPtr word) -> kj::MainBuilder::Validity {
    char* end;
    unsigned long n = ::strtoul(word.cStr(), &end, 10);
    if (*end != '\0' || n < 1 || n > 1000000)
      return kj::str("not a whole number from 1 to 1000000");
    to = n;
    return true;
  };
}

kj::Vector<kj::String> splitAtCommas(kj::StringPtr words) {
  kj::Vector<kj::String> parts;
  for (;;) {
    KJ_IF_MAYBE(comma, words.findFirst(',')) {
      parts.add(kj::heapString(words.begin(), *comma));
      words = words.slice(*comma + 1);
    } else {
      parts.add(kj::str(words));
      return parts;
    }
  }
}

kj::Maybe<uint64_t> numberOf(kj::StringPtr word, uint64_t least, uint64_t most) {
  char* end;
  unsigned long long n = ::strtoull(word.cStr(), &end, 10);
  if (word.size() == 0 || *end != '\0' || word[0] == '-' || n < least || n > most) return nullptr;
  return uint64_t(n);
}

kj::Maybe<double> amountOf(kj::StringPtr word, double most) {
  char* end;
  double amount = ::strtod(word.cStr(), &end);
  if (word.size() == 0 || *end != '\0' || !(amount > 0 && amount <= most)) return nullptr;
  return amount;
}

}  // namespace tools
