// runner/roles/coordinator.h: knows which roles have joined and are alive, lets workers meet, and
// ends the job.
#pragma once

#include <capnp/message.h>
#include <kj/async.h>
#include <kj/function.h>
#include <kj/map.h>
#include <kj/mutex.h>
#include <kj/refcount.h>
#include <kj/time.h>
#include <kj/timer.h>
#include <kj/vector.h>

#include "rpc/wire/listener.h"
#include "rpc/wire/running_time.h"
#include "rpc/wire/secret.h"
#include "runner/checkpoints/checkpoints.h"
#include "runner/checkpoints/kept_parts.h"
#include "runner/experiment/experiment.h"
#include "runner/experiment/model_facts.h"
#include "runner/logs/job.capnp.h"
#include "runner/logs/run_log.h"
#include "runner/roles/instruction_set_choice.h"
#include "runner/roles/job_members.h"
#include "runner/roles/job_saver.h"
#include "runner/roles/meeting.h"
#include "runner/roles/member_plan.h"
#include "runner/roles/sent_weights.h"
#include "runner/roles/training_speed.h"

namespace runner {

// The state of one job, all on one thread. A job makes no connections. The owner of the network
// serves the capability that bootstrap() returns. A job is refcounted, because sessions outlive
// their connections.
class Job final: public kj::Refcounted, private kj::TaskSet::ErrorHandler {
public:
  // `timer` drives time-outs, and `clock` stamps events. `facts.graph` names the tensors of the
  // weights. With `from`, the run continues from that checkpoint, and `log` ends where the
  // checkpoint was made. With `here`, all workers run on this machine. With `oneThread`, the job
  // starts no thread. All arguments must outlive the job.
  Job(const LoadedExperiment& loaded, const ModelFacts& facts, const RunFolder& folder, RunLog& log,
      kj::Timer& timer, const kj::Clock& clock, kj::Maybe<const FoundCheckpoint&> from = nullptr,
      bool here = false, kj::Maybe<const OneThread&> oneThread = nullptr);

  Coordinator::Client bootstrap();
  // Records that a connection to the capability of bootstrap() was refused. If roles are missing
  // later, messages about them also quote `sentence`.
  void noteRefused(kj::StringPtr sentence);
  // Tells the launcher the address of bootstrap(). Does nothing if the job has failed already,
  // because no role needs to start then.
  void showAddress(kj::StringPtr address);

  // Resolves to the level of instructions that all workers compute with, once it is known.
  kj::Promise<kj::StringPtr> instructionSet();

  // Writes that level into experiment.toml, once it is known. A later run of this file computes the
  // same bits, or is refused. The job does not end before this is done. Call once.
  void recordInstructionSet();

  // Repeats the changes of another run's members: workers join only at the same steps as there.
  // Call it before run().
  void repeat(MemberPlan plan) { this->plan = kj::mv(plan); }

  // Asks the workers to stop soon and be saved. The launcher sees `saved` when the checkpoint is on
  // disk, `unsaved` if it cannot be written, or `not_saved` if there is nothing to save.
  void saveNow();

  // Whether the job failed because a role is silent or cannot be reached. Such a role may be unable
  // to report why.
  bool hasLostRole() const { return lostRole; }
  // Of a job that has failed: resolves when the checkpoint that is being written is on disk.
  kj::Promise<void> whenWritten() { return saver.whenWritten(); }

  // Resolves when the weights are written and every role was told to end. Rejects, with a sentence
  // that names the role, the cause and what to do, if
  //
  //   - a role does not join in time, is lost, or is silent for too long;
  //   - a file cannot be written, or the run's folder is removed or renamed;
  //   - the folder is read-only at the start or at the end of an epoch, or its disk has no room for
  //     the weights and the logs of the next epoch.
  //
  // The log then has no event about the failure. Whoever knows the cause best appends it. With
  // `launched`, the launcher judges whether roles join in time, because it knows when it started
  // them. Call once.
  kj::Promise<void> run(bool launched);

  // Makes every further call of a role reject. Call it before the constructor's arguments are
  // destroyed, because calls of roles may keep the job alive beyond that. Drop the promise of run()
  // first.
  void close() {
    over = true;
    tasks = nullptr;
  }

private:
  friend class CoordinatorServer;
  friend class SessionServer;

