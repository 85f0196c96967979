#include "runner/system/command_line.h"

#include <errno.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>

#include "configs/language/diagnostics.h"
#include "configs/language/printable.h"
#include "configs/language/warning.h"
#include "runner/system/output.h"
#include "runner/system/own_program.h"
#include "runner/system/reason.h"
#include "runner/system/terminal.h"

namespace runner {

namespace {

// errno of the first write to stdout that failed; 0 if none failed.
std::atomic<int> printError{0};
bool isOutputClosed = false;  // since the program began

// `-5` and `-.5` are values, not options.
bool isNegativeNumber(kj::StringPtr word) {
  if (!word.startsWith("-")) return false;
  auto digits = word.slice(word.startsWith("-.") ? 2 : 1);
  return digits.size() > 0 && '0' <= digits[0] && digits[0] <= '9';
}

// Returns the words of the command line for kj: `--help` in place of `-h`, and a negative number in
// one word with the option before it. kj takes every word with a dash for an option.
kj::Array<kj::String> wordsForKj(kj::ArrayPtr<char* const> arguments) {
  kj::Vector<kj::String> words;
  bool options = true;      // false after `--`
  bool takesValue = false;  // whether the word before is an option without its value
  for (kj::StringPtr word: arguments) {
    options = options && word != "--";
    if (takesValue && isNegativeNumber(word)) {
      words.back() = kj::str(words.back(), words.back().startsWith("--") ? "=" : "", word);
    } else {
      words.add(options && word == "-h" ? kj::str("--help") : kj::str(word));
    }
    bool isLong = word.startsWith("--") && word.findFirst('=') == nullptr;
    bool isShort = word.size() == 2 && word.startsWith("-") && word != "--";
    takesValue = options && (isLong || isShort) && !isNegativeNumber(word);
  }
  return words.releaseAsArray();
}

// KJ warns if PWD names another folder than the current one. A program that starts ours in a folder
// without a shell passes on such a PWD.
void forgetForeignFolder() {
  const char* folder = ::getenv("PWD");
  if (folder == nullptr) return;
  struct stat named, here;
  bool isHere = folder[0] == '/' && ::lstat(folder, &named) == 0 && ::lstat(".", &here) == 0 &&
                named.st_ino == here.st_ino && named.st_dev == here.st_dev;
  if (!isHere) ::unsetenv("PWD");
}

}  // namespace

void print(kj::StringPtr text) {
  if (isOutputClosed) {
    printError = EBADF;
  } else {
    bool isTerminal = ::isatty(STDOUT_FILENO) == 1;
    writeOutput(
        STDOUT_FILENO, isTerminal ? configs::printableLines(text) : kj::str(text), printError);
  }
}

bool isOutputLost() {
  return printError != 0;
}

void printWrapped(kj::StringPtr text) {
  print(wrappedFor(STDOUT_FILENO, text));
}

void openStandardStreams() {
  for (int fd: {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    if (fd == STDOUT_FILENO) isOutputClosed = true;
    // open() takes the lowest free number.
    if (::open("/dev/null", O_RDWR) >= 0) continue;
    auto reason = strerror(errno);
    tell(kj::str("error: cannot open /dev/null: ", reason,
        "; it stands in for a standard stream that is closed: leave all three open"));
    ::_exit(RUN_FAILED);
  }
}

void setThreadEnvironment(char* argv[]) {
  constexpr const char* WANTED[][2] = {
      {"OMP_NUM_THREADS", "1"}, {"OMP_WAIT_POLICY", "passive"}, {"OMP_DYNAMIC", "false"}};
  bool changed = false;
  for (auto& pair: WANTED) {
    const char *name = pair[0], *value = pair[1];
    const char* present = ::getenv(name);
    if (present != nullptr && strcmp(present, value) == 0) continue;
    KJ_SYSCALL(::setenv(name, value, 1));
    changed = true;
  }
  if (changed) becomeOwnProgram(argv);
}

void CommandLine::endWith(ExitCode code) {
  bool isComplete = code == OK || code == MISSED;
  if (isComplete) finishOutput();
  bool isLost = printError != 0 && printError != EPIPE;
  if (isLost && isComplete) {
    error(kj::str("cannot write to standard output: ",
        isOutputClosed ? "it is closed" : strerror(printError.load()),
        "; what was printed is not complete"));
    code = RUN_FAILED;
  }
  end(code);
}

void CommandLine::endWith(const kj::Exception& exception, int code) {
  error(reasonOf(exception));
  end(code);
}

void CommandLine::end(int code) {
  finishOutput(code == INTERRUPTED);
  KJ_IF_MAYBE(take, takeCode) (*take)(code);
  ::_exit(code);
}

void CommandLine::warning(kj::StringPtr message) {
  tell(kj::str("warning: ", message));
}

void CommandLine::error(kj::StringPtr message) {
  tell(kj::str("error: ", message));
}

void CommandLine::exitError(kj::StringPtr message) {
  auto text = configs::printableLines(message);
  writeQuietly(
      STDERR_FILENO, kj::str(wrappedFor(STDERR_FILENO, text), text.endsWith("\n") ? "" : "\n"));
  endWith(WRONG_INPUT);
}

void CommandLine::orWrongInput(kj::FunctionParam<void()> work) {
  KJ_IF_MAYBE(e, kj::runCatchingExceptions(work))
    exitError(configs::printable(kj::str("error: ", reasonOf(*e))));
}

void CommandLine::exitInfo(kj::StringPtr message) {
  printWrapped(kj::str(message, message.endsWith("\n") ? "" : "\n"));
  endWith(OK);
}

void CommandLine::run(kj::MainFunc main, int argc, char* argv[], int disconnected) {
  // Writing to a pipe without readers is then an error of write(): see print().
  ::signal(SIGPIPE, SIG_IGN);
  // The same is true of a file that grows beyond the limit of `ulimit -f`. Roles inherit both
  // settings.
  ::signal(SIGXFSZ, SIG_IGN);
  configs::writeWarningsWith([](kj::String line) { writeQuietly(STDERR_FILENO, kj::mv(line)); });
  forgetForeignFolder();
  auto words = wordsForKj(kj::arrayPtr(argv, argc).slice(argc > 0 ? 1 : 0, argc));
  auto params = KJ_MAP(word, words)->kj::StringPtr {
    return word;
  };
  // kj answers `help help` with a joke.
  bool isHelpOnHelp = params.size() > 1 && params[0] == "help" && params[1] == "help";
  if (isHelpOnHelp) params = kj::heapArray<kj::StringPtr>({"--help"_kj});
  checkCommand(params);
  KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { main(programName, params); })) {
    bool lost = e->getType() == kj::Exception::Type::DISCONNECTED;
    endWith(*e, lost ? disconnected : RUN_FAILED);
  }
  endWith(OK);
}

void CommandLine::checkCommand(kj::ArrayPtr<const kj::StringPtr> words) {
  // kj handles `help` itself.
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
