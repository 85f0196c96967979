// runner/system/background.h: lets a program continue after its terminal was closed.
#pragma once

#include <kj/function.h>
#include <kj/io.h>
#include <kj/string.h>
#include <sys/types.h>

namespace runner {

// Forks this process: the caller continues in the new one, which has a new session and no terminal.
class Background {
public:
  // Returns in the new process only. Messages go to the terminal until ready(). The old process
  // waits. After ready(), the old process calls `begun` with the pid of the new one, and exits with
  // the code that `begun` returns. If the new process ends before ready(), the old one exits with
  // its exit code. Construct it while there is one thread, and before there is an event loop.
  explicit Background(kj::FunctionParam<int(pid_t pid)> begun);
  KJ_DISALLOW_COPY(Background);

  // From now on, standard input is empty, and standard output and standard error go to the file at
  // `path`, which is emptied first. Throws with path and cause if that file cannot be written. Call
  // once.
  void ready(kj::StringPtr path);

private:
  kj::AutoCloseFd old;  // the pipe to the old process
};

}  // namespace runner
