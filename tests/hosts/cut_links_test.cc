// Small jobs by ssh whose hosts are cut off at random moments, for a shorter or a longer time.
#include <doctest/doctest.h>
#include <stdio.h>

#include "tests/faults/losses.h"
#include "tests/hosts/launched_run.h"
#include "tests/hosts/ssh_job.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace tests {
namespace {

TEST_CASE("jobs whose links are cut for up to 6 s train the bits of an undisturbed job") {
  KJ_IF_MAYBE(why, Hosts::whyNot(SSHD)) SKIP_CASE(why->cStr());
  constexpr uint LONGEST_CUT_MS = 6000;
  uint runs = runsOr(3), same = 0, restarts = 0;
  std::mt19937 dice(runs);
  auto jobs = trainSmallJobs();
  LossFigures figures;
  Hosts hosts(3, SSHD);
  for (uint i = 0; i < runs; i++) {
    auto& job = jobs[i % jobs.size()];
    CAPTURE(i);
    kj::Vector<kj::StringPtr> settings;
    settings.addAll(job.settings);
    settings.addAll(std::initializer_list<kj::StringPtr>{
        "cluster.launcher=ssh", R"(cluster.hosts=["h2", "h3"])", "cluster.silence_timeout_s=2"});
    LaunchedRun run(hosts, SMALL_JOB, settings);
    LossWatch watch(run.path(), figures);
    // The hosts are ready when the coordinator has begun.
    while (!run.has("events.jsonl") && watch.lookFor(*run.command, 0.01)) {
    }
    for (uint cuts = 1 + dice() % 2; cuts > 0; cuts--) {
      if (!watch.lookFor(*run.command, job.seconds * (dice() % 10000) / 10000)) break;
      uint host = 1 + dice() % 2;
      watch.lose();
      hosts.cut(host);
      watch.lookFor(*run.command, (dice() % LONGEST_CUT_MS) / 1e3);
      hosts.join(host);
    }
    watch.lookFor(*run.command, PATIENCE_S);
    auto difference = job.difference(run.command->wait(0), run.path());
    CHECK(difference == "");
    same += difference.size() == 0;
    restarts += watch.noticed();
    checkNothingLeft(hosts, {0, 1, 2});
  }
  CHECK(figures.count() > 0);
  ::printf("%u of %u runs as an undisturbed one, %u restarts\n", same, runs, restarts);
  figures.print();
}

}  // namespace
}  // namespace tests
