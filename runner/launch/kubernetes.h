// runner/launch/kubernetes.h: a run as the pods of Kubernetes.
#pragma once

#include <kj/string.h>

#include "runner/experiment/experiment.h"

namespace runner {

// Returns the manifest for `kubectl apply -f -`: one Indexed Job per kind of role, a headless
// Service, which gives the coordinator's pod a name, and a ConfigMap with the experiment. The
// manifest refers to the Secret with the job's secret and does not hold it.
kj::String kubernetesManifest(const LoadedExperiment& loaded);

// Returns a text for the user of `runner run`: the launcher starts nothing by itself, and these
// commands apply the manifest and follow the run.
kj::String kubernetesAdvice(const Experiment& experiment);

}  // namespace runner
