// runner/launch/ranks.h: servers and workers as the ranks of one command, such as mpirun or srun:
// the common code of the launchers that use such a command.
#pragma once

#include <kj/map.h>
#include <kj/vector.h>

#include "runner/launch/launcher.h"
#include "runner/system/file_remover.h"

namespace runner {

// A line that a rank wrote, as the command shows it.
struct RankLine {
  uint rank;
  kj::StringPtr text;  // points into the line
};

// Parses a line of the command's output. Null for a line of the command itself.
using ReadRankLine = kj::Maybe<RankLine> (*)(kj::StringPtr line);
kj::Maybe<RankLine> rankLineOfOpenMpi(kj::StringPtr line);  // `[1,3]<stderr>:text`
kj::Maybe<RankLine> rankLineOfHydra(kj::StringPtr line);    // `[3] text`
kj::Maybe<RankLine> rankLineOfSlurm(kj::StringPtr line);    // ` 3: text`

// Returns the absolute path of a run's folder, under which other hosts find it. The folder must
// exist.
kj::String absolute(const RunFolder& folder);

// Returns one group per process, in the order of the ranks that `runner role` knows: servers, then
// workers. They are placed on `hosts`: see placeRoles(). If `hosts` is empty, the roles name no
// host.
kj::Array<RoleGroup> rankedProcesses(const ClusterConfig& cluster, kj::ArrayPtr<const Host> hosts);

// Returns the one group that a launcher of ranks has.
RoleGroup groupOfRanks(kj::StringPtr program, kj::Array<RoleGroup> processes);

// Reads the output of a command and its ranks, and explains why they ended.
class RankReport {
public:
  // `program` is what messages call the command. Lines for the user go to `view`, which must
  // outlive the report.
  RankReport(
      kj::StringPtr program, kj::Array<RoleGroup> processes, ReadRankLine read, RunView& view);

  // Takes the next line. A failing rank writes its reason in a line that begins with "error: ".
  // Returns the failure at the first such line whose reason is not a lost peer, or at the first
  // line of an ssh that cannot reach a host. Until then, passes all other lines to the view. Drops
  // all later lines, because the command then describes the same failure at length.
  kj::Maybe<Failure> take(kj::StringPtr line);
  // `status` is that of wait() for the command. Returns null if all ranks ended well. Otherwise
  // returns a failure LOST_A_PEER or COMMAND_ENDED. A failure that the coordinator reports counts
  // as nearer to the cause than these.
  kj::Maybe<Failure> judge(int status) const;

private:
  // Returns a sentence about a line of an ssh that cannot reach a host.
  kj::String unreached(kj::StringPtr line) const;

  const kj::String program;
  const kj::Array<RoleGroup> processes;
  const ReadRankLine read;
  RunView& view;
  bool hasFailed = false;
  kj::HashSet<uint> losers;  // ranks that have lost a peer
  kj::HashSet<uint> broken;  // ranks whose device has failed
  kj::String lost;           // the first reason of a rank that lost a peer
};

// Files in the run folder, which all hosts share. The ranks need them until they have joined. They
// are removed when this object is destroyed, and also if `kill -9` ends this process.
class RankFiles {
public:
  // Writes `secret`, which only its owner may read. Unless `hosts` is empty, also writes the host
  // of each process, one per line.
  RankFiles(const RunFolder& folder, const rpc::Secret& secret,
      kj::ArrayPtr<const RoleGroup> processes, kj::ArrayPtr<const Host> hosts);
  KJ_DISALLOW_COPY(RankFiles);

  kj::StringPtr secret() const { return paths[0]; }
  kj::StringPtr hosts() const { return paths[1]; }

private:
  const kj::Array<kj::String> paths;
  FileRemover remover;
};

// Returns `answer`, for which a launcher waits before the run can begin. Rejects if `command` does
// not give it within cluster.start_timeout_s. `run` must outlive the promise.
kj::Promise<void> answersInTime(
    const LaunchedRun& run, kj::String command, kj::Promise<void> answer);

// Returns the path of this program, under which all hosts must have it.
kj::String ownPath();

// Adds the words of the command that every rank runs. It is the same on all hosts, because
// `runner role` finds its role by its rank. It passes this process's environment variables RUNNER_…
// on to the ranks.
void addCommandOfRank(kj::Vector<kj::String>& words, const LaunchedRun& run, const RankFiles& files,
    kj::StringPtr coordinator);

// Starts the command `words`. Its ranks end with it. `run` must outlive the group.
kj::Own<StartedGroup> startRanks(const LaunchedRun& run, kj::ArrayPtr<const kj::String> words,
    kj::Array<RoleGroup> processes, ReadRankLine read);

}  // namespace runner
