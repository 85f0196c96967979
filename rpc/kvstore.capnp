# rpc/kvstore.capnp: what a worker and a server of the parameter store say to each other.
@0xb6d1f0a3c59e7d42;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("rpc");

# The parameters of a model are one flat array of float32. Both sides cut it into the same slices
# and deal these to the servers by the same rule (rpc/placement.h); a slice is named by its number
# in the whole cut. The server of a slice keeps its values, the optimizer's state and the round, and
# is the only one who changes them.
#
#     worker                                         server
#     hello                                     ->   compares mode, workers, placement; a session
#     rank 0: initialize, all slices            ->   version 0 of each slice
#     others: pull, all slices                  ->   answered as soon as the slices have values
#     start                                     ->   answered when every worker has called it
#     each step, each range: pushPull           ->   answered when the slices' rounds are applied
#     end of an epoch: pull, all slices         ->   answered at once
#
# Where both are on one machine they may share memory (share): then pushes and answers go through
# rings in it, as pushPull of one slice each, and calls do the rest: the beginning and the end,
# refusals, and to notice that the other has gone.
#
# A call carries several slices of its server, in ascending order, and its answer has them in the
# same order. It waits for the slowest of them: so a worker groups what it pushes, up to some 256
# KiB a call, does not wait for answers before it sends the next, and sends first what its next step
# needs first (rpc/store/outbox.h).
# How slices are grouped is the worker's affair: rounds, versions and repeats are counted for each
# slice, and workers need not group alike.
#
# Slices that follow one another can share an entry, as float32: their values one after the other.
# So many small slices cost little more than a large one. Both sides do it where values lie so in
# memory, and need not do it alike.
#
# Values travel as Data: float32, little-endian, exactly four bytes a value; gradients, and what
# answers them, as rpc/codec/encoding.h writes them down, which is the same by default. A slice's
# version is the number of rounds that were applied to it: where every worker's gradient makes a
# round (dist_sync), version v is what step v computes on. A worker has at most one call in flight
# on a slice. By asking for a slice again, it says that it has received the former answer: until
# then the server keeps that answer's values as they are.
#
# What is wrong (an unknown slice, a wrong size, a step that is not this worker's next, slices that
# do not ascend) is answered by an exception, and the call changes nothing, not even the slices for
# which it was right. Calls are not cancellable: a gradient that was received counts, even if its
# worker is gone.

interface ShardService {
  hello @0 (rank :UInt32, workers :UInt32, mode :Text, placement :UInt64, shard :UInt32)
      -> (session :ShardSession);
  # Opens the session of worker `rank` (from 0) of `workers`. `mode` tells how pushes are counted
  # and what travels, `placement` is the digest of keys, cut and deal, `shard` the server that the
  # worker means to speak to. Refused if any of them is not what the server was started with. A
  # further hello of the same rank ends its former session: that is how a worker comes back after
  # its connection broke.

  counts @1 () -> (pushed :UInt64, dropped :UInt64, staleness :List(UInt64));
  # Pushes of all slices since the beginning, without repeats; those of them that came after their
  # round; and of the applied ones, how many had so many updates (the entry's index) between the
  # values that they were computed on and those that they changed. The list ends with the last entry
  # that is not 0; its 64th has all that are older.
}

interface ShardSession {
  # What one worker does. All calls are refused once a further hello of its rank was answered.

  initialize @0 (values :List(SliceFloats));
  # The first values of slices: their version 0. For rank 0, once for each slice; again only with
  # the same values and before the first round, by a worker whose connection broke.

  start @1 ();
  # "I have all initial values." Answered when all workers have said so: none changes a value before
  # all have read it.

  pull @2 (slices :List(UInt32)) -> (values :List(Versioned));
  # The newest values, as soon as each slice has its first.

  pushPull @3 (step :UInt64, gradients :List(SliceFloats)) -> (values :List(Versioned));
  # This worker's gradients for `step` (from 0), summed over its batch; the values after the rounds
  # that they count for. A slice whose step was pushed before is not counted again, but answered as
  # it was: after a broken connection a worker repeats whatever was not answered. dist_sync: one
  # gradient of every worker makes a round; they are added in rank order, whatever the order of
  # arrival. dist_async: every gradient is a round by itself, answered at once. What
  # other modes do is told by rpc/rounds.h.

  share @5 (memory :Descriptor) -> (memory :Descriptor, bell :Descriptor);
  # From here on pushes come through the rings in the worker's `memory`, not by pushPull, and their
  # answers name places in the server's, which the worker maps to read:
  # rpc/shared_memory/shared_layout.h says what lies where. `bell` is an eventfd for the worker to
  # ring when it has written pushes and the server sleeps. Answered without both where the
  # descriptor does not come through, that is, to a worker of another machine: then nothing has
  # changed. Memory of another size than both ends compute, or whose size may still change, is
  # refused.

  watch @6 ();
  # After share(), never answered: refused with what was wrong with a push that came through the
  # ring, which ends the session.

  rest @4 (number :UInt64);
  # "I push nothing more until all workers have said so." At the end of an epoch, in modes where
  # somebody may wait for pushes of a worker that has ended its steps. All its pushes were answered.
  # `number` counts the rests of this worker (from 0): one that was heard before changes nothing.
  # Before it pushes again, it pulls all slices.
}

interface Descriptor {
  # A file descriptor that travels beside a message, on a Unix socket.
}

struct SliceFloats {
  # Values or a gradient of one slice, or of several from that one on.
  slice @0 :UInt32;
  floats @1 :Data;
}

struct Versioned {
  # The values of a slice, or of several of the call's, and the version that all of them are.
  version @0 :UInt64;
  floats @1 :Data;
}
