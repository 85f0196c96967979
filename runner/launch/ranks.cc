#include "runner/launch/ranks.h"

#include <ctype.h>
#include <errno.h>
#include <kj/debug.h>
#include <kj/vector.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "configs/language/failure.h"
#include "runner/launch/ssh_host.h"
#include "runner/logs/role_names.h"
#include "runner/roles/trace_file.h"
#include "runner/system/child_process.h"
#include "runner/system/files.h"
#include "runner/system/line_stream.h"

namespace runner {

namespace {

// How a role begins its last line.
constexpr kj::StringPtr ERROR = "error: "_kj, WRONG_COMMAND = "runner role: "_kj;

// Reads the digits at the beginning of `text`, and removes them from it.
kj::Maybe<uint> takeNumber(kj::StringPtr& text) {
  char* end;
  if (text.size() == 0 || text[0] < '0' || text[0] > '9') return nullptr;
  auto number = ::strtoul(text.cStr(), &end, 10);
  if (number > UINT32_MAX) return nullptr;
  text = text.slice(end - text.begin());
  return uint(number);
}

bool take(kj::StringPtr& text, kj::StringPtr part) {
  if (!text.startsWith(part)) return false;
  text = text.slice(part.size());
  return true;
}

// Whether this is a line of ssh about a host that it cannot reach. Some commands then wait for that
// host forever.
bool isOfSsh(kj::StringPtr line) {
  return line.startsWith("ssh: ") || line.startsWith("Host key verification failed") ||
         strstr(line.cStr(), ": Permission denied (") != nullptr;
}

// Whether a line of ssh names this host.
bool mentions(kj::StringPtr line, kj::StringPtr host) {
  auto isOfName = [](char c) { return ::isalnum(c) || c == '-' || c == '.'; };
  if (host.size() == 0) return false;
  for (auto at = strstr(line.cStr(), host.cStr()); at != nullptr;
       at = strstr(at + 1, host.cStr())) {
    bool begins = at == line.begin() || !isOfName(at[-1]);
    if (begins && !isOfName(at[host.size()])) return true;
  }
  return false;
}

// Whether `env` or the loader says that it cannot start this program.
bool isOfLoader(kj::StringPtr line) {
  return line.startsWith("env: ") ||
         strstr(line.cStr(), ": error while loading shared libraries: ") != nullptr ||
         (strstr(line.cStr(), ": version `") != nullptr && line.endsWith(")"));
}

// The command, and its ranks.
class Ranks final: public StartedGroup {
public:
  Ranks(const LaunchedRun& run, kj::ArrayPtr<const kj::String> words,
      kj::Array<RoleGroup> processes, ReadRankLine read)
      : process(words[0], kj::StringPtr(words[0]), words, nullptr, *run.io.lowLevelProvider,
            run.io.unixEventPort),
        report(words[0], kj::mv(processes), read, run.view) {
    auto paf = kj::newPromiseAndFulfiller<kj::Maybe<Failure>>();
    failed = kj::mv(paf.promise);
    fulfiller = kj::mv(paf.fulfiller);
  }

  ~Ranks() noexcept(false) {
    // The command ends its ranks on other hosts.
    process.terminate(3 * kj::SECONDS);
  }

  kj::Promise<kj::Maybe<Failure>> ended() override {
    auto all = kj::joinPromises(kj::arr(read(*process.output), read(*process.errors)));
    auto whole = process.ended().then([this, all = kj::mv(all)](int status) mutable {
      return all.then([this, status]() { return report.judge(status); });
    });
    return whole.exclusiveJoin(kj::mv(failed));
  }

  bool isStopped() override { return process.isStopped(); }

private:
  kj::Promise<void> read(kj::AsyncInputStream& lines) {
    return readLines(lines, [this](kj::StringPtr line) {
      KJ_IF_MAYBE(failure, report.take(line)) fulfiller->fulfill(kj::mv(*failure));
    });
  }

