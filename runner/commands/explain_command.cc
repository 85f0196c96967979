#include "runner/commands/explain_command.h"

#include <stdlib.h>
#include <unistd.h>

#include "runner/commands/explain.h"
#include "runner/commands/run_data.h"
#include "runner/system/terminal.h"
#include "runner/system/version.h"

namespace runner {

namespace {

// Takes a number above 0, or with `mayBeZero` a number that is at least 0.
SetOption amountSetter(double& to, bool mayBeZero) {
  return [&to, mayBeZero](kj::StringPtr word) -> Validity {
    char* end;
    to = strtod(word.cStr(), &end);
    bool isLargeEnough = mayBeZero ? to >= 0 : to > 0;
    if (word.size() > 0 && *end == '\0' && isLargeEnough && to < 1e9) return true;
    return kj::str("`", word, "` is not a number ", mayBeZero ? "of at least 0" : "above 0",
        " and below 1000000000");
  };
}

}  // namespace

kj::MainFunc ExplainCommand::getMain() {
  kj::MainBuilder builder(commandLine, VERSION,
      "Shows what FILE resolves to: every value used, the layers with shapes, parameters and "
      "FLOPs, the share of the parameters that each server holds, the bytes sent per step, and "
      "memory. Trains nothing. Imports the data set only if the plan depends on it, as with "
      "image_folder, idx, packed records, data.classes and model.weights.\n"
      "\n"
      "  runner explain configs/cifar10_dist_sync.toml\n"
      "  runner explain configs/cifar10_dist_sync.toml --bandwidth 1000 --overhead 12");
  addFileAndSettings(builder);
  return builder
      .addOptionWithArg({"bandwidth"}, amountSetter(bandwidth_mbit, false), "MBIT",
          "speed of a host's link in each direction, in Mbit/s. With this option, the command also "
          "prints how long the pushes and pulls of a step take")
      .addOptionWithArg({"overhead"}, amountSetter(overhead_ms, true), "MS",
          "fixed network time per step in ms, added to the transfer time; `bench network` "
          "measures it (default: 0)")
      .callAfterParsing(KJ_BIND_METHOD(*this, explainFile))
      .build();
}

Validity ExplainCommand::explainFile() {
  if (bandwidth_mbit == 0 && overhead_ms > 0) {
    return kj::str("--overhead needs --bandwidth MBIT: it is added to the transfer time");
  }
  auto all = loadAll();
  if (!isAllKnown(all) || mustLook(all)) prepareData(all, path(), commandLine);
  kj::Maybe<Links> links;
  if (bandwidth_mbit > 0) links = Links{.mbit = bandwidth_mbit, .overhead_ms = overhead_ms};
  print(explain(all, links, terminalColumns(STDOUT_FILENO)));
  return true;
}

}  // namespace runner
