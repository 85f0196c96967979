#include "runner/commands/devices_command.h"

#include "runner/experiment/devices.h"
#include "runner/system/version.h"

namespace runner {

kj::MainFunc DevicesCommand::getMain() {
  return kj::MainBuilder(commandLine, VERSION,
      "Shows what this program can compute on here: the processor's instruction set, and each GPU, "
      "or why there is none.\n"
      "\n"
      "  runner devices")
      .callAfterParsing([]() -> kj::MainBuilder::Validity {
        printWrapped(describeDevices());
        return true;
      })
      .build();
}

}  // namespace runner
