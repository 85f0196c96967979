@0xb5e1c0d2a7f34e61;
# runner/logs/job.capnp: the protocol between the roles of a job and their coordinator, and the
# events of a run.
#
# Life of a job: the coordinator listens. Every server and worker connects, calls join() and gets a
# Session. From then on it calls heartbeat() at least every silence_timeout_s / 5. If the run goes
# on from a checkpoint, the role fetches its part of it by savedPart(). start() answers when all
# roles have joined. Workers call meet() at the ends of epochs and when the job is saved, and
# finish() last. When all workers have finished, the coordinator calls end() on every Member, and
# each role leaves. A role is lost if its session is dropped before end(), or is silent for too
# long.

using Cxx = import "/capnp/c++.capnp";
using Json = import "/capnp/compat/json.capnp";

$Cxx.namespace("runner");

enum Role {
  coordinator @0;
  server @1;
  worker @2;
}

struct Address {
  # Where a role listens that holds a shard.
  tcp @0 :Text;    # "127.0.0.1:4711"
  local @1 :Text;  # "unix-abstract:…", a Unix socket of its machine; may be empty
}

interface Coordinator {
  # The bootstrap capability of the coordinator's address.

  join @0 (role :Role, index :UInt32, pid :UInt32, address :Address, digest :Text, version :Text,
           member :Member, host :Text, instructionSet :Text, settings :Text)
      -> (session :Session, boot :Text, job :Text, continues :Bool, enters :Bool);
  # Takes a place in the job. `index` is the rank, which the launcher gives: it never depends on who
  # comes first. Launchers that give none: see takeIndex(). `address` is where a role that holds a
  # shard listens. `digest` is the sha256 of the resolved experiment, and `version` the version of
  # the role's program. The coordinator refuses another version, a role that read another file, and
  # a place that is taken. `settings` is the text that the digest is of, without the records. It is
  # empty if it is very long. The coordinator names the keys that differ. `host` is the name of the
  # role's machine, for messages. `boot` identifies the boot of the machine that the coordinator
  # runs on. If a role runs on the same boot, the two share a monotonic clock. `job` is drawn at
  # random for each job. With the job's secret it makes the secret by which workers and servers
  # prove who they are to each other. `instructionSet` is for workers only: the highest level of
  # instructions that the role's host has. See nn/cpu/instruction_set.h. The coordinator refuses a
  # worker whose host cannot compute with the level that the experiment names. `continues`: the run
  # goes on from a checkpoint. `enters`: the job goes on without this worker, until it calls
  # enter().

  takeIndex @1 (role :Role, digest :Text, version :Text, settings :Text) -> (index :UInt32);
  # For a role whose launcher gave it no index. Returns the lowest index with which no other role of
  # its kind has joined, and which none has taken in the last 10 s. If servers share a process, only
  # the index of its first server is returned. The role then joins with it, over another connection.
  # For this call its name in the proof is `worker` or `server`, without an index. Refuses what
  # join() refuses, and a role that is one too many.
}

interface Member {
  # A role, as the coordinator sees it.

  end @0 ();
  # The job ended well. The role leaves.

  count @1 () -> (pushes :Pushes);
  # For servers only. Called when all workers have done the last step of an epoch.

  stopAt @2 (step :UInt64) -> (answer :StopAnswer, step :UInt64);
  # For workers only. Asks the worker to stop when it has made `step` steps, to be saved. If it
  # answers `yes`, it stops there and waits for decide(). `step` in the answer is how many steps it
  # has begun.

  decide @3 (step :UInt64, save :Bool);
  # For workers that have answered `yes`. With `save`, all have, and the worker calls meet() at that
  # step, to be saved. Otherwise it goes on.

  saveShard @4 (step :UInt64);
  # For roles that hold a shard. Called while all workers meet to be saved. The role copies its
  # shard before it answers, and sends the copy by savePart() later.

  fenceWorker @5 (rank :UInt32) -> (pushed :List(SliceRun));
  # For servers only. The worker was lost: the server refuses what it still sends, and answers how
  # many steps it has pushed of each slice of this server. Rounds that lack its push still wait.

  leaveWorker @6 (rank :UInt32);
  # For servers only. From now on, no round waits for this worker.

  admitWorker @7 (rank :UInt32, step :UInt64);
  # For servers only. All workers stand still at `step`. From there on, rounds wait for this worker.

  setMembers @8 (changes :List(MemberChange));
  # For workers only. Tells all changes of the members since the beginning of the run. When the
  # worker has answered, it takes them into account before it reads for the first step that they
  # concern.
}

