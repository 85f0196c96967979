#include "tools/bench/command.h"

#include <stdlib.h>

#include "runner/experiment/model_facts.h"
#include "runner/system/reason.h"
#include "runner/text/numbers.h"

namespace tools {

TakesWord numberSetter(uint& to) {
  return [&to](kj::StringPtr word) -> Validity {
    KJ_IF_MAYBE(n, numberOf(word, 1, 1000000)) {
      to = *n;
      return true;
    }
    return kj::str("not a whole number from 1 to 1000000");
  };
}

TakesWord amountSetter(double& to, double most, kj::StringPtr what) {
  return [&to, most, what](kj::StringPtr word) -> Validity {
    char* end;
    double amount = ::strtod(word.cStr(), &end);
    if (word.size() == 0 || *end != '\0' || !(amount > 0 && amount <= most)) {
      return kj::str("not a number of ", what);
    }
    to = amount;
    return true;
  };
}

TakesWord wordSetter(kj::StringPtr& to) {
  return [&to](kj::StringPtr word) -> Validity {
    to = word;
    return word.size() > 0 ? Validity(true) : Validity("an empty word");
  };
}

TakesWord choiceSetter(bool& to, kj::StringPtr yes, kj::StringPtr no) {
  return [&to, yes, no](kj::StringPtr word) -> Validity {
    to = word == yes;
    if (to || word == no) return true;
    return kj::str("not ", yes, " or ", no);
  };
}

void ExperimentCommand::addArguments(kj::MainBuilder& builder, kj::StringPtr stepsDoc) {
  builder
      .addOptionWithArg(
          {"set"},
          [this](kj::StringPtr word) {
            overrides.add(word);
            return true;
          },
          "KEY=VALUE", "overrides a value of the file; may be repeated")
      .expectArg("CONFIG", wordSetter(file));
  if (stepsDoc == nullptr) return;
  builder.addOptionWithArg({"steps"}, numberSetter(steps), "N", stepsDoc);
}

runner::LoadedExperiment ExperimentCommand::load() {
  runner::LoadedExperiment loaded;
  KJ_IF_MAYBE(e,
      kj::runCatchingExceptions([&]() { loaded = runner::loadExperiment(file, overrides); })) {
    commandLine.exitError(kj::str("error: ", runner::reasonOf(*e)));
  }
  KJ_IF_MAYBE(experiment, loaded.experiment) {
    runner::useInstructionSetOf(*experiment);
    return loaded;
  }
  commandLine.exitError(loaded.errors);
}

kj::Maybe<uint64_t> numberOf(kj::StringPtr word, uint64_t least, uint64_t most) {
  KJ_IF_MAYBE(n, runner::parseWhole(word, most)) {
    if (*n >= least) return *n;
  }
  return nullptr;
}

}  // namespace tools