  // A role's place in the job.
  struct Seat {
    Role role;
    uint index;
    // Whether the job needs the role. False for a worker that was lost or has not entered yet.
    bool isMember = true;
    uint sessions = 0;  // number of the newest session; each session and each loss adds 1
    kj::String host;    // the name of its machine, if that is not the coordinator's
    bool joined = false;
    // Why the latest role that tried to take this place was refused. Empty: none was.
    kj::String refusal;
    // When a role got its index by takeIndex(), by `running`. Null if none did.
    kj::Maybe<kj::Duration> taken = nullptr;
    bool finished = false;
    kj::Maybe<Member::Client> member;
    // Makes pending and future calls of `member` fail if the role is lost.
    kj::Maybe<kj::Own<kj::PromiseFulfiller<void>>> revoke;
    // For a worker that is ready to become a member: resolves when it may fetch its initial state.
    kj::Maybe<kj::Own<kj::PromiseFulfiller<void>>> entering;
    rpc::ServerAddress address;
    kj::Duration lastHeard = 0 * kj::NANOSECONDS;  // by `running`
    uint64_t work = 0;                             // see RoleProgress in job.capnp
    // For how long heartbeats have reported the same `work`. A long gap between two heartbeats
    // counts only in part, because the worker may have been stopped.
    kj::Duration workFor = 0 * kj::NANOSECONDS;
    uint epoch = 0;  // see RoleProgress in job.capnp
    uint64_t step = 0;
    nn::BatchResult sums;
    double read_s = 0, steps_s = 0;  // of its present epoch, as in RoleProgress
    uint trainedEpoch = 0;           // the last epoch whose sums are final

    bool isAtOwnWork() const { return work % 2 == 1; }
    bool isWorkingMember() const { return role == Role::WORKER && isMember; }
  };

  // A shard's part of the checkpoint from which the run continues.
  struct SavedShard {
    kj::Array<const kj::byte> file, weights;  // mapped
    WholePart part;                           // refers to them
  };

  Seat& seatOf(Role role, uint index);
  // The role that holds the shards.
  Role shardHolder() const { return experiment.kvstore.hasServers() ? Role::SERVER : Role::WORKER; }
  // Resolves when the role in `seat` may call the roles with shards: all roles have joined, and
  // each role with a shard has called this function. It does so once it serves its shard. In a run
  // that continues from a checkpoint, it must first fetch its part of the checkpoint, which may
  // take long.
  kj::Promise<void> whenStarted(Seat& seat);
  // Returns an index for a role that has none: see Coordinator.takeIndex() in job.capnp.
  uint takeIndex(Role role);
  void join(Seat& seat, Coordinator::JoinParams::Reader params, kj::String host);
  static void setMember(Seat& seat, Member::Client member);
  // Logs the instruction set of the workers if it is already known.
  void reportAgreed();
  void heartbeat(Seat& seat, RoleProgress::Reader progress);
  void report(Seat& seat, Event::Reader event, bool lostPeer = false);
  // Throws after close().
  void requireOpen() const;
  // Throws unless all roles have joined, so that each seat has a member.
  void requireStarted(const Seat& seat) const;
  kj::Promise<void> meet(
      Seat& seat, uint epoch, uint64_t step, MeetingPoint point, Contribution contribution);
  // Does the coordinator's part of a meeting that all members have joined.
  void closeMeeting();
  // Lets all workers continue.
  void endMeeting();
  // Writes confusion.csv if the workers have met after the last validation.
  void writeConfusion();
  // Writes a file while the job continues. The job does not end before the file is written.
  kj::Promise<void> writeBeside(kj::Function<void()> write);
  // Asks the workers to stop and be saved, every checkpoint.every_s. Never resolves.
  kj::Promise<void> saveRegularly();
  // Asks them once. Resolves to whether they will stop.
  kj::Promise<bool> askToSave();
  // Whether the workers are to be saved before the first step of the next epoch.
  bool isEndToBeSaved();
  // All workers have stopped to be saved. Lets them continue when the shards are copied.
  kj::Promise<void> save(uint epoch, uint64_t step);
  void reportSaved(
      const SavedPoint& point, kj::Maybe<const JobSaver::Saved&> saved, kj::StringPtr reason);
  // Logs that a checkpoint, or the file of the best weights, could not be written.
  void reportUnsaved(uint epoch, uint64_t step, kj::StringPtr reason);
  void reportUnsavedWeights(kj::StringPtr reason);
  // Takes a piece of a part. Fails the job if it is wrong.
  void take(Seat& seat, Session::SavePartParams::Reader piece);
  // Returns how long the run has lasted, without breaks.
  double run_s() const;
  // Warns of logs that were removed. Fails the job unless the run's folder is in place and can be
  // written, and its disk has room for what the run writes after `epochsDone` epochs.
  void checkFolder(uint epochsDone);
  void warnOfRemovedLogs();
  // Whether the run's folder is still at its path. Fails the job if it is not.
  bool isInPlace();
  // Asks the servers for their counts, and logs them.
  kj::Promise<void> countPushes(uint epoch);
  void finish(Seat& seat, kj::Array<float> parameters, kj::ArrayPtr<const float> statistics);
  // Ends the job if all members have finished.
  kj::Promise<void> endIfFinished();
  void warnOfChangesNotMade();
  // Called when session number `session` of `seat` has ended: its connection closed, or the role
  // dropped it.
  void sessionGone(Seat& seat, uint session);

