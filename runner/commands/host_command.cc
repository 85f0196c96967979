#include "runner/commands/host_command.h"

#include <kj/async-unix.h>

#include "runner/launch/host_agent.h"
#include "runner/system/version.h"

namespace runner {

kj::MainFunc HostCommand::getMain() {
  return kj::MainBuilder(commandLine, VERSION,
      "Starts roles on this machine for `runner run` on another machine. There is no need to start "
      "this command by hand: with cluster.launcher = \"ssh\", `runner run` starts it over ssh, and "
      "talks to it over standard input and output. When that connection ends, the command and all "
      "its roles end.\n"
      "\n"
      "  runner host --check")
      .addOption(
          {"check"},
          [this]() -> kj::MainBuilder::Validity {
            commandLine.endWith(isAsCopied() ? OK : RUN_FAILED);
          },
          "start nothing: only check whether the files of this copied program are unchanged (exit "
          "code 0) or not (1)")
      .callAfterParsing([this]() -> kj::MainBuilder::Validity {
        kj::UnixEventPort::captureChildExit();
        serveHost();
        commandLine.endWith(OK);
      })
      .build();
}

}  // namespace runner
