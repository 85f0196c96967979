@0xd2f4a8b1c07e5937;
# runner/launch/host.capnp: the requests of a launcher to `runner host`, which starts roles on a
# host. The two communicate over the standard streams of an ssh connection.

using Cxx = import "/capnp/c++.capnp";

$Cxx.namespace("runner");

interface HostAgent {
  # The bootstrap capability of `runner host`. When the connection ends, everything that the
  # launcher has started on the host ends too.

  prepare @0 (folder :Text, experiment :Text, secret :Text, silenceS :UInt32)
      -> (caller :Text);
  # Call once, first. `folder` is the launcher's current folder: roles run in the same one if the
  # host has it. `experiment` is the text of the resolved experiment, and `secret` the job's secret
  # in hexadecimal. Without a call for `silenceS` seconds, the host ends all roles and itself.
  # `caller` is the launcher's address as the host sees it. It is empty if ssh does not pass it on.

  start @1 (name :Text, arguments :List(Text), errors :Lines) -> (process :RoleProcess);
  # Starts a role. `arguments` are those of `runner` without the experiment file. `errors` receives
  # what the role writes to its standard error. Dropping `process` ends the role.

  beat @2 ();
  # Tells the host that the launcher is alive.

  data @3 (recordsSha256 :Text, name :Text, files :List(DataFile))
      -> (folder :Text, copy :DataCopy, presentBytes :UInt64);
  # Asks for packed records in the host's cache: see io/datasets/data_copy.h. If the cache has them,
  # they are in `folder`, and `copy` is null. Otherwise the cache has the first `presentBytes` bytes
  # of a copy, and nobody else writes this copy until `copy` is dropped. Waits while another process
  # writes it.
}

struct DataFile {
  name @0 :Text;
  bytes @1 :UInt64;
}

interface DataCopy {
  write @0 (offset :UInt64, bytes :Data);
  # Appends bytes to the copy.

  finish @1 (sha256 :Text) -> (folder :Text);
  # Call it when all bytes are written. `sha256` is their checksum. If it matches, `folder` has the
  # complete copy. Otherwise `folder` is empty, the copy was removed, and must be sent again.
}

interface Lines {
  take @0 (line :Text);
  # A long line comes in pieces, one per call. The role waits while lines are not answered.
}

interface RoleProcess {
  ended @0 () -> (status :Int32);
  # Waits until the role has ended and all its lines were delivered. Answers the status of wait().
  # Call once.
}
