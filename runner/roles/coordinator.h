// runner/roles/coordinator.h: who joined, who is alive, where workers meet, and how a job ends.
#pragma once

#include <kj/async.h>
#include <kj/map.h>
#include <kj/refcount.h>
#include <kj/time.h>
#include <kj/timer.h>
#include <kj/vector.h>

#include "rpc/wire/listener.h"
#include "rpc/wire/running_time.h"
#include "runner/experiment/experiment.h"
#include "runner/experiment/model_facts.h"
#include "runner/logs/job.capnp.h"
#include "runner/logs/run_log.h"

namespace runner {

// The state of one job, all on one thread. It makes no connection itself: the capability of
// bootstrap() is served by whoever owns the network. Refcounted, because sessions outlive the
// connections they came by.
class Job final: public kj::Refcounted, private kj::TaskSet::ErrorHandler {
public:
  // `timer` drives time-outs, `clock` stamps events. `facts.graph` names what is in the weights.
  // All must outlive the job.
  Job(const Experiment& experiment, kj::StringPtr digest, const ModelFacts& facts,
      const RunFolder& folder, RunLog& log, kj::Timer& timer, const kj::Clock& clock);

  Coordinator::Client bootstrap();
  // Tells the launcher where bootstrap() is served, unless the job has failed already: then no role
  // need start.
  void showAddress(kj::StringPtr address);

  // Resolves when the weights are written and every role was told to end. Rejects, with a sentence
  // that names role, cause and way out, when a role does not join in time, is lost, or is silent
  // for too long, when a file cannot be written, when the run's folder is removed or renamed, or
  // when at the start or at the end of an epoch the folder is read-only, or the disk has no room
  // for the weights and the logs of the next epoch. The log then has no event that says so: whoever
  // knows the cause best appends it. With `launched`, the launcher judges whether roles join in
  // time: it knows when it has started them. Call once.
  kj::Promise<void> run(bool launched);

private:
  friend class CoordinatorServer;
  friend class SessionServer;

  // Sums over images.
  struct Sums {
    double loss = 0;
    uint64_t correct = 0;
    uint64_t images = 0;

    void add(const Sums& other);
  };

  // A role's place in the job.
  struct Seat {
    Role role;
    uint index;
    bool joined = false;
    bool finished = false;
    kj::Maybe<Member::Client> member;
    rpc::ServerAddress address;
    kj::Duration lastHeard = 0 * kj::NANOSECONDS;  // by `running`
    uint epoch = 0;                                // how far it got: see RoleProgress in job.capnp
    uint64_t step = 0;
    Sums sums;
    uint trainedEpoch = 0;  // whose sums are final
  };

  // The images that all workers train on, and the time that this takes them without validations.
  // The longer ago something was added, the less it weighs. The first call of add() that has images
  // only starts the measurement.
  struct Speed {
    double images = 0;
    double seconds = 0;
    bool hasBegun = false;

    void add(double newImages, double newSeconds);
    // 0 before anything was measured.
    double images_per_s() const { return seconds == 0 ? 0 : images / seconds; }
  };

  // What one worker brings to a meeting, and what all get.
  struct Contribution {
    Sums sums;
    kj::Array<float> statistics;
  };
  // All workers at one place of the run. One meeting is open at a time: nobody leaves before all
  // are there.
  struct Meeting {
    uint epoch = 0;
    MeetingPoint point = MeetingPoint::TRAINED;
    kj::Array<kj::Maybe<Contribution>> contributions;
    kj::Vector<kj::Own<kj::PromiseFulfiller<void>>> waiting;
    Contribution outcome;  // until the next meeting is full
  };

  Seat& seatOf(Role role, uint index);
  void join(Seat& seat, Member::Client member, Address::Reader address, uint pid);
  void heartbeat(Seat& seat, RoleProgress::Reader progress);
  void report(Seat& seat, Event::Reader event);
  kj::Promise<void> meet(Seat& seat, uint epoch, MeetingPoint point, Contribution contribution);
  // Lets all go on.
  void endMeeting();
  // Fails unless the run's folder is in place and can be written, and its disk has room for what
  // comes after so many epochs.
  void checkFolder(uint epochsDone);
  // Whether the run's folder still is at its path; fails if it is not.
  bool isInPlace();
  // Writes down what the servers have counted.
  kj::Promise<void> countPushes(uint epoch);
  void finish(
      Seat& seat, kj::ArrayPtr<const float> parameters, kj::ArrayPtr<const float> statistics);
  // The session of `seat` is gone: its connection closed, or the role dropped it.
  void leave(Seat& seat);

  // DISCONNECTED says that another role knows more of the cause.
  void fail(kj::String reason, kj::Exception::Type type = kj::Exception::Type::FAILED);
  void taskFailed(kj::Exception&& exception) override;
  kj::Promise<void> endAll();
  // One event a key and server that holds values of it.
  void reportPlacement();
  void append(Event::Reader event);
  void stamp(Event::Builder event);
  // Of a role that is silent: its name, or that of its process, if none of the process's servers
  // keeps its heartbeats.
  kj::String nameOfSilent(const Seat& seat);
  // The names of the roles that have not joined.
  kj::String missing() const;
  kj::Promise<void> watchStart();
  // Tells who is waited for, after `pause`, and after twice that, and so on. Never resolves.
  kj::Promise<void> tellMissing(kj::Duration pause);
  kj::Promise<void> watchSilence();
  // Measures the speed and tells the progress, again and again. `before`: the steps of all workers
  // when that was done last. Never resolves.
  kj::Promise<void> showProgress(uint64_t before);
  // Adds the time since the last call to `trained_s`, unless the workers validated in it.
  void countTraining();
  // Tells the launcher how far the workers are.
  void tellProgress();

  const Experiment& experiment;
  kj::StringPtr digest;
  const ModelFacts& facts;
  const nn::Graph& graph;
  const RunFolder& folder;
  RunLog& log;
  kj::Timer& timer;
  const kj::Clock& clock;
  const kj::TimePoint begin;
  rpc::RunningTime running;  // since `begin`

  kj::Array<Seat> seats;
  uint joined = 0;
  uint finished = 0;
  kj::String weightsSha256;
  kj::HashSet<kj::String> badRecords;  // that were told, in the words of the event
  uint epochsChecked = 0;              // at whose end the room on the disk was looked at
  Speed speed;
  kj::TimePoint counted;  // when countTraining() was called last
  double trained_s = 0;   // time that is not in `speed` yet
  bool validating = false;
  bool over = false;  // well or badly: losses no longer count
  kj::ForkedPromise<void> allJoined;
  kj::Own<kj::PromiseFulfiller<void>> allJoinedFulfiller;
  Meeting meeting;
  kj::Promise<void> ended;
  kj::Own<kj::PromiseFulfiller<void>> endedFulfiller;
  kj::TaskSet tasks;

  Job(const Experiment& experiment, kj::StringPtr digest, const ModelFacts& facts,
      const RunFolder& folder, RunLog& log, kj::Timer& timer, const kj::Clock& clock,
      kj::PromiseFulfillerPair<void> joinedPair, kj::PromiseFulfillerPair<void> endedPair);
};

}  // namespace runner