  // The next functions are in coordinator_members.cc: the job continues without lost workers, and
  // takes new ones.

  // A role was lost. `reason` is for the user. Continues without the role, or ends the job. With
  // `left`, the role has left on purpose.
  void lose(Seat& seat, kj::String reason, kj::Exception::Type type, bool left = false);
  // A worker leaves between two steps, after all its pushes were answered. Resolves when the job
  // continues without it.
  kj::Promise<void> leave(Seat& seat);
  // Why the job cannot continue without this role, as the end of a sentence. Empty: cluster.on_loss
  // does not ask for it. Null: the job can continue.
  kj::Maybe<kj::String> whyNotWithout(const Seat& seat) const;
  // Whether every member had already made a step in this start of the job when `lost` was lost.
  bool hadBegunBefore(const Seat& lost) const;
  // Makes `change` when all earlier changes of the members are done. Resolves when `change` is
  // done.
  kj::Promise<void> change(kj::Function<kj::Promise<void>()> change);
  // Returns how many steps each worker makes from the beginning of the run to the end of this
  // epoch, by the changes of the members that are known.
  uint64_t endOf(uint epoch) const;
  // Calls `act` when no changes of the members are pending. Resolves when the promise of `act`
  // does.
  kj::Promise<void> whenSettled(kj::Function<kj::Promise<void>()> act);
  // Worker `rank` was lost in epoch `epoch`, or has left.
  kj::Promise<void> goOnWithout(uint rank, uint epoch, bool left);
  // Tells the servers to close rounds without this worker.
  kj::Promise<void> tellServersToLeave(uint rank);
  // Before the job starts: tells the servers which ranks are not members, so that no round waits
  // for them.
  kj::Promise<void> leaveOutsiders();
  // Tells all workers but those that enter now how the members have changed.
  kj::Promise<void> tellMembers();
  // Makes `call` for every server, and resolves when all have answered.
  kj::Promise<void> tellServers(kj::Function<kj::Promise<void>(Member::Client&)> call);
  // A worker is ready to become a member. Resolves when it can fetch its initial state.
  kj::Promise<void> enter(Seat& seat);
  // Asks the workers to stop, again and again until nobody waits to become a member.
  kj::Promise<void> admitSoon();
  // All workers have stopped at `step`: workers that wait become members. If the job repeats the
  // members of another run, waits for them first.
  kj::Promise<void> admitWaiting(uint64_t step);
  kj::Promise<void> admit(uint64_t step);
  // Whether workers can join at `step`, where all workers have stopped.
  bool isSettledAt(uint64_t step) const;
  // Whether worker `rank` has yet to fetch its initial state.
  bool isNewcomer(uint rank) const;
  // Worker `rank` has fetched its initial state, or was lost.
  void removeNewcomer(uint rank);
  // Lets new members fetch their initial state, once the first member has sent it.
  void serveNewcomers();
  void reportChange(const io::MemberChange& change, uint epoch,
      kj::ArrayPtr<const rpc::SliceId> held = nullptr, bool left = false);
  // Writes to `results` a piece of the state with which a role begins: of its part of the
  // checkpoint, or for a newcomer, of the part that the first member has sent.
  void readSaved(
      Seat& seat, PartName name, uint64_t offset, Session::SavedPartResults::Builder results);

  SavedShard openShard(const FoundCheckpoint& checkpoint, PartName name) const;

