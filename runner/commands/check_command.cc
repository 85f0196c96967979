#include "runner/commands/check_command.h"

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
  bool open = mustLook(all);
  printWrapped(kj::str(path(), open ? ": OK so far" : ": fine",
      all.sweep == nullptr ? kj::str() : kj::str(", ", counted(all.runs.size(), "run")),
      open ? "; image shapes are checked once the data is imported" : "", "\n"));
  return true;
}

}  // namespace runner
