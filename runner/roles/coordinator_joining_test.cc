// How roles join a job.
#include <doctest/doctest.h>

#include "runner/logs/run_lock.h"
#include "runner/roles/test_job.h"

namespace runner {
namespace {

TEST_CASE("Job: names refused connections if a role is missing later") {
  TestJob job("refused");
  for (uint i = 0; i < 9; i++) {
    job.job->noteRefused("a connection from 10.0.0.3 was refused: it has another secret");
  }
  job.join(Role::WORKER, 0, "another")
      .then([](auto&&) {}, [](kj::Exception&&) {})
      .wait(job.waitScope);
  job.join(Role::SERVER, 0, "another")
      .then([](auto&&) {}, [](kj::Exception&&) {})
      .wait(job.waitScope);
  auto server = job.join(Role::SERVER, 0);
  for (uint second = 0; second < 31; second++) {
    server.heartbeatRequest().send().wait(job.waitScope);
    job.pass(1 * kj::SECONDS);
  }
  CHECK(job.failure() ==
        "not joined within 30 s: worker 0, worker 1 (worker 0 was started with a different "
        "experiment file than the coordinator: start all roles with the same file and the same "
        "--set; a connection from 10.0.0.3 was refused: it has another secret); see why they did "
        "not start, or raise cluster.start_timeout_s");
}

TEST_CASE("Job: reports which roles it waits for, at growing intervals") {
  TestJob job("waiting");
  // Returns the waiting time in seconds that a line states.
  auto lines = [&]() {
    kj::Vector<double> found;
    job.eachTold([&](Event::Reader event) {
      if (!event.isWaiting()) return;
      CHECK(event.getWaiting().getRoles() == "server 0, worker 1");
      CHECK(event.getWaiting().getLimitS() == 30);
      found.add(event.getWaiting().getWaitedS());
    });
    return found;
  };
  auto worker = job.join(Role::WORKER, 0);
  auto pass = [&](uint seconds) {
    for (uint second = 0; second < seconds; second++) {
      worker.heartbeatRequest().send().wait(job.waitScope);
      job.pass(1 * kj::SECONDS);
    }
  };
  pass(4);
  CHECK(lines().size() == 0);
  pass(12);
  auto waited = lines();
  REQUIRE(waited.size() == 2);
  CHECK(waited[0] == doctest::Approx(5).epsilon(0.05));
  CHECK(waited[1] == doctest::Approx(15).epsilon(0.05));
  // The roles may still join.
  auto started = worker.startRequest().send();
  auto server = job.join(Role::SERVER, 0);
  CHECK_FALSE(started.poll(job.waitScope));
  auto late = job.join(Role::WORKER, 1);
  server.startRequest().send().wait(job.waitScope);
  started.wait(job.waitScope);
}

TEST_CASE("Job: names the roles that do not join in time") {
  TestJob job("missing");
  auto server = job.join(Role::SERVER, 0);
  auto worker = job.join(Role::WORKER, 1);
  for (int second = 0; second < 31; second++) {
    server.heartbeatRequest().send().wait(job.waitScope);
    worker.heartbeatRequest().send().wait(job.waitScope);
    job.pass(1 * kj::SECONDS);
  }
  CHECK(job.failure() ==
        "not joined within 30 s: worker 0; see why they did not start, or raise "
        "cluster.start_timeout_s");
}

TEST_CASE("Job: leaves it to a launcher to judge whether roles join in time") {
  TestJob job("launched", "cluster.silence_timeout_s=5", true);
  job.pass(1 * kj::HOURS);
  CHECK_FALSE(job.over.poll(job.waitScope));
}

TEST_CASE("Job: gives a role without an index the lowest free index of its kind") {
  TestJob job("free_places", "cluster.silence_timeout_s=20");
  auto take = [&](Role role, kj::StringPtr digest) {
    auto request = job.job->bootstrap().takeIndexRequest();
    request.setRole(role);
    request.setDigest(digest);
    request.setVersion(VERSION);
    return request.send().wait(job.waitScope).getIndex();
  };
  CHECK_THROWS_WITH(take(Role::WORKER, "another digest"),
      doctest::Contains("worker was started with a different experiment file"));
  // A role that is refused takes no place.
  auto second = job.join(Role::WORKER, 1);
  CHECK(take(Role::WORKER, job.loaded.digest) == 0);
  CHECK_THROWS_WITH(take(Role::WORKER, job.loaded.digest),
      doctest::Contains("this job has 2 workers, and all places are taken"));
  CHECK(take(Role::SERVER, job.loaded.digest) == 0);
  // A role that was killed before it joined does not keep its index.
  job.pass(11 * kj::SECONDS);
  CHECK(take(Role::WORKER, job.loaded.digest) == 0);
  auto first = job.join(Role::WORKER, 0);
  CHECK_THROWS(job.join(Role::WORKER, 0));
}

TEST_CASE("Job: gives each place once, and only to roles with the same experiment file") {
  TestJob job("places");
  auto server = job.join(Role::SERVER, 0);
  CHECK_THROWS(job.join(Role::SERVER, 0));
  CHECK_THROWS(job.join(Role::SERVER, 1));
  CHECK_THROWS(job.join(Role::WORKER, 0, "another digest").wait(job.waitScope));
  auto other = job.join(Role::WORKER, 0, job.loaded.digest, "runner 0.0");
  CHECK_THROWS_WITH(other.wait(job.waitScope),
      doctest::Contains("worker 0 runs another version of the program (runner 0.0) than the "));
}

// How many steps every worker of GoingOn has made.
constexpr uint64_t STEPS = 2;

// A role that takes part in changes of the members.
class GoesOn final: public Member::Server {
public:
  kj::Promise<void> fenceWorker(FenceWorkerContext context) override {
    auto pushed = context.getResults().initPushed(1);
    pushed[0].setBegin(0);
    pushed[0].setEnd(1);
    pushed[0].setSteps(STEPS);
    return kj::READY_NOW;
  }
  kj::Promise<void> leaveWorker(LeaveWorkerContext) override { return kj::READY_NOW; }
  kj::Promise<void> setMembers(SetMembersContext) override { return kj::READY_NOW; }
};

// A job that continues when it loses a worker.
struct GoingOn: public TestJob {
  explicit GoingOn(kj::StringPtr name): TestJob(name, "cluster.on_loss=continue") {
    roles.add(join(Role::SERVER, 0));
    for (uint i = 0; i < 2; i++) {
      auto& worker = roles.add(join(Role::WORKER, i));
      auto beat = worker.heartbeatRequest();
      beat.initProgress().setStep(STEPS);
      beat.send().wait(waitScope);
    }
  }

