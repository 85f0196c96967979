// The output that a launcher reads from programs that it has started, line by line: roles, mpirun
// and srun with their ranks, ssh, squeue, and the events of a coordinator. The first byte says
// which.
#include <capnp/message.h>
#include <kj/async-io.h>
#include <string.h>

#include "runner/launch/local_launcher.h"
#include "runner/launch/ranks.h"
#include "runner/launch/slurm_queue.h"
#include "runner/launch/ssh_host.h"
#include "runner/logs/events.h"
#include "runner/system/line_stream.h"
#include "tests/fuzz/fuzz.h"

namespace fuzz {
namespace {

class SilentView final: public runner::RunView {
public:
  SilentView(): RunView(3, 100) {}

  void show(runner::Event::Reader event) override {
    note(event);
    noticeOf(event);
  }
  void say(kj::StringPtr) override {}
  void showWait(kj::StringPtr) override {}
  void end() override {}
};

// A pipe that returns a given number of bytes at a time.
class Pipe final: public kj::AsyncInputStream {
public:
  Pipe(Bytes bytes, size_t piece): dice(bytes), piece(piece) {}

  kj::Promise<size_t> tryRead(void* buffer, size_t, size_t maxBytes) override {
    auto next = dice.take(kj::min(piece, maxBytes));
    if (next.size() > 0) memcpy(buffer, next.begin(), next.size());
    return next.size();
  }

private:
  Dice dice;
  const size_t piece;
};

template <typename Take>
void eachLine(Dice& dice, Take&& take) {
  kj::EventLoop loop;
  kj::WaitScope scope(loop);
  size_t piece = 1 + dice.byte();
  Pipe pipe(dice.all(), piece);
  runner::readLines(pipe, take).wait(scope);
}

kj::Array<runner::RoleGroup> processes() {
  kj::Vector<runner::RoleGroup> groups;
  for (auto host: {"a", "b", "node2.example"}) {
    groups.add(runner::RoleGroup{kj::str("worker on ", host),
        kj::arr(runner::PlacedRole{runner::Role::WORKER, 0, kj::str(host)})});
  }
  return groups.releaseAsArray();
}

void readRanks(Dice& dice, runner::ReadRankLine read) {
  SilentView view;
  runner::RankReport report("srun", processes(), read, view);
  int status = dice.number(2);
  eachLine(dice, [&](kj::StringPtr line) { report.take(line); });
  report.judge(status);
}

}  // namespace

void feed(Bytes input) {
  Dice dice(input);
  switch (dice.byte() % 8) {
    case 0:
      return readRanks(dice, runner::rankLineOfOpenMpi);
    case 1:
      return readRanks(dice, runner::rankLineOfHydra);
    case 2:
      return readRanks(dice, runner::rankLineOfSlurm);
    case 3: {
      SilentView view;
      runner::RoleReport report("worker 1", view, true);
      int status = dice.number(2);
      eachLine(dice, [&](kj::StringPtr line) { report.take(line); });
      report.judge(status);
      return;
    }
    case 4: {
      runner::Host host;
      host.name = kj::str("b");
      kj::Vector<kj::String> lines;
      eachLine(dice, [&](kj::StringPtr line) { lines.add(kj::str(line)); });
      runner::explainSsh(host, "ssh", lines);
      return;
    }
    case 5: {
      runner::RunFolder run{kj::str(folder())};
      eachLine(dice, [&](kj::StringPtr line) {
        auto job = runner::slurmJobIn(line);
        job.text();
        job.isOver();
        runner::whySlurmEnded(run, kj::mv(job));
      });
      return;
    }
    case 6: {
      SilentView view;
      eachLine(dice, [&](kj::StringPtr line) {
        capnp::MallocMessageBuilder message;
        auto event = message.initRoot<runner::Event>();
        auto parse = [&]() { runner::parseEvent(line, event); };
        if (kj::runCatchingExceptions(parse) == nullptr) view.show(event);
      });
      must(view.partDone() >= 0, "part");
      return;
    }
    case 7: {
      kj::EventLoop loop;
      kj::WaitScope scope(loop);
      Pipe pipe(dice.all(), 1);
      runner::HostAnswers answers(pipe, [](kj::StringPtr) {});
      for (;;) {
        auto next = answers.next();
        if (!next.poll(scope)) return;
        next.wait(scope);
      }
    }
  }
}

}  // namespace fuzz
