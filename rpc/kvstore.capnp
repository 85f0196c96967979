# rpc/kvstore.capnp: the protocol between a worker and a server of the parameter store.
@0xb6d1f0a3c59e7d42;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("rpc");

# The parameters of a model are one flat array of float32. Both sides cut it into the same slices,
# and assign the slices to the servers by the same rule (rpc/placement.h). A slice is identified by
# its number among all slices. Its server keeps its values, the optimizer's state and the round, and
# only the server changes them.
#
#     worker                                         server
#     hello                                     ->   checks mode, workers, placement; opens session
#     rank 0: initialize, all slices            ->   version 0 of each slice
#     others: pull, all slices                  ->   answered as soon as the slices have values
#     start                                     ->   answered when every worker has called it
#     each step, each range: pushPull           ->   answered when the slices' rounds are applied
#     end of an epoch: pull, all slices         ->   answered at once
#
# A worker and a server on one machine may share memory (share). Then pushes and answers go through
# rings in that memory, each like a pushPull of one slice. Everything else uses calls: beginning and
# ending training, refusing wrong pushes, and noticing that the other end was lost.
#
# A call carries several slices of its server in ascending order. Its answer has them in the same
# order, and waits for the slowest of them. Therefore a worker pushes at most about 256 KiB per
# call, sends the next call without waiting for answers, and sends first what its next step needs
# first (rpc/store/outbox.h). Workers may group slices in any way: rounds, versions and repeats are
# counted per slice.
#
# In float32, consecutive slices can share a list entry, which holds their values one after the
# other. Many small slices then cost little more than one large slice. Each side does so where the
# values are consecutive in its memory.
#
# Values travel as Data: little-endian float32, exactly four bytes per value. Gradients and their
# answers are encoded as rpc/codec/encoding.h says, by default also as float32. A slice's version is
# the number of rounds that were applied to it. In dist_sync, where a round takes a gradient from
# every worker, step v computes on version v. A worker has at most one call in flight per slice.
# When it asks for a slice again, it has received the previous answer. Until then the server does
# not change the values of that answer.
#
# A wrong call is answered by an exception and changes nothing, even if only one of its slices is
# wrong. A call is wrong if it names an unknown slice, if a size is wrong, if its step is not the
# worker's next one, or if its slices do not ascend. Calls cannot be cancelled: a gradient that was
# received counts, even if its worker was lost.

interface ShardService {
  hello @0 (rank :UInt32, workers :UInt32, mode :Text, placement :UInt64, shard :UInt32,
      since :UInt64) -> (session :ShardSession);
  # Opens the session of worker `rank` (from 0) of `workers`. `mode` describes how pushes are
  # counted and encoded. `placement` is Placement::digest(). `shard` is the server that the worker
  # wants to reach. Refused if any of them differs from what the server was started with.
  # `since` is the step at which the worker has become a member of the job, 0 at the beginning. With
  # it, the server refuses a lost worker whose place another worker has taken. After its connection
  # broke, a worker calls hello again. The new session ends the former one of the same rank.

  counts @1 () -> (pushed :UInt64, dropped :UInt64, staleness :List(UInt64));
  # Returns three counts over all slices since the beginning:
  # - pushed: pushes without repeats.
  # - dropped: pushes that came after their round.
  # - staleness: entry i counts the applied pushes with i updates between the values that they were
  #   computed on and the values that they changed. The 64th entry counts all older pushes, too. The
  #   list ends with the last entry that is not 0.
}

interface ShardSession {
  # The calls of one worker. All are refused once another hello of its rank was answered.

  initialize @0 (values :List(SliceFloats));
  # Sets the first values of slices, their version 0. Only rank 0 calls it, once per slice. After a
  # broken connection it may repeat the call with the same values before the first round.

  start @1 ();
  # Says "I have all initial values". Answered when all workers have said so. Therefore no value
  # changes before all workers have read it.

  pull @2 (slices :List(UInt32)) -> (values :List(Versioned));
  # Returns the newest values, as soon as each slice has its first ones.

  pushPull @3 (step :UInt64, gradients :List(SliceFloats)) -> (values :List(Versioned));
  # Pushes this worker's gradients for `step` (from 0), summed over its batch. Returns the values
  # after the rounds that these gradients count for. After a broken connection, a worker repeats all
  # calls that were not answered. A slice whose step was pushed before is answered, but not counted
  # again.
  # dist_sync: a round takes one gradient from every worker, and adds them in rank order whatever
  # order they arrive in. dist_async: every gradient is a round by itself, answered at once.
  # rpc/rounds.h describes the other modes.

  share @5 (memory :Descriptor) -> (memory :Descriptor, bell :Descriptor);
  # Shares the worker's `memory` with the server. From here on pushes come through rings in it
  # instead of pushPull. Their answers name places in the server's memory, which the worker maps to
  # read. rpc/shared_memory/shared_layout.h describes the layout. `bell` is an eventfd: the worker
  # rings it when it has written pushes while the server sleeps.
  # The answer has neither `memory` nor `bell` if the descriptor does not arrive, because the worker
  # is on another machine, or if the server does not share memory. Then nothing has changed. The
  # server refuses memory whose size may still change, or differs from what both ends compute.

  watch @6 ();
  # May be called after share(). Never returns. If a push that came through the ring is wrong, the
  # call fails with the reason, and the session ends.

  rest @4 (number :UInt64);
  # Says "I push nothing more until all workers have said so", at the end of an epoch. Called when
  # all pushes of the worker were answered, in modes where another worker could otherwise wait for
  # it. `number` counts the rests of this worker from 0. A repeated call changes nothing. The worker
  # pulls all slices before it pushes again.
}

interface Descriptor {
  # A file descriptor that is passed beside a message, on a Unix socket.
}

struct SliceFloats {
  # Values or a gradient of one slice, or of several slices that begin with this one.
  slice @0 :UInt32;
  floats @1 :Data;
}

struct Versioned {
  # The values of one slice of the call or of several consecutive ones. All have the same version.
  version @0 :UInt64;
  floats @1 :Data;
}
