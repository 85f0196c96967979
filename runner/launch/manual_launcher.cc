#include "runner/launch/manual_launcher.h"

#include <kj/vector.h>
#include <limits.h>
#include <stdlib.h>

#include "configs/language/failure.h"
#include "runner/launch/local_launcher.h"
#include "runner/logs/role_names.h"
#include "runner/roles/job_secret.h"
#include "runner/system/command_line.h"
#include "runner/text/shell_word.h"

namespace runner {

namespace {

// Roles that somebody else starts and ends.
class UnseenGroup final: public StartedGroup {
public:
  kj::Promise<kj::Maybe<Failure>> ended() override { return kj::Maybe<Failure>(); }
};

// Returns `path` in a form that works in other terminals, whose current folder may differ.
kj::String absolute(kj::StringPtr path) {
  char resolved[PATH_MAX];
  return kj::str(::realpath(path.cStr(), resolved) == nullptr ? path.cStr() : resolved);
}

class ManualLauncher final: public Launcher {
public:
  explicit ManualLauncher(const LaunchedRun& run): run(run) {}

  kj::Promise<ListenPlace> prepare() override { return listenPlaceFor(run.experiment().cluster); }

  StartedCoordinator startCoordinator(ListenPlace place) override {
    return startCoordinatorHere(run, kj::mv(place));
  }

  kj::Array<RoleGroup> groups() const override { return groupsOnHosts(run.experiment().cluster); }

  kj::Own<StartedGroup> start(const RoleGroup& group, kj::StringPtr coordinator) override {
    auto& host = group.roles[0].host;
    if (!hasSaid) {
      run.view.say(
          "start these roles, in any order. A host that does not see this folder needs a "
          "copy of the file");
    }
    if (host != lastHost) print(kj::str("on ", host, ":\n"));
    hasSaid = true;
    lastHost = kj::str(host);
    print(kj::str(commandFor(group, coordinator), "\n"));
    return kj::heap<UnseenGroup>();
  }

private:
  kj::String commandFor(const RoleGroup& group, kj::StringPtr coordinator) const {
    auto& first = group.roles[0];
    kj::Vector<kj::String> words;
    if (run.secret.isSet()) {
      auto path = absolute(::getenv("RUNNER_SECRET_FILE"));
      words.add(kj::str("RUNNER_SECRET_FILE=", shellWord(path)));
    }
    words.add(kj::str("runner role"));
    words.add(shellWord(absolute(run.folder.experiment())));
    words.add(kj::str("--role ", roleWord(first.role), " --index ", first.index));
    words.add(kj::str("--coordinator ", shellWord(coordinator)));
    return kj::strArray(words, " ");
  }

  const LaunchedRun& run;
  bool hasSaid = false;
  kj::String lastHost;
};

}  // namespace

kj::Own<Launcher> newManualLauncher(const LaunchedRun& run) {
  return kj::heap<ManualLauncher>(run);
}

}  // namespace runner
