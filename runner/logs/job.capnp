@0xb5e1c0d2a7f34e61;
# runner/logs/job.capnp: the protocol between the roles of a job and their coordinator, and the
# events of a run.
#
# Life of a job: the coordinator listens. Every server and worker connects, calls join() and gets a
# Session. From then on, the role calls heartbeat() at least every silence_timeout_s / 5. If the run
# continues from a checkpoint, the role fetches its part of the checkpoint by savedPart(). start()
# answers when all roles have joined. Workers call meet() at the ends of epochs and when the job is
# saved, and finish() last. When all workers have finished, the coordinator calls end() on every
# Member, and each role leaves. A role is lost if its session is dropped before end(), or is silent
# for too long.

using Cxx = import "/capnp/c++.capnp";
using Json = import "/capnp/compat/json.capnp";

$Cxx.namespace("runner");

enum Role {
  coordinator @0;
  server @1;
  worker @2;
}

struct Address {
  # The address at which a role with a shard listens.
  tcp @0 :Text;    # "127.0.0.1:4711"
  local @1 :Text;  # "unix-abstract:…", a Unix socket of its machine; may be empty
}

interface Coordinator {
  # The bootstrap capability of the coordinator's address.

  join @0 (role :Role, index :UInt32, pid :UInt32, address :Address, digest :Text, version :Text,
           member :Member, host :Text, instructionSet :Text, settings :Text)
      -> (session :Session, boot :Text, job :Text, continues :Bool, enters :Bool);
  # Takes a place in the job. The coordinator refuses another version of the program, a role that
  # read another file, and a place that is taken. The parameters:
  #
  # - `index` is the rank, which the launcher gives. It never depends on the order in which roles
  #   join. A role whose launcher gives no index calls takeIndex() first.
  # - `address` is where a role that holds a shard listens.
  # - `digest` is the sha256 of the resolved experiment. `settings` is the text of which `digest` is
  #   the hash, without the records. It is empty if the text is very long. If the digests differ,
  #   the coordinator uses `settings` to name the keys that differ.
  # - `version` is the version of the role's program.
  # - `host` is the name of the role's machine, for messages.
  # - `instructionSet` is for workers only: the highest level of instructions that the role's host
  #   has. See nn/cpu/instruction_set.h. The coordinator refuses a worker whose host cannot compute
  #   with the level that the experiment names.
  #
  # The results:
  #
  # - `boot` identifies the boot of the machine that the coordinator runs on. A role on the same
  #   boot shares the coordinator's monotonic clock.
  # - `job` is drawn at random for each job. From it and the job's secret follows the secret by
  #   which workers and servers prove who they are to each other.
  # - `continues`: the run continues from a checkpoint.
  # - `enters`: the job runs without this worker until it calls enter().

  takeIndex @1 (role :Role, digest :Text, version :Text, settings :Text) -> (index :UInt32);
  # For a role whose launcher gave it no index. Returns the lowest index with which no other role of
  # its kind has joined, and which nobody has taken in the last 10 s. If servers share a process,
  # returns the index of the first one. The role then joins with this index, over another
  # connection. For this call, the role's name in the proof is `worker` or `server`, without an
  # index. Refuses a role that join() would refuse, and a role if all indices are taken.
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
  # step, to be saved. Otherwise the worker continues.

  saveShard @4 (step :UInt64);
  # For roles that hold a shard. Called while all workers meet to be saved. The role copies its
  # shard before it answers, and sends the copy by savePart() later.

  fenceWorker @5 (rank :UInt32) -> (pushed :List(SliceRun));
  # For servers only. The worker was lost. The server refuses any further calls from it, and answers
  # how many steps the worker has pushed of each slice of this server. Rounds that lack the worker's
  # push still wait.

  leaveWorker @6 (rank :UInt32);
  # For servers only. From now on, no round waits for this worker.

  admitWorker @7 (rank :UInt32, step :UInt64);
  # For servers only. All workers have stopped at `step`. From there on, rounds wait for this
  # worker.

