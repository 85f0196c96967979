#include "runner/commands/attach_command.h"

#include <kj/async-io.h>
#include <kj/async-unix.h>

#include "runner/commands/followed_run.h"
#include "runner/system/interrupts.h"
#include "runner/system/terminal.h"
#include "runner/system/version.h"

namespace runner {

kj::MainFunc AttachCommand::getMain() {
  return kj::MainBuilder(commandLine, VERSION,
      "Shows the output of a run from its beginning until the run ends, and returns the run's exit "
      "code. The run may have been started with `runner run --detach`, in another terminal, or on "
      "another machine that shares the folder. RUN is the folder of a run, or the folder of an "
      "experiment, which stands for its newest run. For a run without --detach, only log.txt is "
      "shown. Ctrl-C ends the command, and the run continues.\n"
      "\n"
      "  runner attach runs/fashion_mnist_dist_sync\n"
      "  runner attach runs/fashion_mnist_dist_sync/3")
      .expectArg("RUN", textSetter(path, "name a folder, e.g. runs/fashion_mnist_dist_sync"))
      .callAfterParsing(KJ_BIND_METHOD(*this, attach))
      .build();
}

Validity AttachCommand::attach() {
  auto folder = launchedRun(path, commandLine);
  // Ctrl-C ends this command and not the run.
  endAtInterrupt(kj::str("\nleft ", folder.path, ", which continues. `runner attach ", folder.path,
      "` follows it again, and `runner stop ", folder.path, "` ends it\n"));
  kj::UnixEventPort::captureChildExit();
  auto io = kj::setupAsyncIo();
  FollowedRun run({kj::str(folder.path)}, io);
  auto ended = run.follow().then([]() { return true; });
  auto lost = run.outputLost().then([]() { return false; });
  if (!ended.exclusiveJoin(kj::mv(lost)).wait(io.waitScope)) commandLine.endWith(OK);
  auto end = run.end();
  tell(kj::str(folder.path, ": ", end.text));
  commandLine.endWith(ExitCode(end.exitCode));
}

}  // namespace runner
