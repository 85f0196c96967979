#include "runner/launch/progress.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>

#include "tests/skip.h"

namespace runner {
namespace {

class HandClock final: public kj::MonotonicClock {
public:
  kj::TimePoint time = kj::origin<kj::TimePoint>();

  kj::TimePoint now() const override { return time; }
};

// Returns what has been written to the other end of `fd`: `size` bytes, or fewer if no more come.
kj::String readAll(int fd, size_t size) {
  char buffer[1024];
  size_t filled = 0;
  // The kernel passes a terminal's output on with a short delay.
  for (struct pollfd ready = {fd, POLLIN, 0}; filled < size && poll(&ready, 1, 5000) == 1;) {
    ssize_t n = read(fd, buffer + filled, size - filled);
    if (n <= 0) break;
    filled += n;
  }
  return kj::heapString(buffer, filled);
}

// Whether nothing more has been written.
bool isDrained(int fd) {
  struct pollfd ready = {fd, POLLIN, 0};
  return poll(&ready, 1, 0) == 0;
}

struct Pipe {
  kj::AutoCloseFd out, in;

  Pipe() {
    int fds[2];
    KJ_SYSCALL(pipe2(fds, O_CLOEXEC));
    out = kj::AutoCloseFd(fds[0]);
    in = kj::AutoCloseFd(fds[1]);
  }
};

// Sets TERM as long as it lives.
struct Term {
  explicit Term(const char* name) {
    const char* present = getenv("TERM");
    if (present != nullptr) before = kj::str(present);
    KJ_SYSCALL(setenv("TERM", name, 1));
  }
  ~Term() noexcept(false) {
    KJ_IF_MAYBE(name, before) {
      KJ_SYSCALL(setenv("TERM", name->cStr(), 1));
    } else {
      KJ_SYSCALL(unsetenv("TERM"));
    }
  }

