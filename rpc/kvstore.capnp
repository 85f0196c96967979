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
#     rank 0: initialize, each slice            ->   version 0 of the slice
#     others: pull, each slice                  ->   answered as soon as the slice has values
#     start                                     ->   answered when every worker has called it
#     each step, each slice: pushPull           ->   answered when its round is applied
#     end of an epoch: pull, each slice         ->   answered at once
#
# Values and gradients travel as Data: float32, little-endian, exactly four bytes a value. A message
# carries one slice. A slice's version is the number of rounds that were applied to it: where every
# worker's gradient makes a round (dist_sync), version v is what step v computes on. Calls on
# different slices are independent, and all are in flight together; a worker has at most one call in
# flight on a slice. By asking for a slice again, a worker says that it has received the former
# answer: until then the server keeps that answer's values as they are.
#
# What is wrong (an unknown slice, a wrong size, a step that is not this worker's next) is answered
# by an exception and changes nothing. Calls are not cancellable: a gradient that was received
# counts, even if its worker is gone.

interface ShardService {
  hello @0 (rank :UInt32, workers :UInt32, mode :Text, placement :UInt64, shard :UInt32)
      -> (session :ShardSession);
  # Opens the session of worker `rank` (from 0) of `workers`. `mode` is the word of the experiment
  # file, `placement` the digest of keys, cut and deal, `shard` the server that the worker means to
  # speak to. Refused if any of them is not what the server was started with. A further hello of the
  # same rank ends its former session: that is how a worker comes back after its connection broke.
}

interface ShardSession {
  # What one worker does. All calls are refused once a further hello of its rank was answered.

  initialize @0 (slice :UInt32, values :Data);
  # The first values of a slice: its version 0. For rank 0, once for each slice.

  start @1 ();
  # "I have all initial values." Answered when all workers have said so: none changes a value before
  # all have read it.

  pull @2 (slice :UInt32, atLeastVersion :UInt64) -> (version :UInt64, values :Data);
  # The newest values, as soon as their version is at least the one asked for.

  pushPull @3 (slice :UInt32, step :UInt64, gradient :Data) -> (version :UInt64, values :Data);
  # This worker's gradient for `step` (from 0), summed over its batch; the values after the round
  # that it counts for. A step that was pushed before is not counted again, but answered as it was:
  # after a broken connection a worker repeats whatever was not answered. dist_sync: one gradient of
  # every worker makes a round; they are added in rank order, whatever the order of arrival.
  # dist_async: every gradient is a round by itself, answered at once.
}
