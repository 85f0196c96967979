#include "runner/commands/check_command.h"

#include <kj/debug.h>
#include <kj/map.h>

#include "runner/commands/run_data.h"
#include "runner/system/terminal.h"
#include "runner/system/version.h"
#include "runner/text/numbers.h"

namespace runner {

kj::MainFunc CheckCommand::getMain() {
  kj::MainBuilder builder(commandLine, VERSION,
      "Reads FILE and reports everything that is wrong with it. Starts nothing.\n"
      "\n"
      "  runner check configs/cifar10_local.toml --set data.batch_size=256");
  addFileAndSettings(builder);
  return builder.callAfterParsing(KJ_BIND_METHOD(*this, check)).build();
}

Validity CheckCommand::check() {
  auto all = loadAll();
  requireSources(all, path(), commandLine, true);
  for (auto& line: checkStarts(all, path(), commandLine)) tell(line);
  kj::HashSet<kj::String> warnings;
  for (auto& run: all.runs) {
    auto& experiment = KJ_ASSERT_NONNULL(run.loaded.experiment);
    KJ_IF_MAYBE(epochs, experiment.train.epochs) {
      for (auto& each: neverReached(experiment.expectations, experiment.published, *epochs, true)) {
        if (!warnings.contains(each)) warnings.insert(kj::mv(each));
      }
    }
  }
  for (auto& each: warnings) commandLine.warning(each);
  bool open = mustLook(all);
  printWrapped(kj::str(path(), open ? ": OK so far" : ": fine",
      all.sweep == nullptr ? kj::str() : kj::str(", ", counted(all.runs.size(), "run")),
      open ? "; `runner explain` and `runner run` also check image shapes, once they have read the "
             "records"
           : "",
      "\n"));
  return true;
}

}  // namespace runner
