#include "runner/commands/reference_command.h"

#include "runner/experiment/experiment.h"
#include "runner/system/version.h"

namespace runner {

kj::MainFunc ReferenceCommand::getMain() {
  return kj::MainBuilder(commandLine, VERSION,
      "Prints the reference of the language of experiment files: configs/REFERENCE.md.\n"
      "\n"
      "  runner reference > configs/REFERENCE.md")
      .callAfterParsing([]() -> kj::MainBuilder::Validity {
        print(languageReference());
        return true;
      })
      .build();
}

}  // namespace runner
