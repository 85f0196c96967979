// Small files that one process of ours leaves for another, and that anybody can edit. The first
// byte says which.
#include <kj/vector.h>
#include <string.h>

#include "io/batches/division.h"
#include "runner/checkpoints/weights.h"
#include "runner/experiment/experiment.h"
#include "runner/launch/slurm_queue.h"
#include "runner/logs/events.h"
#include "runner/logs/run_folder.h"
#include "runner/logs/run_lock.h"
#include "runner/roles/job_members.h"
#include "runner/roles/member_plan.h"
#include "runner/roles/trace_file.h"
#include "runner/system/machine.h"
#include "tests/fuzz/fuzz.h"

namespace fuzz {
namespace {

constexpr uint WORKERS = 4;

void readLock(const runner::RunFolder& run) {
  runner::holderOf(run);
  runner::lastExitCodeOf(run);
  KJ_IF_MAYBE(holder, runner::lastHolderOf(run)) {
    must(holder->process.pid > 0, "a process has a number");
    must(holder->since_s >= 0 && holder->since_s < 1e12, "a time since 1970");
    holder->process.isHere();
  }
}

// The changes of a run's members, for a run that repeats or continues it.
void readMembers(const runner::RunFolder& run) {
  runner::MemberPlan plan(run, 8);
  for (uint rank = 0; rank < WORKERS; rank++) plan.lossOf(rank, rank);
  plan.joiningAt(1);
  runner::JobMembers members(WORKERS - 1, WORKERS);
  runner::eachEvent(run, [&](runner::Event::Reader event) {
    if (event.isMembership()) {
      members.add(runner::changeOf(event.getIndex(), event.getMembership()));
    }
  });
  members.settledAt();
  io::Division division(1000, 10, WORKERS - 1, members.changes());
  division.stepsUntilEndOf(1);
  uint64_t places[10];
  for (uint64_t step = 0; step < 5; step++) {
    for (uint rank: division.membersAt(step)) division.places(step, rank, places);
  }
}

// The hosts of a job, one per line. The target `toml` tests how errors are shown.
void readHosts(Bytes bytes) {
  auto path = fileOf("hosts.txt", bytes);
  configs::Diagnostics diagnostics;
  auto document = configs::parse("x.toml", kj::str("hosts = '", path, "'\n"), diagnostics);
  configs::Reading reading{diagnostics, {}};
  configs::readDocument(*document, reading, runner::readHosts);
}

const runner::Experiment& oneWorker() {
  static const auto LOADED = []() {
    configs::Diagnostics diagnostics;
    auto document = configs::parse("x.toml", R"(
name = "x"
data = { dataset = "mnist", batch_size = 100 }
model = { layers = [{ kind = "dense", units = 10 }] }
train = { epochs = 1, optimizer = { kind = "sgd", learning_rate = 0.1 } }
)"_kj,
        diagnostics);
    auto loaded = runner::readExperiment(kj::mv(document), diagnostics);
    must(diagnostics.count() == 0, diagnostics.format("x.toml"));
    return loaded;
  }();
  return KJ_ASSERT_NONNULL(LOADED.experiment);
}

}  // namespace

void feed(Bytes input) {
  Dice dice(input);
  runner::RunFolder run{kj::str(folder())};
  uint8_t choice = dice.byte();
  auto rest = dice.all();
  switch (choice % 8) {
    case 0:
      fileOf(".lock", rest);
      return readLock(run);
    case 1:
      fileOf("runs.txt", rest);
      runner::runOrderIn(run.path);
      runner::latestSweepIn(run.path);
      return;
    case 2:
      fileOf("slurm_job", rest);
      runner::slurmJobOf(run);
      runner::whySlurmEnded(run, nullptr);
      return;
    case 3:
      fileOf("events.jsonl", rest);
      return readMembers(run);
    case 4:
      fileOf("worker-0.trace.json", rest);
      return runner::joinTraces(oneWorker(), run, kj::str(run.path, "/trace.json"));
    case 5:
      return readHosts(rest);
    case 6:
      fileOf("weights.safetensors", rest);
      runner::whyNotWeights(run.weights(), "0");
      return;
    case 7:
      runner::coresOfQuota(kj::str(rest.asChars()));
      return;
  }
}

}  // namespace fuzz