  setMembers @8 (changes :List(MemberChange));
  # For workers only. `changes` are all changes of the members since the beginning of the run. By
  # its answer, the worker promises to apply each of them before it reads for the first step that
  # the change affects.
}

struct SliceRun {
  # Consecutive slices of one server, by their indices on that server.
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
  # Waits until every role has joined, and every role with a shard has called this. Such a role
  # calls it once it serves its shard. Answers the addresses of the roles with shards (the servers,
  # or all workers), by index, and how the members of the job have changed so far. `names` are the
  # names of these roles in messages: "server 1 on node2".

  heartbeat @1 (progress :RoleProgress) -> (clockNs :Int64, missing :Text);
  # Says that the role's io thread is alive. `progress` is how far its compute thread has come;
  # servers leave it empty. Answers the coordinator's monotonic clock: see ClockOffset. `missing`
  # names the roles that have not joined: `server 0, worker 1`. It is empty when all have.

  report @2 (event :Event, lostPeer :Bool);
  # Appends to the run's events and log. The coordinator fills in time, role and index. `failed`
  # ends the job with its reason. It comes from a worker that cannot reach a server, and from every
  # failing role that was started by hand. `lostPeer`: the cause is another role, or the connection
  # to it.

  meet @3 (epoch :UInt32, point :MeetingPoint, result :Result, statistics :Data, step :UInt64,
           confusion :List(ConfusionCell))
      -> (result :Result, statistics :Data, stopNext :Bool, part :UInt32, parts :UInt32,
          again :Bool);
  # For workers only. Waits for all workers at the same place of the run. Answers the sum of all
  # results, and the mean of all statistics (float32), weighted by result.images. Both are added in
  # rank order. `step` is how many steps the worker has made. `stopNext`: the worker is to be saved
  # before its next step. The validation that follows has `parts` parts, and number `part` of them
  # is this worker's. `again`: a worker was lost before it had validated its part or made its steps.
  # The other workers then validate again, or make these steps, and meet again. `confusion` comes
  # with the last validation of a run: the cells of this worker's part that have images, ordered by
  # label, then by prediction. If every worker validates on all records, only the one with part 0
  # sends them.

  finish @4 (parameters :List(Data), statistics :Data);
  # For workers only. A worker calls it once, as its last call. Rank 0 sends the final weights
  # (float32), and the other workers send nothing. With cluster.on_loss = "continue", every worker
  # sends them. The parameters come in pieces, because a Data holds less than 512 MiB.

  instructionSet @5 () -> (level :Text);
  # For workers only. Waits until it is known which level of instructions all workers have.

  savePart @6 (step :UInt64, part :Part, index :UInt32, total :UInt64, offset :UInt64, bytes :Data);
  # Sends a piece of the state that this role, or its shard, had at `step`. `total` is the size of
  # the whole state in bytes. The pieces come in order.

  savedPart @7 (part :Part, index :UInt32, offset :UInt64) -> (total :UInt64, bytes :Data);
  # Returns the piece at `offset` of a part of the checkpoint from which this run continues. After
  # enter(), returns a piece of the state that the first member had at that step. `total` is the
  # size of the part in bytes.

  enter @8 ();
  # For workers that join a running job. Called when the worker is ready to train. Answers once the
  # worker is a member and can fetch its initial state by savedPart().

  leave @9 ();
  # For workers that leave the job on purpose, between two steps, after all their pushes were
  # answered. Answers once the job continues without the worker. If the job cannot continue, it
  # ends.
}