  Session::Client join(Role role, uint index) {
    auto request = job->bootstrap().joinRequest();
    request.setRole(role);
    request.setIndex(index);
    request.setDigest(loaded.digest);
    request.setVersion(VERSION);
    request.setMember(kj::heap<GoesOn>());
    return request.send().wait(waitScope).getSession();
  }

  kj::Vector<Session::Client> roles;  // server 0, worker 0, worker 1
};

TEST_CASE("Job: reports a lost worker to the launcher before the worker that takes its place") {
  GoingOn job("replaced");
  auto next = job.join(Role::WORKER, 1);
  job.pass(1 * kj::SECONDS);
  kj::Vector<kj::StringPtr> told;
  job.eachTold([&](Event::Reader event) {
    if (event.getRole() != Role::WORKER || event.getIndex() != 1) return;
    if (event.isJoined()) told.add("joined");
    if (event.isMembership() && !event.getMembership().getJoined()) told.add("lost");
  });
  CHECK(kj::strArray(told, " ") == "joined lost joined");
}

TEST_CASE("Job: without a launcher, nobody takes the place of a worker that has joined") {
  GoingOn job("by_hand");
  HeldRunFolder held({kj::str(job.folder.path)});
  held.lock.noteByHand();
  CHECK_THROWS_WITH(job.join(Role::WORKER, 1), doctest::Contains("worker 1 has joined already"));
  job.roles[2].heartbeatRequest().send().wait(job.waitScope);
  CHECK_FALSE(job.over.poll(job.waitScope));
}

}  // namespace
}  // namespace runner
