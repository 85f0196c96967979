// runner/system/exit_code.h: the exit codes of every program of the project.
#pragma once

namespace runner {

enum ExitCode {
  OK = 0,
  RUN_FAILED = 1,
  WRONG_INPUT = 2,    // the command or the file is wrong
  MISSED = 3,         // all runs finished, but one missed an expectation; or compared files differ
  INTERRUPTED = 130,  // Ctrl-C
};

}  // namespace runner
