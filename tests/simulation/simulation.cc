// tests/simulation/simulation.cc: simulates many jobs and reports violations.
#include <kj/debug.h>
#include <kj/main.h>
#include <stdio.h>

#include "runner/text/numbers.h"
#include "tests/simulation/campaign.h"
#include "tests/simulation/virtual_clock.h"

namespace simulation {
namespace {

void print(kj::StringPtr text) {
  fwrite(text.begin(), 1, text.size(), stdout);
  // The process may end without the C library.
  fflush(stdout);
}

class Simulation {
public:
  explicit Simulation(kj::ProcessContext& context): context(context) {}

  kj::MainFunc getMain() {
    return kj::MainBuilder(context, "simulation",
        "Simulates jobs that lose roles, connections and power, and checks how they end.\n"
        "  simulation --jobs=100000 --processes=2\n"
        "  simulation --seed=4711        # the same job again, with what its roles say")
        .addOptionWithArg({"jobs"}, KJ_BIND_METHOD(*this, setJobs), "<n>",
            "Simulate so many jobs (default 1000).")
        .addOptionWithArg(
            {"seconds"}, KJ_BIND_METHOD(*this, setSeconds), "<n>", "Simulate jobs for so long.")
        .addOptionWithArg({"processes"}, KJ_BIND_METHOD(*this, setProcesses), "<n>",
            "Let so many processes share the jobs (default 1).")
        .addOptionWithArg({"first"}, KJ_BIND_METHOD(*this, setFirst), "<seed>",
            "The seed of the first job (default 1). The next job has the next number.")
        .addOptionWithArg({"seed"}, KJ_BIND_METHOD(*this, setSeed), "<seed>",
            "Simulate only the job of this seed.")
        .addOption({"until-found"}, KJ_BIND_METHOD(*this, setUntilFound),
            "Stop at the first job that does not end as it should.")
        .addOption({"without-syncs"}, KJ_BIND_METHOD(*this, skipSyncs),
            "Make a mistake on purpose: the disk ignores fsync().")
        .callAfterParsing(KJ_BIND_METHOD(*this, run))
        .build();
  }

private:
  using Validity = kj::MainBuilder::Validity;

  Validity setJobs(kj::StringPtr text) { return set(text, work.jobs); }
  Validity setFirst(kj::StringPtr text) { return set(text, work.first); }
  Validity setProcesses(kj::StringPtr text) { return set(text, work.processes); }
  Validity setSeconds(kj::StringPtr text) {
    work.jobs = kj::maxValue;
    return set(text, work.seconds);
  }
  Validity setSeed(kj::StringPtr text) {
    speaks = true;
    work.jobs = 1;
    return set(text, work.first);
  }
  Validity setUntilFound() {
    work.untilFound = true;
    return true;
  }
  Validity skipSyncs() {
    work.mistakes.skipsSyncs = true;
    return true;
  }
  template <typename T>
  Validity set(kj::StringPtr text, T& target) {
    KJ_IF_MAYBE(number, runner::parseWhole(text)) {
      target = T(*number);
      return true;
    }
    return "this is not a number";
  }

  Validity run() {
    if (work.processes == 0) return "at least one process is needed";
    auto begin_s = realTime_s();
    auto counts = simulateAll(work, [&](const Violation& violation) {
      print(kj::str("violation: ", violation.variant, ", ", violation.plan, "\n", violation.what,
          "\n", speaks ? violation.errors.asPtr() : ""_kj));
    });
    double took_s = realTime_s() - begin_s;
    print(kj::str(counts.jobs, " jobs, ", counts.violations, " violations, in ", took_s, " s (",
        counts.virtual_s, " s of the jobs' own time). The launcher started all roles again ",
        counts.restarts, " times, ", counts.resumptions, " runs were resumed, ",
        counts.interruptions, " of them after a signal, ", counts.leftBehind,
        " roles continued after they had been replaced, and ", counts.changed,
        " jobs continued without workers.\n"));
    for (auto kind: kj::indices(counts.faults)) {
      print(kj::str(counts.faults[kind], " times: ", FAULT_NAMES[kind], "\n"));
    }
    if (counts.violations > 0) context.exitError("some jobs did not end as they should");
    return true;
  }

  kj::ProcessContext& context;
  Work work;
  bool speaks = false;
};

}  // namespace
}  // namespace simulation

KJ_MAIN(simulation::Simulation)