  ChildProcess process;
  RankReport report;
  kj::Promise<kj::Maybe<Failure>> failed = nullptr;
  kj::Own<kj::PromiseFulfiller<kj::Maybe<Failure>>> fulfiller;
};

}  // namespace

kj::String absolute(const RunFolder& folder) {
  auto path = ::realpath(folder.path.cStr(), nullptr);
  KJ_REQUIRE(path != nullptr, folder.path, strerror(errno));
  KJ_DEFER(::free(path));
  return kj::str(path);
}

kj::Maybe<RankLine> rankLineOfOpenMpi(kj::StringPtr line) {
  if (!line.startsWith("[")) return nullptr;
  for (auto mark: {"]<stderr>:"_kj, "]<stdout>:"_kj}) {
    auto found = strstr(line.cStr(), mark.cStr());
    if (found == nullptr) continue;
    auto before = kj::heapString(line.slice(0, found - line.begin()));
    KJ_IF_MAYBE(comma, before.findLast(',')) {
      kj::StringPtr digits = before.slice(*comma + 1);
      KJ_IF_MAYBE(rank, takeNumber(digits)) {
        auto text = line.slice(found - line.begin() + mark.size());
        take(text, " ");  // from version 5 on
        return RankLine{*rank, text};
      }
    }
  }
  return nullptr;
}

kj::Maybe<RankLine> rankLineOfHydra(kj::StringPtr line) {
  if (!take(line, "[")) return nullptr;
  auto rank = takeNumber(line);
  if (rank == nullptr || !take(line, "] ")) return nullptr;
  return RankLine{KJ_ASSERT_NONNULL(rank), line};
}

kj::Maybe<RankLine> rankLineOfSlurm(kj::StringPtr line) {
  while (take(line, " ")) {
  }
  auto rank = takeNumber(line);
  if (rank == nullptr || !take(line, ": ")) return nullptr;
  return RankLine{KJ_ASSERT_NONNULL(rank), line};
}

kj::Array<RoleGroup> rankedProcesses(const ClusterConfig& cluster, kj::ArrayPtr<const Host> hosts) {
  auto processes = groupsHere(cluster);
  if (hosts.size() == 0) return processes;
  auto placed = KJ_ASSERT_NONNULL(
      placeRoles(hosts, cluster.servers, cluster.serversPerProcess, cluster.workers));
  for (auto& process: processes) {
    for (auto& each: process.roles) {
      auto& indices = each.role == Role::SERVER ? placed.servers : placed.workers;
      each.host = kj::str(hosts[indices[each.index]].name);
    }
    process.name = onHost(process.name, process.roles[0].host);
  }
  return processes;
}

RoleGroup groupOfRanks(kj::StringPtr program, kj::Array<RoleGroup> processes) {
  kj::Vector<PlacedRole> roles;
  for (auto& process: processes) {
    for (auto& role: process.roles) roles.add(kj::mv(role));
  }
  return {kj::str("the ranks of ", program), roles.releaseAsArray()};
}

RankReport::RankReport(
    kj::StringPtr program, kj::Array<RoleGroup> processes, ReadRankLine read, RunView& view)
    : program(kj::str(program)), processes(kj::mv(processes)), read(read), view(view) {}

kj::Maybe<Failure> RankReport::take(kj::StringPtr line) {
  if (hasFailed || line.size() == 0) return nullptr;
  auto fail = [&](kj::String reason, Failure::Rank rank = Failure::FAILED) {
    hasFailed = true;
    return Failure{rank, kj::mv(reason)};
  };
  KJ_IF_MAYBE(of, read(line)) {
    auto name = of->rank < processes.size() ? kj::str(processes[of->rank].name)
                                            : kj::str("rank ", of->rank);
    auto text = of->text;
    if (text.size() == 0) return nullptr;
    if (isOfLoader(text)) {
      return fail(kj::str(name, ": ", text, "; every host needs this program and its libraries at ",
          "the same path, such as on a shared file system"));
    }
    if (text == LOST_A_PEER_LINE) {
      losers.insert(of->rank);
    } else if (text == LOST_DEVICE_LINE) {
      broken.insert(of->rank);
    } else if (!runner::take(text, ERROR) && !runner::take(text, WRONG_COMMAND)) {
      view.say(kj::str(name, ": ", text));
    } else if (!losers.contains(of->rank)) {
      return fail(
          saidBy(name, text), broken.contains(of->rank) ? Failure::KILLED : Failure::FAILED);
    } else if (lost.size() == 0) {
      lost = saidBy(name, text);
    }
    return nullptr;
  }
  if (runner::take(line, ERROR)) return fail(kj::str(line));
  if (isOfSsh(line)) return fail(unreached(line));
  if (lost.size() == 0) view.say(kj::str(program, ": ", line));
  return nullptr;
}

kj::String RankReport::unreached(kj::StringPtr line) const {
  // ssh ends its lines as terminals do.
  auto text = kj::str(line.endsWith("\r") ? line.slice(0, line.size() - 1) : line.asArray());
  auto explained = [&](kj::StringPtr host) {
    KJ_IF_MAYBE(sentence, explainSshLine(host, text)) return kj::mv(*sentence);
    return kj::mv(text);
  };
  for (auto& process: processes) {
    auto& host = process.roles[0].host;
    if (!mentions(text, host)) continue;
    return kj::str(process.name, ": ", program, " cannot start it: ", explained(host));
  }
  return kj::str(program, " cannot start a role: ", explained("HOST"));
}

kj::Maybe<Failure> RankReport::judge(int status) const {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return nullptr;
  if (lost.size() > 0) return Failure{Failure::LOST_A_PEER, kj::str(lost)};
  auto how = WIFEXITED(status) ? kj::str("ended with exit code ", WEXITSTATUS(status))
                               : kj::str("was killed by signal ", WTERMSIG(status));
  return Failure{Failure::COMMAND_ENDED,
      kj::str(program, " ", how, "; its own lines, if there are any, are above")};
}

RankFiles::RankFiles(const RunFolder& folder, const rpc::Secret& secret,
    kj::ArrayPtr<const RoleGroup> processes, kj::ArrayPtr<const Host> hosts)
    : paths(kj::arr(
          kj::str(absolute(folder), "/secret"), kj::str(absolute(folder), "/rank_hosts.txt"))),
      remover(paths) {
  kj::Vector<kj::String> lines;
  for (auto& process: processes) {
    for (auto& host: hosts) {
      if (host.name == process.roles[0].host) lines.add(kj::str(host.toString(), "\n"));
    }
  }
  if (hosts.size() > 0) writeWhole(paths[1], kj::strArray(lines, ""));
  auto before = ::umask(S_IRWXG | S_IRWXO);
  KJ_DEFER(::umask(before));
  writeWhole(paths[0], kj::str(secret.digits(), "\n"));
}

kj::Promise<void> answersInTime(
    const LaunchedRun& run, kj::String command, kj::Promise<void> answer) {
  uint limit_s = run.experiment().cluster.startTimeout_s;
  auto late = run.io.provider->getTimer().afterDelay(limit_s * kj::SECONDS);
  auto fail = [limit_s, command = kj::mv(command)]() {
    configs::fail("`", command, "` has not answered within ", limit_s,
        " s (cluster.start_timeout_s). Call it by hand to see what it waits for");
  };
  return answer.exclusiveJoin(late.then(kj::mv(fail)));
}

kj::String ownPath() {
  char path[4096];
  ssize_t n = ::readlink("/proc/self/exe", path, sizeof(path));
  KJ_REQUIRE(n > 0 && size_t(n) < sizeof(path), "cannot find the path of this program");
  return kj::heapString(path, n);
}

void addCommandOfRank(kj::Vector<kj::String>& words, const LaunchedRun& run, const RankFiles& files,
    kj::StringPtr coordinator) {
  constexpr kj::StringPtr OWN = "RUNNER_"_kj, SECRET = "RUNNER_SECRET_FILE="_kj;
  auto add = [&](auto&&... parts) { words.add(kj::str(parts...)); };
  add("env");
  // A rank finds its place in the job by the variables of the system that has started it. Others
  // may be left in the user's shell.
  for (auto foreign: {"TF_CONFIG", "DMLC_ROLE", "DMLC_PS_ROOT_URI"}) add("--unset=", foreign);
  if (run.experiment().cluster.launcher->word == LauncherKind::SLURM) {
    for (auto foreign: {"OMPI_COMM_WORLD_RANK", "PMI_RANK"}) add("--unset=", foreign);
  }
  for (char** entry = environ; *entry != nullptr; ++entry) {
    kj::StringPtr variable = *entry;
    if (variable.startsWith(OWN) && !variable.startsWith(SECRET)) add(variable);
  }
  add(SECRET, files.secret());
  add(ownPath());
  add("role");
  add("--launched");
  add("--coordinator=", coordinator);
  RunFolder folder{absolute(run.folder)};
  add("--folder=", folder.path);
  KJ_IF_MAYBE(steps, run.options.trace) add("--trace-steps=", traceStepsText(*steps));
  add(folder.experiment());
}

kj::Own<StartedGroup> startRanks(const LaunchedRun& run, kj::ArrayPtr<const kj::String> words,
    kj::Array<RoleGroup> processes, ReadRankLine read) {
  return kj::heap<Ranks>(run, words, kj::mv(processes), read);
}

}  // namespace runner