struct SliceRun {
  # Consecutive slices of one server, as it counts them.
  begin @0 :UInt32;
  end @1 :UInt32;
  steps @2 :UInt64;
}

struct MemberChange {
  # See io::MemberChange.
  rank @0 :UInt32;
  joins @1 :Bool;
  step @2 :UInt64;
  counts @3 :Bool;
  from @4 :UInt64;
}

enum StopAnswer {
  yes @0;
  passed @1;     # the worker has begun that step already
  epochEnds @2;  # the epoch ends before that step, or at it
}

interface Session {
  # One role's seat in the job.

  start @0 () -> (shards :List(Address), changes :List(MemberChange), names :List(Text));
  # Waits until every role has joined, and every role that holds a shard has called this. Such a
  # role calls it when it serves its shard. Answers the addresses of those that hold shards (the
  # servers, or all workers), by index, and how the members of the job have changed so far. `names`
  # are what messages call those at the addresses: "server 1 on node2".

  heartbeat @1 (progress :RoleProgress) -> (clockNs :Int64, missing :Text);
  # Says that the role's io thread is alive. `progress` is how far its compute thread has come;
  # servers leave it empty. Answers the coordinator's monotonic clock: see ClockOffset. `missing`
  # names the roles that have not joined: `server 0, worker 1`. It is empty when all have.

  report @2 (event :Event, lostPeer :Bool);
  # Appends to the run's events and log. The coordinator fills in time, role and index. `failed`
  # ends the job with its reason. It comes from a worker that cannot reach a server, and from every
  # failing role that was started by hand. `lostPeer`: its cause is another role, or the way there.

  meet @3 (epoch :UInt32, point :MeetingPoint, result :Result, statistics :Data, step :UInt64,
           confusion :List(ConfusionCell))
      -> (result :Result, statistics :Data, stopNext :Bool, part :UInt32, parts :UInt32,
          again :Bool);
  # For workers only. Waits for all workers at the same place of the run. Answers the sum of all
  # results, and the mean of all statistics (float32), weighted by result.images. Both are added in
  # rank order. `step` is how many steps the worker has made. `stopNext`: the worker is to be saved
  # before its next step. The validation that follows has `parts` parts, and number `part` of them
  # is this worker's. `again`: a worker was lost before it had validated its part, or had made its
  # steps. The others validate again, or make these steps, and then meet again. `confusion` comes
  # with the last validation of a run: the cells of this worker's part that have images, ordered by
  # label, then by prediction. If every worker validates on all records, only the one with part 0
  # sends them.

  finish @4 (parameters :List(Data), statistics :Data);
  # For workers only. A worker calls it once, as its last call. Rank 0 sends the final weights
  # (float32), the others none. With cluster.on_loss = "continue", every worker sends them. The
  # parameters come in pieces, because a Data holds less than 512 MiB.

  instructionSet @5 () -> (level :Text);
  # For workers only. Waits until it is known which level of instructions all workers have.

  savePart @6 (step :UInt64, part :Part, index :UInt32, total :UInt64, offset :UInt64, bytes :Data);
  # Sends a piece of what this role, or its shard, has kept at `step`. `total` is the size of the
  # part. The pieces come in order.

  savedPart @7 (part :Part, index :UInt32, offset :UInt64) -> (total :UInt64, bytes :Data);
  # Returns the piece at `offset` of a part of the checkpoint from which this run goes on. After
  # enter(), returns a piece of what the first member has kept at that step. `total` is the size of
  # the part.

  enter @8 ();
  # For workers that join a job which goes on. Called when the worker is ready to train. Answers
  # when it is a member and can fetch what it begins with, by savedPart().

  leave @9 ();
  # For workers that leave the job on purpose, between two steps, when all they have pushed was
  # answered. Answers when the job goes on without the worker. If it cannot, the job ends.
}

enum Part {
  worker @0;  # what a worker keeps, by rank
  shard @1;   # what a shard keeps
  best @2;    # from worker 0: best.safetensors, of an epoch that is better than all before it
  averaged @3;  # from worker 0: ema.safetensors, at the end of the run
}

enum MeetingPoint {
  trained @0;    # the epoch's last step is done and answered; statistics are averaged
  validated @1;  # this worker has validated its part of the records
  saved @2;      # the worker stands between two steps, and everything it has pushed is answered
  stepped @3;    # where changes of the members wait for the end of an epoch: the worker has made
                 # the steps that it knows of, and everything it has pushed is answered
}

