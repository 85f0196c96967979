@0xd2f4a8b1c07e5937;
# runner/launch/host.capnp: what a launcher asks of `runner host`, which starts roles on a host. The
# two talk over the standard streams of an ssh connection.

using Cxx = import "/capnp/c++.capnp";

$Cxx.namespace("runner");

interface HostAgent {
  # The bootstrap capability of `runner host`. All that runs on the host for the launcher ends when
  # the connection ends.

  prepare @0 (folder :Text, experiment :Text, secret :Text, silenceS :UInt32)
      -> (caller :Text);
  # Call once, first. `folder` is the launcher's current folder: roles run in the same one if the
  # host has it. `experiment` is the text of the resolved experiment, and `secret` the job's secret
  # in hexadecimal. Without a call for `silenceS` seconds, the host ends all roles and itself.
  # `caller` is the launcher's address as the host sees it, and empty if ssh does not tell it.

  start @1 (name :Text, arguments :List(Text), errors :Lines) -> (process :RoleProcess);
  # Starts a role. `arguments` are those of `runner` without the experiment file. `errors` receives
  # what the role writes to its standard error. Dropping `process` ends the role.

  beat @2 ();
  # Says that the launcher is there.

  data @3 (recordsSha256 :Text, name :Text, files :List(DataFile))
      -> (folder :Text, copy :DataCopy, presentBytes :UInt64);
  # Asks for packed records in the host's cache: see io/datasets/data_copy.h. If they are there,
  # `folder` has them, and `copy` is null. Otherwise the first `presentBytes` bytes of a copy are
  # there, and nobody else writes it until `copy` is dropped. Waits while another process writes it.
}

struct DataFile {
  name @0 :Text;
  bytes @1 :UInt64;
}

interface DataCopy {
  write @0 (offset :UInt64, bytes :Data);
  # Adds bytes behind those that are there.

  finish @1 (sha256 :Text) -> (folder :Text);
  # Call it when all bytes are there. `sha256` is the sum of all of them. If it is right, the copy
  # is complete in `folder`. Otherwise `folder` is empty, nothing is left, and the copy begins anew.
}

interface Lines {
  take @0 (line :Text);
}

interface RoleProcess {
  ended @0 () -> (status :Int32);
  # Waits until the role has ended, and its lines have been taken. Answers the status of wait().
  # Call once.
}
