// Standard streams that cannot be written, or are closed: a command whose output is lost says so
// and does not end as if all were well.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cstring>

#include "io/images/jpeg.h"
#include "tests/faults/failure.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace tests {
namespace {

constexpr kj::StringPtr PARSE_LOG = "tools/parse_log"_kj;

// Runs `words` with a redirection of the shell, such as `>/dev/full` or `2>&-`.
Ended redirected(kj::StringPtr redirection, Words words,
    kj::ArrayPtr<const kj::StringPtr> environment = nullptr) {
  auto script = kj::str("exec \"$@\" ", redirection);
  kj::Vector<kj::StringPtr> all;
  all.addAll(kj::ArrayPtr<const kj::StringPtr>({"sh", "-c", script, "sh"}));
  all.addAll(words);
  return Command(all, {.environment = environment}).wait();
}

TEST_CASE("a command that prints to a full disk ends with exit code 1 and says so") {
  auto fails = [](Words words) {
    INFO(kj::strArray(words, " "));
    auto ended = redirected(">/dev/full", words);
    checkFailed(ended, {"cannot write to standard output: No space left on device"});
  };
  auto run = newFolder();
  writeFile(kj::str(run, "/events.jsonl"), "");
  fails({RUNNER, "check", ENDLESS});
  fails({RUNNER, "explain", ENDLESS});
  fails({RUNNER, "table", run});
  fails({RUNNER, "devices"});
  fails({RUNNER, "reference"});
  fails({RUNNER, "--help"});
  fails({RUNNER, "--version"});
  fails({PARSE_LOG, "--help"});
}

TEST_CASE("runner host without a launcher at the other end of its streams says who starts it") {
  for (auto redirection: {"</dev/null", ">/dev/null"}) {
    checkFailed(redirected(redirection, {RUNNER, "host"}), {"`runner run` starts it by ssh"});
  }
}

TEST_CASE("a run that prints to a full disk trains to its end, and then says so") {
  auto runs = newFolder();
  auto cache = cacheSetting();
  kj::StringPtr environment[] = {cache};
  auto ended = redirected(">/dev/full",
      {RUNNER, "run", ENDLESS, "--runs", runs, "--set", "train.epochs=1"}, environment);
  checkFailed(ended, {"cannot write to standard output: No space left on device"});
  CHECK(contains(readFile(kj::str(runs, "/endless/1/events.jsonl")), "\"finished\""));
  CHECK(readFile(kj::str(runs, "/endless/1/report.html")).size() > 0);
}

// A run of which one standard stream, 1 or 2, goes to a full pipe, which nobody reads until the
// test does.
struct UnreadRun {
  UnreadRun(kj::StringPtr stream, Words options, Words environment)
      : run(words(kj::str(SCRIPT, stream, ">&3"), options), {.environment = environment}) {}

  // The shell holds both ends of the pipe, and passes them on. `dd` ends when the pipe is full.
  static constexpr kj::StringPtr SCRIPT =
      "mkfifo \"$0\" && exec 3<>\"$0\" || exit; "
      "dd if=/dev/zero of=\"$0\" bs=4096 oflag=nonblock status=none 2>/dev/null; exec \"$@\" "_kj;

  kj::Array<kj::StringPtr> words(kj::StringPtr script, Words options) {
    kj::Vector<kj::StringPtr> all;
    all.addAll(kj::ArrayPtr<const kj::StringPtr>(
        {"sh", "-c", script, fifo, RUNNER, "run", ENDLESS, "--folder", folder}));
    all.addAll(options);
    return all.releaseAsArray();
  }

  // Waits until there is a file of this name in the folder of the run. table.csv is the last
  // one that the launcher writes.
  void waitFor(kj::StringPtr name) {
    kj::AutoCloseFd changes(::inotify_init1(IN_CLOEXEC));
    KJ_SYSCALL(::inotify_add_watch(changes, folder.cStr(), IN_CREATE | IN_MOVED_TO));
    while (::access(kj::str(folder, "/", name).cStr(), F_OK) != 0) {
      struct pollfd event = {changes, POLLIN, 0};
      REQUIRE(::poll(&event, 1, PATIENCE_S * 1000) == 1);
      char ignored[4096];
      KJ_SYSCALL(::read(changes, ignored, sizeof(ignored)));
    }
  }