  // Ends the job. The type DISCONNECTED says that another role knows more about the cause.
  void fail(kj::String reason, kj::Exception::Type type = kj::Exception::Type::FAILED);
  void taskFailed(kj::Exception&& exception) override;
  kj::Promise<void> endAll();
  void reportStarted();
  void reportContinued(const SavedPoint& point);
  // Logs one event per key and server that holds values of the key.
  void reportPlacement();
  // Make a new event, which `fill` fills in. record() logs it, and fails the job if it cannot be
  // written. recordOrThrow() throws in that case. tellLauncher() sends the event to the launcher
  // and does not log it.
  using Fill = kj::FunctionParam<void(Event::Builder)>;
  void record(Fill fill);
  void recordOrThrow(Fill fill);
  void tellLauncher(Fill fill);
  Event::Builder newEvent(capnp::MessageBuilder& message) const;
  void append(Event::Reader event);
  void stamp(Event::Builder event) const;
  // Returns the name of a role in messages: "worker 1", "worker 1 on node2".
  kj::String nameOf(const Seat& seat) const;
  // Returns the name of a silent role, or that of its process if all servers of the process are
  // silent.
  kj::String nameOfSilent(const Seat& seat);
  // Returns the names of the roles that have not joined. Empty if all have.
  kj::StringPtr missing();
  // Returns who was refused: roles that tried to take the place of a missing role, and strangers.
  // Empty if nobody was.
  kj::String refused() const;
  kj::Promise<void> watchStart();
  // Tells the launcher which roles the job waits for: after `pause`, after twice that time, and so
  // on. Never resolves.
  kj::Promise<void> tellMissing(kj::Duration pause);
  // Calls lose() for silent roles and for workers that hang. Never resolves.
  kj::Promise<void> watchRoles();
  // Why a role that has joined counts as lost, or null.
  kj::Maybe<kj::String> whyLost(const Seat& seat);
  // Measures the speed and sends the progress to the launcher, again and again. `before` is the
  // number of steps of all workers at the last measurement. Never resolves.
  kj::Promise<void> showProgress(uint64_t before);
  // Tells the launcher how far the workers are.
  void tellProgress();

  const kj::String id = rpc::Secret::random().digits();
  const LoadedExperiment& loaded;
  const Experiment& experiment;
  const ModelFacts& facts;
  const nn::Graph& graph;
  const RunFolder& folder;
  RunLog& log;
  kj::Timer& timer;
  const kj::Clock& clock;
  const kj::TimePoint begin;
  rpc::RunningTime running;  // since `begin`

  kj::Array<Seat> seats;
  JobMembers members;
  kj::Maybe<MemberPlan> plan;        // of the run that this one repeats
  kj::ForkedPromise<void> changing;  // resolves when the changes of the members so far are done
  uint changesPending = 0;           // changes of the members that are not done yet
  kj::Vector<uint> newcomers;        // ranks that have not fetched their initial state yet
  uint donor = 0;                    // the rank that sends the newcomers' initial state
  kj::Array<kj::byte> donated;
  kj::HashMap<uint, SavedShard> restoring;  // by shard, while its role fetches it
  uint64_t stepsSkipped = 0;                // by members when they entered
  kj::Maybe<kj::Duration> waitsToJoin;  // since when a worker of `plan` is missing, by `running`
  uint joined = 0;                      // roles that have joined, of `expected`
  uint expected = 0;                    // roles that must join before the job starts
  kj::String missingNames;              // what missing() returned last
  kj::Maybe<uint> missingAt;            // the value of `joined` at that call
  kj::Vector<kj::String> strangers;     // sentences of noteRefused(), each once, and only a few
  uint finished = 0;
  uint epochsStepped = 0;          // epochs whose steps all workers have made: see MeetingPoint
  uint epochsTrained = 0;          // epochs that all workers have ended
  uint64_t epochBegin = 0;         // the step at which the present epoch began, or 0
  kj::TimePoint endSaved = begin;  // when the job was saved last at the end of an epoch
  bool hasWeights = false;         // whether a worker has sent the final ones
  kj::String weightsSha256;
  uint writing = 0;                           // files that writeBeside() has not written yet
  uint confusions = 0;                        // calls of writeBeside() for confusion.csv
  kj::MutexGuarded<uint> newestConfusion{0};  // the number of the newest of these that has begun
  kj::HashSet<kj::String> badRecords;         // the reasons that were logged already
  kj::HashSet<kj::String> removedLogs;        // the paths that the user was warned of already
  uint epochsChecked = 0;                     // the number of epochs at the last checkFolder()
  TrainingSpeed speed;
  bool lostRole = false;
  bool over = false;  // the job has ended, successfully or not. Lost roles no longer count
  kj::PromiseFulfillerPair<void> allJoined = kj::newPromiseAndFulfiller<void>();
  kj::ForkedPromise<void> whenAllJoined = allJoined.promise.fork();
  uint serving = 0;  // roles that serve their shards
  kj::PromiseFulfillerPair<void> allServe = kj::newPromiseAndFulfiller<void>();
  kj::ForkedPromise<void> whenAllServe = allServe.promise.fork();
  InstructionSetChoice instructions;
  Meeting meeting;
  const kj::Maybe<const FoundCheckpoint&> from;
  const kj::Maybe<const OneThread&> oneThread;
  JobSaver saver;
  SentWeights best;      // of the best epoch
  SentWeights averaged;  // their moving average
  kj::PromiseFulfillerPair<void> ending = kj::newPromiseAndFulfiller<void>();
  kj::Own<kj::TaskSet> tasks;  // null after close()
};

}  // namespace runner