  kj::Maybe<kj::String> before;
};

// Opens a terminal, whose output can be read from `screen`. Null if the system has no terminals
// left.
struct Terminal {
  kj::AutoCloseFd screen, fd;
};

kj::Maybe<Terminal> openTerminal(ushort columns, ushort rows = 24) {
  int screen = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (screen < 0) return nullptr;
  Terminal terminal{kj::AutoCloseFd(screen), nullptr};
  if (grantpt(screen) != 0 || unlockpt(screen) != 0) return nullptr;
  int fd = open(ptsname(screen), O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return nullptr;
  terminal.fd = kj::AutoCloseFd(fd);
  struct winsize size = {rows, columns, 0, 0};
  KJ_SYSCALL(ioctl(fd, TIOCSWINSZ, &size));
  return kj::mv(terminal);
}

TEST_CASE("progressText: shows every known part") {
  Progress progress{3, 10, 1170, 3900, 812.4, 0.4123, 0.8611, 83.2};
  CHECK(progressText(progress) ==
        "epoch 3/10  step 1170/3900  812 images/s  loss 0.412  accuracy 0.861  ETA 1:23");
  CHECK(progressText(Progress{1, 0, 1, 500, 0.25, nullptr, nullptr, nullptr}) ==
        "epoch 1  step 1/500  0.2 images/s");
  progress.loss = std::nan("");
  progress.accuracy = nullptr;
  progress.eta_s = 7500.0;
  CHECK(
      progressText(progress) == "epoch 3/10  step 1170/3900  812 images/s  loss nan  ETA 2:05:00");
}

TEST_CASE("progressText: leaves out a remaining time that is not known") {
  for (double eta: {1.0 / 0.0, -1.0, std::nan(""), 1e300}) {
    CHECK(progressText(Progress{1, 2, 3, 4, 50, nullptr, nullptr, eta}) ==
          "epoch 1/2  step 3/4  50 images/s");
  }
}

TEST_CASE("progressText: has neither steps nor a speed during validation") {
  Progress progress{2, 2, 937, 937, 6447, 0.291, 0.894, nullptr};
  progress.validating = true;
  CHECK(progressText(progress) == "epoch 2/2  validating  loss 0.291  accuracy 0.894");
}

TEST_CASE("progressText: names a worker that makes no progress, in place of the speed") {
  Progress progress{2, 3, 82, 1171, 6447, 0.291, nullptr, nullptr};
  progress.stuckWorker = 1;
  progress.stuck_s = 45;
  CHECK(progressText(progress) ==
        "epoch 2/3  step 82/1171  worker 1: no progress for 45 s  loss 0.291");
  progress.validating = true;
  CHECK(progressText(progress) ==
        "epoch 2/3  validating  worker 1: no progress for 45 s  loss 0.291");
}

TEST_CASE("progressText: names a worker that makes no progress before the first step") {
  Progress progress{0, 3, 0, 1171, nullptr, nullptr, nullptr, nullptr};
  progress.stuckWorker = 1;
  progress.stuck_s = 45;
  CHECK(progressText(progress) == "starting  worker 1: no progress for 45 s");
}

TEST_CASE("progressText: leaves out numbers that are not known") {
  CHECK(progressText("waiting for another process", 0, 0) == "waiting for another process");
  CHECK(progressText("downloading x, bytes", 1200, 0) == "downloading x, bytes: 1,200");
  CHECK(progressText("importing, images", 1, 4) == "importing, images: 1 of 4 (25 %)");
}

TEST_CASE("progressText: writes a huge loss with an exponent") {
  CHECK(progressText(Progress{1, 2, 3, 4, 50, 1.75827e32, nullptr, nullptr}) ==
        "epoch 1/2  step 3/4  50 images/s  loss 1.76e32");
}

TEST_CASE("ProgressLine: without a terminal, writes a plain line immediately and then every 10 s") {
  Pipe pipe;
  HandClock clock;
  ProgressLine line(pipe.in, clock);
  CHECK(!line.isInPlace());
  line.show("one");
  clock.time += 9 * kj::SECONDS;
  line.show("two");
  line.clear();
  line.show("three");
  clock.time += 1 * kj::SECONDS;
  line.show("four");
  CHECK(readAll(pipe.out, 9) == "one\nfour\n");
  CHECK(isDrained(pipe.out));
}

TEST_CASE(
    "ProgressLine: rewrites the line in place, fits it to the width, and clears it at the end") {
  Term term("xterm");
  KJ_IF_MAYBE(terminal, openTerminal(10)) {
    HandClock clock;
    {
      ProgressLine line(terminal->fd, clock);
      CHECK(line.isInPlace());
      line.clear();  // Nothing to clear yet.
      line.show("epoch 1  step");
      CHECK(readAll(terminal->screen, 11) == "\r\x1b[Kepoch 1");
      line.show("too soon");
      clock.time += 50 * kj::MILLISECONDS;
      line.show("a\xc2\x9bä");
      CHECK(readAll(terminal->screen, 8) == "\r\x1b[Ka ä");
      line.clear();
      line.clear();
      CHECK(readAll(terminal->screen, 4) == "\r\x1b[K");
      // After something else was printed, the line comes back immediately.
      line.show("back");
      CHECK(readAll(terminal->screen, 8) == "\r\x1b[Kback");
    }
    CHECK(readAll(terminal->screen, 4) == "\r\x1b[K");
    CHECK(isDrained(terminal->screen));
  } else {
    SKIP_CASE("no pseudo terminal here");
  }
}

TEST_CASE("ProgressLine: writes plain lines to a terminal whose cursor cannot be moved") {
  for (auto name: {"dumb", ""}) {
    Term term(name);
    KJ_IF_MAYBE(terminal, openTerminal(10)) {
      HandClock clock;
      ProgressLine line(terminal->fd, clock);
      CHECK(!line.isInPlace());
      line.show("one");
      clock.time += 1 * kj::SECONDS;
      line.show("two");
      line.clear();
      // The terminal's driver turns \n into \r\n.
      CHECK(readAll(terminal->screen, 5) == "one\r\n");
      CHECK(isDrained(terminal->screen));
    } else {
      SKIP_CASE("no pseudo terminal here");
    }
  }
}

TEST_CASE("progressText: for a sweep, says how many runs have ended and how many of them failed") {
  CHECK(progressText(3, 12, 1, 250.0) == "sweep 3/12 done  1 failed  ETA 4:10");
  CHECK(progressText(0, 4, 0, nullptr) == "sweep 0/4 done");
}

TEST_CASE("ProgressLine: of several lines, rewrites as many as the terminal has room for") {
  Term term("xterm");
  KJ_IF_MAYBE(terminal, openTerminal(10, 3)) {
    HandClock clock;
    ProgressLine board(terminal->fd, clock);
    auto show = [&](std::initializer_list<kj::StringPtr> texts) {
      clock.time += 50 * kj::MILLISECONDS;
      auto lines = KJ_MAP(text, kj::arrayPtr(texts.begin(), texts.size())) {
        return kj::str(text);
      };
      board.show(lines);
    };
    auto screenIs = [&](kj::StringPtr expected) {
      CHECK(readAll(terminal->screen, expected.size()) == expected);
    };
    show({"a", "b"});
    // The terminal's driver turns \r\n into \r\r\n. The additional carriage return does nothing.
    screenIs("\r\x1b[Ka\r\r\n\x1b[Kb");
    show({"one", "two", "three", "last"});
    screenIs("\r\x1b[1A\x1b[Kone\r\r\n\x1b[Ktwo\r\r\n\x1b[Klast");
    show({"last"});
    screenIs("\r\x1b[2A\x1b[Klast\x1b[J");
    show({"a", "b"});
    screenIs("\r\x1b[Ka\r\r\n\x1b[Kb");
    board.clear();
    screenIs("\r\x1b[1A\x1b[J");
    CHECK(isDrained(terminal->screen));
  } else {
    SKIP_CASE("no pseudo terminal here");
  }
}

TEST_CASE("ProgressLine: without a terminal, writes the last of several lines") {
  Pipe pipe;
  HandClock clock;
  ProgressLine board(pipe.in, clock);
  auto lines = kj::arr(kj::str("a run"), kj::str("all"));
  board.show(lines);
  board.show(lines);
  CHECK(readAll(pipe.out, 4) == "all\n");
  CHECK(isDrained(pipe.out));
}

TEST_CASE("ProgressLine: assumes 80 columns if the terminal does not report its width") {
  Term term("xterm");
  KJ_IF_MAYBE(terminal, openTerminal(0)) {
    ProgressLine line(terminal->fd);
    line.show(kj::strArray(kj::repeat("x"_kj, 200), ""));
    // The ellipsis has three bytes.
    CHECK(readAll(terminal->screen, 4 + 78 + 3).size() == 4 + 78 + 3);
    CHECK(isDrained(terminal->screen));
  } else {
    SKIP_CASE("no pseudo terminal here");
  }
}

TEST_CASE("WorkProgress: shows the remaining time of each part of the work, once it is known") {
  HandClock clock;
  WorkProgress work(clock);
  CHECK(work.text("listing", 100, 1000) == "listing: 100 of 1,000 (10 %)");
  clock.time += 2 * kj::SECONDS;
  CHECK(work.text("listing", 300, 1000) == "listing: 300 of 1,000 (30 %)");
  clock.time += 2 * kj::SECONDS;
  // 400 in 4 s, so 500 in 5 s.
  CHECK(work.text("listing", 500, 1000) == "listing: 500 of 1,000 (50 %)  ETA 0:05");
  CHECK(work.text("listing", 1000, 1000) == "listing: 1,000 of 1,000 (100 %)");
  // The next part has a different speed.
  CHECK(work.text("importing", 0, 600) == "importing: 0 of 600 (0 %)");
  clock.time += 60 * kj::SECONDS;
  CHECK(work.text("importing", 60, 600) == "importing: 60 of 600 (10 %)  ETA 9:00");
  CHECK(work.text("importing", 60, 0) == "importing: 60");
}

TEST_CASE("ProgressLine: ignores a descriptor that cannot be written to") {
  HandClock clock;
  ProgressLine line(-1, clock);
  line.show("nobody sees this");
  CHECK(!line.isInPlace());
}

}  // namespace
}  // namespace runner
