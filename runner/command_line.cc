#include "runner/command_line.h"

#include <kj/debug.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "configs/language/diagnostics.h"
#include "runner/files.h"
#include "runner/reason.h"

namespace runner {

void print(kj::StringPtr text) {
  writeQuietly(STDOUT_FILENO, text);
}

void setThreadEnvironment(char* argv[]) {
  constexpr const char* WANTED[][2] = {
      {"OMP_NUM_THREADS", "1"}, {"OMP_WAIT_POLICY", "passive"}, {"OMP_DYNAMIC", "false"}};
  bool changed = false;
  for (auto& [name, value]: WANTED) {
    const char* present = ::getenv(name);
    if (present != nullptr && strcmp(present, value) == 0) continue;
    KJ_SYSCALL(::setenv(name, value, 1));
    changed = true;
  }
  if (changed) ::execv("/proc/self/exe", argv);
}

void CommandLine::endWith(ExitCode code) {
  ::_exit(code);
}

void CommandLine::endWith(const kj::Exception& exception, int disconnected) {
  error(reasonOf(exception));
  bool lost = exception.getType() == kj::Exception::Type::DISCONNECTED;
  ::_exit(lost ? disconnected : RUN_FAILED);
}

void CommandLine::warning(kj::StringPtr message) {
  writeQuietly(STDERR_FILENO, kj::str("warning: ", message, "\n"));
}

void CommandLine::error(kj::StringPtr message) {
  writeQuietly(STDERR_FILENO, kj::str("error: ", message, "\n"));
}

void CommandLine::exitError(kj::StringPtr message) {
  writeQuietly(STDERR_FILENO, kj::str(message, message.endsWith("\n") ? "" : "\n"));
  endWith(WRONG_INPUT);
}

void CommandLine::exitInfo(kj::StringPtr message) {
  print(kj::str(message, message.endsWith("\n") ? "" : "\n"));
  endWith(OK);
}

void CommandLine::run(kj::MainFunc main, int argc, char* argv[], int disconnected) {
  auto params = kj::heapArrayBuilder<kj::StringPtr>(kj::max(argc, 1) - 1);
  bool options = true;  // until `--`
  for (int i = 1; i < argc; i++) {
    kj::StringPtr word = argv[i];
    options = options && word != "--";
    params.add(options && word == "-h" ? "--help"_kj : word);
  }
  checkCommand(params);
  KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { main(programName, params); })) {
    endWith(*e, disconnected);
  }
  endWith(OK);
}

void CommandLine::checkCommand(kj::ArrayPtr<const kj::StringPtr> words) {
  // kj knows `help` by itself.
  if (commands.empty() || words.size() == 0 || words[0].startsWith("-") || words[0] == "help") {
    return;
  }
  for (auto command: commands) {
    if (command == words[0]) return;
  }
  exitError(kj::str(programName, ": `", words[0], "` is not a command; ",
      configs::suggest(words[0], commands), "\nTry '", programName,
      " --help' for more information."));
}

}  // namespace runner