enum Part {
  worker @0;  # the state of a worker, by rank
  shard @1;   # the state of a shard
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
  # How many images of one class were predicted as another, or the same, class.
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
      # How many steps each worker makes in the whole run.
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
      # Which values of a key are on one server. Reported before training starts.
      key @51 :Text;
      server @52 :UInt32;
      bytes @53 :Float64;
    }
    listening :group {
      # The address at which roles can join the coordinator.
      address @11 :Text;
      workers @125 :List(UInt32);
      # In a job that continues without lost workers: the ranks for which it waits before it trains.
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
      # Why the devices may give different bits in another run, as a sentence. Empty if they always
      # give the same bits. Does not consider the mode.
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
      # Whether the epoch ended after fewer than log.every steps.
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
      # Whether there are records for validation.
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
      # Whether this is the last validation of the run.
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
      # Whether all workers have done the epoch's steps, and some have not validated yet.
      readShare @128 :Float64 $Json.name("read_share");
      # The part of the epoch's steps, from 0 to 1, in which workers have waited for records.
      stuckWorker @135 :UInt32 $Json.name("stuck_worker");
      stuckS @136 :UInt32 $Json.name("stuck_s");
      # Worker `stuckWorker` has made no progress for this many seconds, although it waits for no
      # other role. 0: no worker is stuck.
    }
    waiting :group {
      # Sent from time to time while roles are missing at the start. To the launcher only.
      roles @83 :Text;
      # The roles that have not joined: `server 0, worker 1`.
      waitedS @84 :Float64 $Json.name("waited_s");
      limitS @85 :Float64 $Json.name("limit_s");
      # cluster.start_timeout_s.
      refused @94 :Text;
      # A refused connection, which may explain why roles are missing: `a connection from 10.0.0.3
      # was refused: …`. Empty if no connection was refused.
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
      # Seconds from the moment at which the workers stopped until the checkpoint was on disk.
      stoodS @99 :Float64 $Json.name("stood_s");
      # How many seconds the workers were stopped.
    }
    continued :group {
      # The run continues from a checkpoint, after a break.
      epoch @100 :UInt32;
      step @101 :UInt32;
    }
    unsaved :group {
      # A checkpoint could not be written. The run continues, and older checkpoints stay valid.
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
      # A worker was lost or has left, and the others continue, or a worker has joined. The event's
      # index is that of the worker.
      epoch @108 :UInt32;
      step @109 :UInt32;
      # For a worker that has joined: its first step. For a lost worker: the first step that it has
      # not pushed completely.
      joined @110 :Bool;
      held @111 :Text;
      # The slices that have its push of that step: `0-3,7`. Empty: no slice has, so the worker's
      # records of that step are read again.
      workers @112 :UInt32;
      # How many workers the job has from that step on.
      left @113 :Bool;
      # Whether the worker was not lost, but has left on purpose before that step.
      from @114 :UInt32;
      # For a worker for whose pushes nobody waits: the first step after the epoch in which it was
      # lost. From there on, the others take over its records. Otherwise 0.
    }
    resized :group {
      # The run continues another run, with other numbers of workers or servers, in a new folder.
      # Earlier events are those of the other run.
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
      # The name of the other run's folder, which is beside this one.
      facts @124 :List(Text);
      # Which state was added up, copied or lost, in one sentence each.
    }
    notSaved @102 :Void $Json.name("not_saved");
    # There was nothing to save when the launcher asked for it. To the launcher only.
    lostNewcomer @126 :Void $Json.name("lost_newcomer");
    # A worker was lost before it became a member. To the launcher only, which starts another one.
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
      # Last line of a run that failed. The launcher writes it after all roles have ended. A
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
  # The time from handing such a call to the connection until its answer, including the wait for
  # other workers: the sum, and the longest. Through shared memory, the time ends when the compute
  # thread begins to wait for the answer.
  waitingMaxBytes @5 :Float64 $Json.name("waiting_max_bytes");
  # The largest payload in bytes that waited to be handed to the connection.
  reconnects @6 :UInt32;
  # How often a broken connection was made again.
  transport @7 :Text;
  # How they reach each other: tcp, unix or shared_memory.
}

struct Pushes {
  # Of a server, since the beginning of the run. Each slice of each key counts separately.
  pushed @0 :Float64;
  # Repeated pushes are not counted.
  dropped @1 :Float64;
  # Pushes that arrived for a round that was over. They were not applied.
  staleness @2 :List(Float64);
  # Histogram of the applied pushes. The index of an entry is the number of updates between the
  # values that a push was computed on and those that it changed. The last possible entry, 63, also
  # counts all larger numbers.
}
