#include "runner/commands/attach_command.h"

#include <errno.h>
#include <fcntl.h>
#include <kj/async-io.h>
#include <string.h>
#include <unistd.h>

#include "configs/language/failure.h"
#include "runner/commands/launched_runs.h"
#include "runner/system/interrupts.h"
#include "runner/system/terminal.h"
#include "runner/system/version.h"

namespace runner {

namespace {

// How often to look for more. Over a network file system, nothing announces it.
constexpr auto LOOK_INTERVAL = 200 * kj::MILLISECONDS;

// A file that another process appends to, maybe on another machine.
class GrowingFile {
public:
  explicit GrowingFile(kj::String path): path(kj::mv(path)) {}

  // Prints what the file has more than at the last call. Does nothing while there is no such file.
  void printMore() {
    // A network file system shows what others have written when a file is opened.
    int raw = ::open(path.cStr(), O_RDONLY | O_CLOEXEC);
    if (raw < 0 && errno == ENOENT) return;
    if (raw < 0) configs::fail("cannot read ", path, ": ", strerror(errno));
    kj::AutoCloseFd fd(raw);
    char buffer[65536];
    ssize_t n;
    while ((n = ::pread(fd, buffer, sizeof(buffer), offset)) > 0) {
      offset += n;
      print(kj::heapString(buffer, n));
    }
    if (n < 0) configs::fail("cannot read ", path, ": ", strerror(errno));
  }

private:
  const kj::String path;
  off_t offset = 0;
};

// Returns the file in which the newest launcher of `folder` says what happens. Throws if it says
// that to a terminal only.
kj::String spokenFileOf(const RunFolder& folder) {
  KJ_IF_MAYBE(holder, lastHolderOf(folder)) {
    if (holder->isInBackground) return folder.output();
  }
  if (!isSweep(folder)) return folder.log();
  configs::fail("the sweep in ", folder.path,
      " was started without --detach, so only its terminal shows it. Name the folder of one of "
      "its runs, or see `runner table ",
      folder.path, "`");
}

}  // namespace

kj::MainFunc AttachCommand::getMain() {
  return kj::MainBuilder(commandLine, VERSION,
      "Shows what a run says, from its beginning, until it ends, and then ends with its exit code. "
      "The run may have been started with `runner run --detach`, in another terminal, or on "
      "another machine that shares the folder. RUN is its folder, or that of its experiment: then "
      "its newest run. Of a run without --detach, only the log is shown. Ctrl-C leaves the run, "
      "which goes on.\n"
      "\n"
      "  runner attach runs/fashion_mnist_dist_sync\n"
      "  runner attach runs/fashion_mnist_dist_sync/3")
      .expectArg("RUN", textSetter(path, "name a folder, e.g. runs/fashion_mnist_dist_sync"))
      .callAfterParsing(KJ_BIND_METHOD(*this, attach))
      .build();
}

Validity AttachCommand::attach() {
  auto folder = launchedRun(path);
  lastWords = kj::str("\nleft ", folder.path, ", which goes on. `runner attach ", folder.path,
      "` follows it again, and `runner stop ", folder.path, "` ends it\n");
  endAtInterrupt(lastWords);
  GrowingFile said(spokenFileOf(folder));
  auto io = kj::setupAsyncIo();
  for (;;) {
    // Asked first, so that nothing is missing that was written before the end.
    bool goesOn = isHeld(folder);
    said.printMore();
    if (!goesOn) break;
    io.provider->getTimer().afterDelay(LOOK_INTERVAL).wait(io.waitScope);
  }
  auto end = endOf(folder);
  tell(kj::str(folder.path, ": ", end.text));
  commandLine.endWith(ExitCode(end.exitCode));
}

}  // namespace runner
