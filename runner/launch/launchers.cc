#include "runner/launch/launchers.h"

#include "configs/language/failure.h"
#include "runner/launch/inline_launcher.h"
#include "runner/launch/kubernetes.h"
#include "runner/launch/local_launcher.h"
#include "runner/launch/manual_launcher.h"
#include "runner/launch/mpi_launcher.h"
#include "runner/launch/slurm_launcher.h"
#include "runner/launch/ssh_launcher.h"
#include "runner/roles/job_secret.h"
#include "runner/system/addresses.h"
#include "runner/system/child_process.h"
#include "runner/system/reason.h"

namespace runner {

kj::Own<Launcher> newLauncher(const LaunchedRun& run) {
  switch (run.experiment().cluster.launcher->word) {
    case LauncherKind::LOCAL:
      return newLocalLauncher(run);
    case LauncherKind::INLINE:
      return newInlineLauncher(run);
    case LauncherKind::SSH:
      return newSshLauncher(run);
    case LauncherKind::MANUAL:
      return newManualLauncher(run);
    case LauncherKind::MPI:
      return newMpiLauncher(run);
    case LauncherKind::SLURM:
      return newSlurmLauncher(run);
    case LauncherKind::KUBERNETES:
      break;  // see submissionOf()
  }
  KJ_UNREACHABLE;
}

kj::Maybe<Submission> submissionOf(const LoadedExperiment& loaded) {
  auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
  auto launcher = experiment.cluster.launcher->word;
  if (launcher == LauncherKind::KUBERNETES) {
    return Submission{kubernetesManifest(loaded), kubernetesAdvice(experiment)};
  }
  if (launcher == LauncherKind::SLURM && !isInSlurm()) {
    return Submission{slurmScript(loaded), nullptr};
  }
  return nullptr;
}

kj::Maybe<kj::String> whyNotFromHere(const ClusterConfig& cluster) {
  bool isManual = cluster.launcher->word == LauncherKind::MANUAL;
  if (cluster.isHere() || (!isManual && cluster.interface == nullptr)) return nullptr;
  auto check = [&]() {
    auto host = listenPlaceFor(cluster).host;
    if (isManual) {
      KJ_IF_MAYBE(why, whyNoSecret(host, cluster.tls, secretOfUser())) configs::fail(*why);
    }
    KJ_IF_MAYBE(why, whyNotOwn(host)) configs::fail("cluster.interface: ", *why);
  };
  KJ_IF_MAYBE(e, kj::runCatchingExceptions(check)) return reasonOf(*e);
  return nullptr;
}

kj::String saidOfRoles(kj::StringPtr said, const ClusterConfig& cluster) {
  auto except = ChildProcess::leftBehind() == 0 ? ""_kj : ", except what a warning names"_kj;
  if (cluster.isHere()) return kj::str(said, except);
  auto others = cluster.launcher->word == LauncherKind::SSH
                    ? "each host ends its roles when it loses this machine"_kj
                    : "each other role ends when it loses the coordinator"_kj;
  return kj::str(said, " here", except, ", and ", others);
}

rpc::Secret secretFor(const ClusterConfig& cluster) {
  return cluster.launcher->word == LauncherKind::MANUAL ? secretOfUser() : rpc::Secret::random();
}

}  // namespace runner
