#include "runner/commands/host_command.h"

#include <kj/async-unix.h>

#include "runner/launch/host_agent.h"
#include "runner/system/version.h"

namespace runner {

kj::MainFunc HostCommand::getMain() {
  return kj::MainBuilder(commandLine, VERSION,
      "Starts roles on this machine for `runner run` on another one, which calls it by ssh "
      "(cluster.launcher = \"ssh\") and talks to it over standard input and output. It ends, with "
      "all "
      "its roles, when that connection ends.")
      .addOption(
          {"check"},
          [this]() -> kj::MainBuilder::Validity {
            commandLine.endWith(isAsCopied() ? OK : RUN_FAILED);
          },
          "only check that the files of this copied program are unchanged: exit code 0 or 1")
      .callAfterParsing([this]() -> kj::MainBuilder::Validity {
        kj::UnixEventPort::captureChildExit();
        serveHost();
        commandLine.endWith(OK);
      })
      .build();
}

}  // namespace runner
