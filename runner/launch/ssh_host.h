// runner/launch/ssh_host.h: a host that is reached by ssh, with this program on it.
#pragma once

#include <kj/async-io.h>
#include <kj/function.h>

#include "rpc/wire/peer.h"
#include "rpc/wire/running_time.h"
#include "runner/experiment/hosts.h"
#include "runner/launch/host.capnp.h"
#include "runner/system/child_process.h"
#include "runner/system/program_package.h"

namespace runner {

// This program's package, for hosts that do not have it. For one event loop.
class SharedPackage {
public:
  kj::StringPtr sha256();
  kj::ArrayPtr<const kj::byte> bytes();

private:
  ProgramPackage package;
  kj::String sum;
  kj::Array<kj::byte> tar;
};

// The standard output of a host before its agent can be called: answers, and any output of its
// login script.
class HostAnswers {
public:
  // `hear` is called with each line that is not an answer. `output` must outlive the object.
  HostAnswers(kj::AsyncInputStream& output, kj::Function<void(kj::StringPtr)> hear)
      : output(output), hear(kj::mv(hear)) {}

  // Resolves to the next answer, and reads no byte beyond it. Never resolves if the output ends,
  // because the end of the process then says more about the cause. Rejects if the host writes too
  // much that is not an answer.
  kj::Promise<kj::String> next();

private:
  kj::AsyncInputStream& output;
  kj::Function<void(kj::StringPtr)> hear;
  kj::Vector<char> line;   // the beginning of the next line
  size_t noise_bytes = 0;  // so far
  char nextByte = 0;
};

// One ssh connection to one host. It copies this program to the host, and runs `runner host` there.
// Dropping it ends everything that was started through it.
class SshHost {
public:
  // `label` names the host in messages: "host node2 (worker 1)". `command` is the ssh command: `ssh
  // -F config`. `say` takes lines for the user. All references must outlive the object.
  SshHost(const Host& host, kj::String label, kj::StringPtr command, SharedPackage& package,
      kj::AsyncIoContext& io, kj::Function<void(kj::StringPtr)> say);

  // Resolves when the host's agent can be called. Rejects with the host, the cause and what to do,
  // also if the host neither reads nor writes anything for `timeout_s` seconds. Call once.
  kj::Promise<void> ready(uint timeout_s);
  // Whether the host was reached: it has written an answer.
  bool hasAnswered() const { return answered; }
  // The agent on the host. Only after ready().
  HostAgent::Client agent();
  // Rejects with the cause when the connection has broken. Never resolves. Call once, when the host
  // is ready.
  kj::Promise<void> broken();

  const Host& host;
  const kj::String label;

private:
  kj::Exception failed(kj::StringPtr why) const;
  kj::Promise<void> greet();
  // Sends the part of the package that the host lacks.
  kj::Promise<void> send(kj::StringPtr offer);
  kj::Promise<void> write(kj::ArrayPtr<const kj::byte> bytes);
  kj::Promise<void> late(uint timeout_s);
  // Takes a line that was written before the host was ready.
  void hear(kj::StringPtr line);

  const kj::String command;
  SharedPackage& package;
  kj::AsyncIoContext& io;
  kj::Function<void(kj::StringPtr)> say;
  rpc::RunningTime running;
  kj::Duration lastHeard = 0 * kj::NANOSECONDS;  // by `running`
  const kj::String script;
  ChildProcess process;
  kj::Vector<kj::String> heard;  // the latest lines, until the host is ready
  bool answered = false;
  bool isReady = false;
  kj::String lastAnswer;
  kj::Promise<void> listening;  // to standard error
  HostAnswers answers;
  kj::ForkedPromise<int> whenEnded;
  kj::Maybe<kj::Own<rpc::Peer>> peer;
};

// Explains a line of ssh, or of the shell on host `host`: the cause, what to do, and the line. Null
// if the meaning of the line is unknown.
kj::Maybe<kj::String> explainSshLine(kj::StringPtr host, kj::StringPtr line);

// Returns a sentence about a connection that failed with these lines of ssh and of the host's
// shell: the cause, and what to do. It does not name the host.
kj::String explainSsh(
    const Host& host, kj::StringPtr command, kj::ArrayPtr<const kj::String> lines);

}  // namespace runner
