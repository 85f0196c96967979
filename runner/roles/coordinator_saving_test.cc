// How a coordinator saves a job.
#include <doctest/doctest.h>

#include "runner/roles/test_job.h"

namespace runner {
namespace {

// Lets both workers stop to be saved.
void standStill(TestJob& job, Session::Client& first, Session::Client& second) {
  auto one = meet(first, 0, 0, MeetingPoint::SAVED);
  CHECK_FALSE(one.poll(job.waitScope));
  auto other = meet(second, 0, 0, MeetingPoint::SAVED);
  one.wait(job.waitScope);
  other.wait(job.waitScope);
}

void sendPiece(TestJob& job, Session::Client& session, Part part, uint index, uint64_t offset) {
  auto request = session.savePartRequest();
  request.setPart(part);
  request.setIndex(index);
  request.setTotal(20);
  request.setOffset(offset);
  request.initBytes(10);
  request.send().wait(job.waitScope);
}

TEST_CASE("Job: workers that stop to be saved continue before their parts have arrived") {
  TestJob job("saved");
  auto server = job.join(Role::SERVER, 0);
  auto first = job.join(Role::WORKER, 0), second = job.join(Role::WORKER, 1);
  standStill(job, first, second);
  sendPiece(job, first, Part::WORKER, 0, 0);
  sendPiece(job, server, Part::SHARD, 0, 0);
  sendPiece(job, first, Part::WORKER, 0, 10);
  CHECK_FALSE(job.over.poll(job.waitScope));
}

TEST_CASE("Job: fails if a role sends a piece of a checkpoint that does not fit") {
  {
    TestJob job("wrong_piece");
    auto server = job.join(Role::SERVER, 0);
    auto first = job.join(Role::WORKER, 0), second = job.join(Role::WORKER, 1);
    standStill(job, first, second);
    sendPiece(job, first, Part::WORKER, 0, 10);
    CHECK(job.failure().startsWith("cannot take a part of a checkpoint from worker 0: "));
  }
  {
    TestJob job("unasked_piece");
    auto server = job.join(Role::SERVER, 0);
    sendPiece(job, server, Part::SHARD, 0, 0);
    CHECK(job.failure().startsWith("cannot take a part of a checkpoint from server 0: "));
  }
}

}  // namespace
}  // namespace runner