struct Result {
  # Sums over images.
  lossSum @0 :Float64;
  correct @1 :UInt64;
  images @2 :UInt64;
  inTopK @3 :UInt64;
}

struct ConfusionCell {
  # How many images of a class were taken for a class.
  label @0 :UInt32;
  predicted @1 :UInt32;
  images @2 :UInt64;
}

struct RoleProgress {
  epoch @0 :UInt32;  # from 1
  step @1 :UInt64;   # steps done, from the beginning of the run
  result @2 :Result; # of the epoch so far
  readS @3 :Float64;   # of the epoch so far: seconds in which steps waited for records
  stepsS @4 :Float64;  # of the epoch so far: seconds of steps
  work @5 :UInt64;
  # Counts the beginnings and the ends of pieces of the worker's own work, in which it waits for no
  # other role. It is odd during such a piece. A worker whose piece lasts cluster.stall_timeout_s
  # counts as lost.
}

struct Event {
  # A line of events.jsonl.

  timeS @0 :Float64 $Json.name("time_s");
  # Seconds since 1970.
  role @1 :Role;
  index @2 :UInt32;

  union {
    started :group $Json.name("started") {
      # First line: what runs.
      name @3 :Text;
      digest @4 :Text;
      instructionSet @5 :Text $Json.name("instruction_set");
      parameters @6 :UInt32;
      workers @7 :UInt32;
      servers @8 :UInt32;
      epochs @9 :UInt32;
      globalBatchSize @10 :UInt32 $Json.name("global_batch_size");
      steps @46 :UInt32;
      # Of each worker, in the whole run.
      version @47 :Text;
      # Of the program.
      cpu @48 :Text;
      # The coordinator's machine.
      cores @49 :UInt32;
      memoryBytes @50 :Float64 $Json.name("memory_bytes");
      leftOut @91 :List(Text) $Json.name("left_out");
      # What the import of the data set left out, one sentence each.
    }
    placed :group {
      # The values of a key on one server, before training starts.
      key @51 :Text;
      server @52 :UInt32;
      bytes @53 :Float64;
    }
    listening :group {
      # The coordinator can be joined here.
      address @11 :Text;
      workers @125 :List(UInt32);
      # Of a job that goes on without lost workers: the ranks for which it waits before it trains.
    }
    joined :group {
      address @12 :Text;
      pid @13 :UInt32;
    }
    begun :group {
      # A worker has the initial values and takes its first step.
      batchesPerEpoch @54 :UInt32 $Json.name("batches_per_epoch");
      devices @77 :UInt32;
      # How many devices this worker has.
      deviceNames @87 :List(Text) $Json.name("device_names");
      # As in cluster.devices.
      updates @86 :Text;
      # Where parameters are updated, in a sentence.
      bits @88 :Text;
      # Why the devices may give other bits in another run, in a sentence. Empty if they give the
      # same. Does not say whether the mode does.
    }
    speed :group {
      # Every log.every steps of each worker, and at the end of an epoch that ends in between.
      epoch @14 :UInt32;
      batch @15 :UInt32;
      imagesPerS @16 :Float64 $Json.name("images_per_s");
      # Since the last such event.
      loss @17 :Float64;
      accuracy @18 :Float64;
      # Of the epoch so far.
      batchLoss @55 :Float64 $Json.name("batch_loss");
      batchAccuracy @56 :Float64 $Json.name("batch_accuracy");
      # Of the last batch.
      batches @57 :UInt32;
      # Since the last such event.
      intervalS @58 :Float64 $Json.name("interval_s");
      trainingS @59 :Float64 $Json.name("training_s");
      # Since `begun`, validation included.
      step @60 :UInt32;
      # Steps of this worker since `begun`.
      globalStep @61 :UInt32 $Json.name("global_step");
      # Updates of the parameters. If every worker takes part in each round, this is `step`.
      # Otherwise it is the number of updates in the newest values that have arrived.
      learningRate @62 :Float64 $Json.name("learning_rate");
      # Of the latest update.
      partial @75 :Bool;
      # The epoch ended after fewer than log.every steps.
      epochBatches @76 :UInt32 $Json.name("epoch_batches");
      # How many steps this epoch has for each worker.
    }
    trained :group {
      # A worker has trained an epoch: its own sums, and where the time of its compute thread went.
      epoch @19 :UInt32;
      steps @20 :UInt32;
      images @21 :UInt32;
      loss @22 :Float64;
      accuracy @23 :Float64;
      timeS @24 :Float64 $Json.name("epoch_s");
      readS @25 :Float64 $Json.name("read_s");
      forwardS @26 :Float64 $Json.name("forward_s");
      backwardS @27 :Float64 $Json.name("backward_s");
      pushS @28 :Float64 $Json.name("push_s");
      pullS @29 :Float64 $Json.name("pull_s");
      readerThreads @129 :UInt32 $Json.name("reader_threads");
      # How many threads read this worker's records at the end of the epoch.
      badRecords @30 :UInt32 $Json.name("bad_records");
      # In this epoch.
      pushedBytes @31 :Float64 $Json.name("pushed_bytes");
      pulledBytes @32 :Float64 $Json.name("pulled_bytes");
      step @63 :UInt32;
      globalStep @64 :UInt32 $Json.name("global_step");
      learningRate @65 :Float64 $Json.name("learning_rate");
      # Of the latest update.
      servers @80 :List(Traffic);
      # The traffic between this worker and each server.
    }
    ended :group {
      # A worker's last step is done. The last validation follows if the run has one.
      step @66 :UInt32;
      globalStep @67 :UInt32 $Json.name("global_step");
      trainingS @68 :Float64 $Json.name("training_s");
      batchLoss @69 :Float64 $Json.name("batch_loss");
      validates @92 :Bool;
      # There are records to validate on.
    }
    validated :group {
      # The common result of all workers.
      epoch @33 :UInt32;
      images @34 :UInt32;
      loss @35 :Float64;
      accuracy @36 :Float64;
      step @70 :UInt32;
      globalStep @71 :UInt32 $Json.name("global_step");
      last @72 :Bool;
      # The last validation of the run.
      views @79 :UInt16;
      # Views per image.
      topK @127 :TopK $Json.flatten() $Json.name("top_k");
      # Null without log.top_k.
      endsEarly @130 :Text $Json.name("ends_early");
      # Why this is the last validation, if train.early_stop ends the run before its last epoch.
    }
    progress :group {
      # About once a second, and when validation begins. To the launcher only.
      epoch @37 :UInt32;
      step @38 :UInt32;
      imagesPerS @39 :Float64 $Json.name("images_per_s");
      loss @40 :Float64;
      accuracy @41 :Float64;
      validating @89 :Bool;
      # All workers have done the epoch's steps, and not all have validated.
      readShare @128 :Float64 $Json.name("read_share");
      # The part of the epoch's steps, from 0 to 1, in which workers have waited for records.
      stuckWorker @135 :UInt32 $Json.name("stuck_worker");
      stuckS @136 :UInt32 $Json.name("stuck_s");
      # This worker has made no progress for so many seconds, although it waits for no other role.
      # 0: no worker has stood still for long.
    }
    waiting :group {
      # Now and then while roles are missing at the start. To the launcher only.
      roles @83 :Text;
      # The roles that have not joined: `server 0, worker 1`.
      waitedS @84 :Float64 $Json.name("waited_s");
      limitS @85 :Float64 $Json.name("limit_s");
      # cluster.start_timeout_s.
      refused @94 :Text;
      # Who was refused, which may be why roles are missing: `a connection from 10.0.0.3 was
      # refused: …`. Empty if nobody was.
    }
    counted :group {
      # A server has ended an epoch.
      epoch @81 :UInt32;
      pushes @82 :Pushes;
    }
    saved :group {
      # A checkpoint is on disk.
      epoch @95 :UInt32;
      step @96 :UInt32;
      bytes @97 :Float64;
      savedS @98 :Float64 $Json.name("save_s");
      # From the moment at which the workers stood still until it was on disk.
      stoodS @99 :Float64 $Json.name("stood_s");
      # For how long they stood still.
    }
    continued :group {
      # The run goes on from a checkpoint, after a break.
      epoch @100 :UInt32;
      step @101 :UInt32;
    }
    unsaved :group {
      # A checkpoint could not be written. The run goes on, and the older checkpoints stay valid.
      epoch @103 :UInt32;
      step @104 :UInt32;
      reason @105 :Text;
    }
    best :group {
      # An epoch is better than all before it. With checkpoint.keep_best, its weights are kept.
      epoch @106 :UInt32;
      accuracy @107 :Float64;
      # Of its validation.
    }
    averaged :group {
      # The validation of the moving average of the weights, after the last epoch. With train.ema.
      epoch @131 :UInt32;
      images @132 :UInt32;
      loss @133 :Float64;
      accuracy @134 :Float64;
    }
    membership :group {
      # A worker was lost or has left, and the others go on, or one has joined. Its index is that of
      # the event.
      epoch @108 :UInt32;
      step @109 :UInt32;
      # Of a worker that has joined: its first step. Of one that was lost: the first step that it
      # has not pushed completely.
      joined @110 :Bool;
      held @111 :Text;
      # The slices that have its push of that step: `0-3,7`. Empty: none have, so its records of
      # that step are read again.
      workers @112 :UInt32;
      # How many workers the job has from now on.
      left @113 :Bool;
      # The worker was not lost: it has left on purpose before that step.
      from @114 :UInt32;
      # Of a worker for whose pushes nobody waits: the first step after the epoch in which it was
      # lost. There the others take over its records. Otherwise 0.
    }
    resized :group {
      # The run goes on with other numbers of workers or servers, in a folder of its own. The events
      # before are those of the run from which it goes on.
      epoch @115 :UInt32;
      step @116 :UInt32;
      # How many epochs are over, and how many steps each worker has made.
      workers @117 :UInt32;
      servers @118 :UInt32;
      # From now on.
      epochs @119 :UInt32;
      steps @120 :UInt32;
      globalBatchSize @121 :UInt32 $Json.name("global_batch_size");
      digest @122 :Text;
      # As in `started`.
      goesOnFrom @123 :Text $Json.name("goes_on_from");
      # The name of the folder of that run, beside this one.
      facts @124 :List(Text);
      # What was added up, copied and lost, one sentence each.
    }
    notSaved @102 :Void $Json.name("not_saved");
    # There was nothing to save when the launcher asked for it. To the launcher only.
    lostNewcomer @126 :Void $Json.name("lost_newcomer");
    # A worker was lost before it had become a member. To the launcher only, which starts another
    # one.
    agreed :group {
      # The hosts of all workers are known. Not in the log if `started` has the instruction set.
      instructionSet @93 :Text $Json.name("instruction_set");
    }
    badRecord :group $Json.name("bad_record") {
      # A record could not be read. The events contain it once, whichever workers and epochs it
      # occurs in.
      reason @42 :Text;
    }
    finished :group {
      # Last line of a run that went well.
      weightsSha256 @43 :Text $Json.name("weights_sha256");
      seconds @44 :Float64 $Json.name("run_s");
    }
    failed :group {
      # Last line of a run that failed. The launcher writes it when the roles are gone. A
      # coordinator that was started by hand writes it itself.
      reason @45 :Text;
    }
    interrupted :group {
      # Last line of a run that Ctrl-C, or another signal to its launcher, ended.
      reason @90 :Text;
    }
    stopped :group {
      # Last line of a run that its sweep stopped by the rule of sweep.stop.
      epoch @73 :UInt32;
      reason @74 :Text;
      rule @78 :Text;
      # `{ kind = "asha", first_epoch = 1, keep_one_in = 3 }`
    }
  }
}

