// Runs each line `$ command` of the *.expected files here as a shell does, in this folder, with
// parse_log in its PATH. The text after the line, up to the next `$` or the file's end, is the
// expected output (stderr and stdout), then `exit` and the exit code. To add a case: write the log
// and such a file of the same name.
#include <doctest/doctest.h>
#include <glob.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "tests/command.h"

namespace tests {
namespace {

std::string runShell(const std::string& command, kj::StringPtr programs) {
  auto script = kj::str("{ ", command.c_str(), "; } 2>&1; echo exit $?");
  auto path = kj::str("PATH=", programs, ":/usr/bin:/bin");
  kj::StringPtr environment[] = {path};
  return Command({"sh", "-c", script}, {"tests/parse_log", environment}).wait().output.cStr();
}

TEST_CASE("parse_log prints for each command of the transcripts exactly the expected text") {
  char folder[4096];
  REQUIRE(getcwd(folder, sizeof(folder)) != nullptr);
  auto programs = kj::str(folder, "/tools");

  glob_t found;
  REQUIRE(glob("tests/parse_log/*.expected", 0, nullptr, &found) == 0);
  int commands = 0;
  for (size_t i = 0; i < found.gl_pathc; ++i) {
    std::ifstream file(found.gl_pathv[i]);
    std::string line, command, expected;
    auto check = [&]() {
      if (command.empty()) return;
      INFO(std::string(found.gl_pathv[i]), ": ", command);
      CHECK(runShell(command, programs) == expected);
      ++commands;
    };
    while (std::getline(file, line)) {
      if (line.rfind("$ ", 0) == 0) {
        check();
        command = line.substr(2);
        expected.clear();
      } else {
        expected += line + "\n";
      }
    }
    check();
  }
  globfree(&found);
  CHECK(commands >= 20);
}

}  // namespace
}  // namespace tests
