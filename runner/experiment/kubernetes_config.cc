#include "runner/experiment/kubernetes_config.h"

#include <kj/vector.h>
#include <string.h>

namespace runner {

namespace {

// Reports a name that no Kubernetes object can have (RFC 1123).
void checkName(configs::Reader& reader, kj::StringPtr key, kj::StringPtr name) {
  constexpr size_t BYTES_MAX = 253;
  constexpr kj::StringPtr ALLOWED = "abcdefghijklmnopqrstuvwxyz0123456789-."_kj;
  bool isName = 0 < name.size() && name.size() <= BYTES_MAX &&
                ::strspn(name.cStr(), ALLOWED.cStr()) == name.size() && name[0] != '-' &&
                !name.endsWith("-");
  if (isName || reader.isManual()) return;
  reader.error(key, kj::str("`", name, "` cannot be the name of a Kubernetes object"),
      "use small letters, digits and `-`");
}

}  // namespace

KubernetesConfig KubernetesConfig::read(configs::Reader& reader) {
  KubernetesConfig config;
  config.secret = reader.text("secret",
      "The Secret whose key `secret` holds the job's secret, 64 hexadecimal digits.",
      "runner-secret");
  checkName(reader, "secret", config.secret);
  config.runs = reader.text(
      "runs", "The PersistentVolumeClaim for the folders of runs: the coordinator writes there.");
  checkName(reader, "runs", config.runs);
  config.data = reader.maybeText("data",
      "The PersistentVolumeClaim with the data sets, which all pods read. It appears where "
      "`data.source` says, or without that as `RUNNER_DATASETS`. Absent: each pod fetches the data "
      "set.");
  KJ_IF_MAYBE(claim, config.data) checkName(reader, "data", *claim);
  config.memory = reader.maybeText("memory",
      "The memory of each server and worker, such as `\"4Gi\"`. Absent: no request and no limit.");
  KJ_IF_MAYBE(text, config.memory) {
    auto digits = ::strspn(text->cStr(), "0123456789");
    kj::StringPtr unit = text->slice(digits);
    bool isKnown = unit == "" || unit == "Ki" || unit == "Mi" || unit == "Gi" || unit == "Ti" ||
                   unit == "k" || unit == "M" || unit == "G" || unit == "T";
    if (digits == 0 || !isKnown) {
      reader.error("memory", kj::str("`", *text, "` is not an amount of memory"),
          "write a whole number and a unit, such as \"4Gi\"");
    }
  }
  kj::Vector<Label> labels;
  for (auto& each: reader.texts("node_selector",
           "Labels of the nodes that take the pods, such as `[\"disktype=ssd\"]`.")) {
    KJ_IF_MAYBE(at, each.findFirst('=')) {
      labels.add(Label{kj::heapString(each.slice(0, *at)), kj::str(each.slice(*at + 1))});
    } else {
      reader.error(
          "node_selector", kj::str("`", each, "` is not a label of a node"), "write \"KEY=VALUE\"");
    }
  }
  config.nodeSelector = labels.releaseAsArray();
  return config;
}

}  // namespace runner
