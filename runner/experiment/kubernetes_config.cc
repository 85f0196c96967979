#include "runner/experiment/kubernetes_config.h"

#include <kj/vector.h>
#include <string.h>

namespace runner {

namespace {

constexpr kj::StringPtr LETTERS_AND_DIGITS =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"_kj;

bool isLetterOrDigit(char c) {
  return ::strchr(LETTERS_AND_DIGITS.cStr(), c) != nullptr && c != '\0';
}

// Whether Kubernetes takes `text` as the value of a label, or as the last part of its key.
bool isLabelWord(kj::StringPtr text) {
  constexpr size_t BYTES_MAX = 63;
  if (text.size() == 0 || text.size() > BYTES_MAX) return false;
  for (char c: text) {
    if (!isLetterOrDigit(c) && c != '-' && c != '_' && c != '.') return false;
  }
  return isLetterOrDigit(text[0]) && isLetterOrDigit(text[text.size() - 1]);
}

bool isLabelKey(kj::StringPtr text) {
  KJ_IF_MAYBE(slash, text.findLast('/')) {
    auto prefix = kj::heapString(text.slice(0, *slash));
    bool hasPrefix = prefix.size() > 0;
    for (char c: prefix) hasPrefix = hasPrefix && (isLetterOrDigit(c) || c == '-' || c == '.');
    return hasPrefix && isLabelWord(text.slice(*slash + 1));
  }
  return isLabelWord(text);
}

// Returns a number of bytes, of "4Gi" for example. Null if `text` is not an amount of memory.
kj::Maybe<double> bytesOf(kj::StringPtr text) {
  struct Unit {
    kj::StringPtr word;
    double bytes;
  };
  constexpr Unit UNITS[] = {{""_kj, 1}, {"k"_kj, 1e3}, {"M"_kj, 1e6}, {"G"_kj, 1e9}, {"T"_kj, 1e12},
      {"Ki"_kj, 1024.0}, {"Mi"_kj, 1024.0 * 1024}, {"Gi"_kj, 1024.0 * 1024 * 1024},
      {"Ti"_kj, 1024.0 * 1024 * 1024 * 1024}};
  constexpr size_t DIGITS_MAX = 15;
  auto digits = ::strspn(text.cStr(), "0123456789");
  if (digits == 0 || digits > DIGITS_MAX) return nullptr;
  for (auto& unit: UNITS) {
    if (text.slice(digits) != unit.word) continue;
    return kj::heapString(text.slice(0, digits)).parseAs<double>() * unit.bytes;
  }
  return nullptr;
}

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
  config.runs = reader.text("runs",
      "The PersistentVolumeClaim for the folders of runs, to which the coordinator writes.");
  checkName(reader, "runs", config.runs);
  config.data = reader.maybeText("data",
      "The PersistentVolumeClaim with the data sets, which all pods read. It is mounted at the "
      "path `data.source`. Without `data.source`, the variable `RUNNER_DATASETS` of the pods names "
      "the path. Default: each pod fetches the data set.");
  KJ_IF_MAYBE(claim, config.data) checkName(reader, "data", *claim);
  config.memory = reader.maybeText("memory",
      "The memory of each server and worker, such as `\"4Gi\"`. Default: no request and no limit.");
  KJ_IF_MAYBE(text, config.memory) {
    // A role needs at least this much to start.
    constexpr double BYTES_MIN = 16e6;
    KJ_IF_MAYBE(bytes, bytesOf(*text)) {
      if (*bytes < BYTES_MIN) {
        reader.error("memory", kj::str("`", *text, "` is too little memory for a role"),
            "write a whole number and a unit, such as \"4Gi\"");
      }
    } else {
      reader.error("memory", kj::str("`", *text, "` is not an amount of memory"),
          "write a whole number and a unit, such as \"4Gi\"");
    }
  }
  kj::Vector<Label> labels;
  for (auto& each: reader.texts("node_selector",
           "Labels that a node must have to run the pods, such as `[\"disktype=ssd\"]`.")) {
    auto refuse = [&](kj::StringPtr what, kj::StringPtr help) {
      reader.error("node_selector", kj::str("`", each, "`", what), help);
    };
    auto at = each.findFirst('=').orDefault(each.size());
    auto key = kj::heapString(each.slice(0, at));
    auto value = at < each.size() ? kj::str(each.slice(at + 1)) : kj::str();
    if (at == each.size() || !isLabelKey(key) || !(value.size() == 0 || isLabelWord(value))) {
      refuse(" is not a label of a node", "write \"KEY=VALUE\"");
      continue;
    }
    bool isRepeated = false;
    for (auto& other: labels) isRepeated = isRepeated || other.key == key;
    if (isRepeated) {
      refuse(" names a label again", "name each label once: a node has only one value of it");
      continue;
    }
    labels.add(Label{kj::mv(key), kj::mv(value)});
  }
  config.nodeSelector = labels.releaseAsArray();
  return config;
}

}  // namespace runner
