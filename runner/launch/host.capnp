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
}

interface Lines {
  take @0 (line :Text);
}

interface RoleProcess {
  ended @0 () -> (status :Int32);
  # Waits until the role has ended, and its lines have been taken. Answers the status of wait().
  # Call once.
}