struct TopK {
  # How many images of a validation have their label among the k largest logits.
  k @0 :UInt32 $Json.name("top_k");
  accuracy @1 :Float64 $Json.name("top_k_accuracy");
}

struct Traffic {
  # Between a worker and a server, since the beginning of the run.
  calls @0 :Float64;
  # Calls with pushes that were answered. Through shared memory, each slice's push is one call.
  pushedBytes @1 :Float64 $Json.name("pushed_bytes");
  pulledBytes @2 :Float64 $Json.name("pulled_bytes");
  # Payload of all calls.
  roundTripsS @3 :Float64 $Json.name("round_trips_s");
  roundTripMaxS @4 :Float64 $Json.name("round_trip_max_s");
  # From handing such a call to the connection until its answer, including the wait for other
  # workers: the sum, and the longest. Through shared memory, it ends when the compute thread comes
  # to wait for the answer.
  waitingMaxBytes @5 :Float64 $Json.name("waiting_max_bytes");
  # The largest payload that was ordered and not yet handed to the connection.
  reconnects @6 :UInt32;
  # Connections that broke and were made again.
  transport @7 :Text;
  # How they reach each other: tcp, unix or shared_memory.
}

struct Pushes {
  # Of a server, since the beginning of the run. Each slice of each key counts separately.
  pushed @0 :Float64;
  # Without repeats.
  dropped @1 :Float64;
  # Pushes that came for a round that was over. They were not applied.
  staleness @2 :List(Float64);
  # Histogram of the applied pushes. The index of an entry is the number of updates between the
  # values that a push was computed on and those that it changed. The last possible entry, 63, also
  # counts all beyond.
}
