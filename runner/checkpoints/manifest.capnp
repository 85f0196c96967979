@0xd0c8f5f3a1b2974e;
# runner/checkpoints/manifest.capnp: manifest.json, which lists the files of a checkpoint with their
# checksums.

using Cxx = import "/capnp/c++.capnp";
using Json = import "/capnp/compat/json.capnp";

$Cxx.namespace("runner");

struct Manifest {
  format @0 :UInt32;
  # The number of the checkpoint's format. A program refuses numbers that it does not know.
  version @1 :Text;
  # The version of the program that wrote the checkpoint.
  digest @2 :Text;
  # The sha256 of the experiment's settings.
  instructionSet @3 :Text $Json.name("instruction_set");
  # The level of instructions that all workers compute with.
  epoch @4 :UInt32;
  step @5 :UInt32;
  # How many steps each worker has made.
  timeS @6 :Float64 $Json.name("time_s");
  # When it was made, in seconds since 1970.
  runS @7 :Float64 $Json.name("run_s");
  # How long the run had lasted, in seconds, without the time between a break and the return to
  # training.
  eventsBytes @8 :Float64 $Json.name("events_bytes");
  # How much of events.jsonl belongs to the run so far.
  files @9 :List(File);
  eventsCrc32 @10 :UInt32 $Json.name("events_crc32");
  # The checksum of that part of events.jsonl.
  sha256 @11 :Text;
  # The sha256 of this file, computed as if these 64 digits were not in it.
  logStyle @12 :Text $Json.name("log_style");
  # The name of the style of the lines in the logs (log.style).
  logs @13 :List(File);
  # The sizes and checksums of the run's logs. The logs can be made again from the events, but that
  # takes long. Empty if a log could not be read.
  endsEpoch @14 :Bool $Json.name("ends_epoch");
  # The epoch before `epoch` is over, and `epoch` has no step yet.

  struct File {
    name @0 :Text;
    bytes @1 :Float64;
    crc32 @2 :UInt32;
  }
}
