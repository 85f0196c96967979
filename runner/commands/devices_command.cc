#include "runner/commands/devices_command.h"

#include "runner/experiment/devices.h"
#include "runner/system/version.h"

namespace runner {

kj::MainFunc DevicesCommand::getMain() {
  return kj::MainBuilder(commandLine, VERSION,
      "Shows the devices of this machine on which the program can compute: the processor with its "
      "instruction set, and each GPU. If no GPU can be used, says why.\n"
      "\n"
      "  runner devices")
      .callAfterParsing([]() -> kj::MainBuilder::Validity {
        printWrapped(describeDevices());
        return true;
      })
      .build();
}

}  // namespace runner
