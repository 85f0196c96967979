// runner/experiment/kubernetes_config.h: settings for the pods of launcher kubernetes.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "configs/language/reader.h"

namespace runner {

// [cluster.kubernetes]. Names are those of objects in the namespace of the job.
struct KubernetesConfig {
  kj::String secret;             // the Secret with the job's secret
  kj::String runs;               // the PersistentVolumeClaim for the folders of runs
  kj::Maybe<kj::String> data;    // the claim for the data sets. Null: roles fetch them
  kj::Maybe<kj::String> memory;  // of each server and worker, such as "4Gi". Null: no limit

  struct Label {
    kj::String key;
    kj::String value;
  };
  kj::Array<Label> nodeSelector;

  static KubernetesConfig read(configs::Reader& reader);
};

}  // namespace runner