  kj::String folder = newFolder();
  kj::String fifo = kj::str(newFolder(), "/fifo");
  Command run;
};

TEST_CASE("a run whose output nobody reads trains to its end, and then waits for its reader") {
  auto cache = cacheSetting();
  UnreadRun unread("1", {"--set", "train.epochs=1"}, {cache});
  REQUIRE(unread.run.waitForErrors("2 servers and 2 workers"));
  unread.waitFor("table.csv");

  Command reader({"cat", unread.fifo});
  CHECK(unread.run.wait().exitCode == 0);
  auto output = reader.wait().output;
  CHECK(contains(output, "Validation-accuracy"));
  CHECK(contains(output, "weights sha256="));
}

TEST_CASE("a run that waits for its reader ends at SIGTERM, and notes the exit code") {
  auto cache = cacheSetting();
  UnreadRun unread("1", {"--set", "train.epochs=1"}, {cache});
  REQUIRE(unread.run.waitForErrors("2 servers and 2 workers"));
  unread.waitFor("table.csv");
  unread.run.kill(SIGTERM);
  CHECK(unread.run.wait().exitCode == 130);
  CHECK(linesOf(readFile(kj::str(unread.folder, "/.lock"))).back() == "exit 130");
}

TEST_CASE("a run whose output nobody reads ends at SIGTERM") {
  auto cache = cacheSetting();
  UnreadRun unread("1", nullptr, {cache});
  REQUIRE(unread.run.waitForErrors("2 servers and 2 workers"));
  Command attached({RUNNER, "attach", unread.folder});
  REQUIRE(attached.waitForOutput("Speed"));
  unread.run.kill(SIGTERM);
  CHECK(unread.run.wait().exitCode == 130);
  CHECK(attached.wait().exitCode == 130);
}

TEST_CASE("a warning that nobody reads stops no run, and arrives when somebody reads it") {
  auto cache = cacheSetting();
  UnreadRun unread("2", {"--set", "cluster.launcher=inline"}, {cache});
  unread.waitFor("worker-0.log");
  REQUIRE(::unlink(kj::str(unread.folder, "/worker-0.log").cStr()) == 0);
  // The coordinator warns at the end of an epoch.
  Command attached({RUNNER, "attach", unread.folder});
  REQUIRE(attached.waitForOutput("Epoch[3]"));

  Command reader({"cat", unread.fifo});
  CHECK(reader.waitForOutput("removed or renamed during the run"));
  unread.run.kill(SIGTERM);
  CHECK(unread.run.wait().exitCode == 130);
}

TEST_CASE("a pipe without a reader is not a failure: the command does the rest of its work") {
  auto run = newFolder();
  writeFile(kj::str(run, "/events.jsonl"), "");
  // The reader of the pipe closes it first, and only then lets the command start.
  constexpr kj::StringPtr SCRIPT =
      "set -o pipefail; { read line <\"$1\"; exec \"$2\" table \"$3\"; } | "
      "{ exec <&-; echo >\"$1\"; }"_kj;
  auto fifo = kj::str(newFolder(), "/fifo");
  REQUIRE(Command({"mkfifo", fifo}).wait().exitCode == 0);
  auto ended = Command({"bash", "-c", SCRIPT, "bash", fifo, RUNNER, run}).wait();
  CHECK(ended.exitCode == 0);
  CHECK(ended.errors == "");
  CHECK(readFile(kj::str(run, "/report.html")).size() > 0);
}

TEST_CASE("a command whose output is closed ends with exit code 1 and says so") {
  auto fails = [](Words words) {
    INFO(kj::strArray(words, " "));
    checkFailed(redirected(">&-", words), {"cannot write to standard output: it is closed"});
  };
  fails({RUNNER, "check", ENDLESS});
  fails({RUNNER, "explain", ENDLESS});
  fails({RUNNER, "reference"});
  fails({RUNNER, "--help"});
  fails({PARSE_LOG, "--help"});
}

TEST_CASE("closed standard streams harm no command, with /dev/null or without") {
  for (auto stream: {"<&-"_kj, ">&-"_kj, "2>&-"_kj, "<&- >&- 2>&-"_kj}) {
    CAPTURE(stream);
    bool isLost = contains(stream, ">&- ") || stream == ">&-";
    CHECK(redirected(stream, {RUNNER, "devices"}).exitCode == (isLost ? 1 : 0));
    auto folder = newFolder();
    for (auto name: {"cat", "dog"}) {
      auto in = kj::str(folder, "/in/", name);
      REQUIRE(Command({"mkdir", "-p", in}).wait().exitCode == 0);
      auto pixels = kj::heapArray<kj::byte>(3 * 16 * 16);
      memset(pixels.begin(), 100, pixels.size());
      auto jpeg = io::encodeJpeg({{3, 16, 16}, io::Layout::PIXELS, pixels});
      writeFile(kj::str(in, "/1.jpg"), kj::heapString(jpeg.asChars()));
    }
    auto in = kj::str(folder, "/in"), out = kj::str(folder, "/out");
    auto packed = redirected(
        stream, {"tools/pack_records", "--dataset", "image_folder", "--source", in, out});
    CHECK(packed.exitCode == (isLost ? 1 : 0));
    CHECK(readFile(kj::str(out, "/training.mdb")).size() > 0);
  }
  constexpr kj::StringPtr WITHOUT =
      "mount -t tmpfs none /dev && \"$1\" devices && \"$1\" devices <&-"_kj;
  Command mounted(
      {"unshare", "--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "none", "/dev"});
  if (mounted.wait().exitCode != 0) SKIP_CASE("this machine lets no user mount a file system");
  auto ended = Command(
      {"unshare", "--user", "--map-root-user", "--mount", "sh", "-c", WITHOUT, "sh", RUNNER})
                   .wait();
  checkFailed(ended, {"cannot open /dev/null: No such file or directory"});
  CHECK(ended.output.startsWith("cpu"));
}

}  // namespace
}  // namespace tests
