#include "runner/commands/role_command.h"

#include <errno.h>
#include <kj/thread.h>
#include <stdlib.h>
#include <unistd.h>

#include "runner/commands/role_process.h"
#include "runner/logs/role_names.h"
#include "runner/roles/job_secret.h"
#include "runner/system/addresses.h"
#include "runner/system/files.h"
#include "runner/system/interrupts.h"
#include "runner/system/reason.h"
#include "runner/system/version.h"

namespace runner {

namespace {

// Whether `word` may be the address of a coordinator, such as 127.0.0.1:41234: a host, and a port
// from 1 to 65535. Does not look up the host.
bool isHostAndPort(kj::StringPtr word) {
  KJ_IF_MAYBE(colon, word.findLast(':')) {
    auto port = word.slice(*colon + 1);
    // An IPv6 address has colons of its own, so it stands in brackets.
    bool hasHost = word.findFirst(':') == word.findLast(':')
                       ? *colon > 0
                       : word[0] == '[' && word[*colon - 1] == ']';
    return hasHost && port.findFirst('-') == nullptr && rpc::parsePorts(port) != nullptr;
  }
  return false;
}

// A launcher that dies closes our standard input. A separate thread notices this whatever the
// others do.
void endWithStdin() {
  kj::Thread([]() {
    char byte;
    ssize_t n;
    do {
      n = ::read(STDIN_FILENO, &byte, 1);
    } while (n > 0 || (n < 0 && errno == EINTR));
    ::_exit(RUN_FAILED);
  }).detach();
}

}  // namespace

kj::MainFunc RoleCommand::getMain() {
  kj::MainBuilder builder(commandLine, VERSION,
      "Runs one role of the job described by FILE. Start all roles with the same file and the "
      "same --set. The coordinator makes its folder, says where it listens, shows the log of the "
      "run, prints its table and leaves its report, as `runner run` does, and ends with the same "
      "exit codes. A server or worker that ends because another role was lost has exit code 75.\n"
      "\n"
      "With the environment variable RUNNER_SECRET_FILE, only roles can join that know the secret "
      "in that file: `(umask 077; openssl rand -hex 32 > FILE)` makes one.\n"
      "\n"
      "  runner role x.toml --role coordinator --folder /tmp/run\n"
      "  runner role x.toml --role server --index 0 --coordinator 127.0.0.1:41234\n"
      "  runner role x.toml --role worker --index 0 --coordinator 127.0.0.1:41234\n"
      "\n"
      "On several hosts, with a secret:\n"
      "\n"
      "  runner role x.toml --role coordinator --folder /tmp/run --listen 10.0.0.4:7000\n"
      "  runner role x.toml --role worker --index 0 --coordinator 10.0.0.4:7000");
  builder
      .addOptionWithArg(
          {"role"}, KJ_BIND_METHOD(*this, setRole), "ROLE", "coordinator, server or worker")
      .addOptionWithArg({"index"}, KJ_BIND_METHOD(*this, setIndex), "N",
          "which server or worker, from 0: its rank (default: 0); of several servers in a "
          "process the first")
      .addOptionWithArg({"coordinator"}, KJ_BIND_METHOD(*this, setCoordinator), "ADDRESS",
          "where the coordinator listens")
      .addOptionWithArg({"listen"}, KJ_BIND_METHOD(*this, setListen), "ADDRESS",
          "where a coordinator listens: an address of this machine such as 10.0.0.4, with or "
          "without "
          "a port (default: the loopback, and cluster.port). The other roles listen where they "
          "reach "
          "the coordinator")
      .addOptionWithArg({"folder"}, folderSetter(folder, "name a folder, e.g. /tmp/runs"), "DIR",
          "the coordinator's run folder: made if it is not there, and it may hold no run; where "
          "a role leaves its trace")
      .addOptionWithArg({"trace-steps"}, traceStepsSetter(traceSteps), "A-B",
          "record what it does in these steps, from 0, and leave it in DIR")
      .addOption(
          {"until-stdin-closes"},
          [this]() {
            untilStdinCloses = true;
            return true;
          },
          "end at once when standard input closes")
      .addOption(
          {"launched"},
          [this]() {
            launched = true;
            return true;
          },
          "a launcher started this role, writes the job's secret to its standard input, and "
          "records "
          "how the run ends: the coordinator prints its events as lines of JSON, and the others "
          "only "
          "what goes wrong")
      .callAfterParsing(KJ_BIND_METHOD(*this, runOneRole));
  addFileAndOverrides(builder);
  return builder.build();
}

Validity RoleCommand::runOneRole() {
  KJ_IF_MAYBE(r, role) {
    if (*r != Role::COORDINATOR && coordinator.size() == 0) {
      return kj::str("a ", roleWord(*r), " needs --coordinator ADDRESS");
    }
    if (*r == Role::COORDINATOR && index > 0) {
      return kj::str("a coordinator takes no --index N: a job has one coordinator");
    }
    if (*r == Role::COORDINATOR && folder.size() == 0) {
      return kj::str("a coordinator needs --folder DIR");
    }
    if (*r == Role::COORDINATOR && coordinator.size() > 0) {
      return kj::str(
          "a coordinator takes no --coordinator ADDRESS: it listens on a free port of "
          "127.0.0.1, or where --listen ADDRESS says");
    }
    if (*r != Role::COORDINATOR && isListenGiven) {
      return kj::str("only a coordinator takes --listen ADDRESS: a ", roleWord(*r),
          " listens where it reaches the coordinator");
    }
    if (traceSteps != nullptr && folder.size() == 0) {
      return kj::str("a role leaves its trace in a folder: --folder DIR");
    }
    rpc::Secret secret;
    auto read = [&]() { secret = launched ? secretFromLauncher(STDIN_FILENO) : secretOfUser(); };
    KJ_IF_MAYBE(e, kj::runCatchingExceptions(read)) return reasonOf(*e);
    if (untilStdinCloses) endWithStdin();
    if (!launched) {
      nameFolderOption();
      endAtInterrupt("\ninterrupted\n");
    }
    auto loaded = load();
    RoleOptions options{*r, index, kj::mv(coordinator), {kj::mv(folder)}, traceSteps, launched,
        secret, kj::mv(listen)};
    KJ_IF_MAYBE(why, runRoles(loaded, options, commandLine)) return kj::mv(*why);
    return true;
  }
  return kj::str("--role is missing");
}

Validity RoleCommand::setRole(kj::StringPtr word) {
  for (auto each: {Role::COORDINATOR, Role::SERVER, Role::WORKER}) {
    if (word == roleWord(each)) {
      role = each;
      return true;
    }
  }
  return kj::str("there is no role `", word, "` (coordinator, server, worker)");
}

Validity RoleCommand::setIndex(kj::StringPtr word) {
  constexpr uint INDEX_MAX = 1000000;
  char* end;
  long n = strtol(word.cStr(), &end, 10);
  if (word.size() == 0 || *end != '\0' || n < 0 || n > long(INDEX_MAX)) {
    return kj::str("`", word, "` is not a whole number from 0 to ", INDEX_MAX);
  }
  index = n;
  return true;
}

Validity RoleCommand::setListen(kj::StringPtr word) {
  auto host = kj::str(word);
  if (isHostAndPort(word)) {
    auto colon = KJ_ASSERT_NONNULL(word.findLast(':'));
    host = kj::str(word.slice(0, colon));
    listen.ports = rpc::parsePorts(word.slice(colon + 1));
  }
  bool isBracketed = host.startsWith("[") && host.endsWith("]");
  auto bare = isBracketed ? kj::str(host.slice(1, host.size() - 1)) : kj::str(host);
  KJ_IF_MAYBE(why, whyNotCallable(bare)) {
    return kj::str("cannot listen at `", word, "`: ", *why,
        ". `ip address` shows the addresses of ", "this machine");
  }
  isListenGiven = true;
  listen.host = isIpv6(bare) ? kj::str("[", bare, "]") : kj::mv(bare);
  return true;
}

Validity RoleCommand::setCoordinator(kj::StringPtr word) {
  if (!isHostAndPort(word)) {
    return kj::str("`", word,
        "` is not HOST:PORT, or [IPv6]:PORT, with a port from 1 to 65535; the coordinator "
        "says where it listens, e.g. 127.0.0.1:41234");
  }
  coordinator = kj::str(word);
  return true;
}

}  // namespace runner
