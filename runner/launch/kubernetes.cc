#include "runner/launch/kubernetes.h"

#include <kj/debug.h>
#include <kj/vector.h>

#include "io/checksum.h"
#include "runner/experiment/devices.h"
#include "runner/logs/role_names.h"
#include "runner/system/version.h"
#include "runner/text/yaml_text.h"

namespace runner {

namespace {

// Where the pods see their volumes. The coordinator makes its folder below `runs` there.
constexpr kj::StringPtr ROOT = "/run/runner"_kj;
// The coordinator's port in its pod. The first of cluster.port if that is given.
constexpr uint PORT = 7000;

// Returns a name that Kubernetes objects may have (RFC 1035), and to which a role and an index can
// be added. A long name ends in a hash, so that names with the same beginning differ.
kj::String objectNameOf(kj::StringPtr name) {
  constexpr size_t BYTES_MAX = 40, HASH_BYTES = 6;
  kj::Vector<char> result;
  for (char c: name) {
    if ('A' <= c && c <= 'Z') c += 'a' - 'A';
    bool isLetter = 'a' <= c && c <= 'z';
    bool isPlain = isLetter || ('0' <= c && c <= '9');
    if (result.empty() && !isLetter) result.addAll("run-"_kj);
    if (isPlain) {
      result.add(c);
    } else if (!result.empty() && result.back() != '-') {
      result.add('-');
    }
  }
  bool isLong = result.size() > BYTES_MAX;
  if (isLong) result.truncate(BYTES_MAX - HASH_BYTES - 1);
  while (result.back() == '-') result.removeLast();
  if (!isLong) return kj::heapString(result);
  return kj::str(result, '-', io::sha256Hex(name.asBytes()).slice(0, HASH_BYTES));
}

// One manifest, object by object.
class Manifest {
public:
  explicit Manifest(const LoadedExperiment& loaded)
      : loaded(loaded),
        experiment(KJ_ASSERT_NONNULL(loaded.experiment)),
        cluster(experiment.cluster),
        config(KJ_ASSERT_NONNULL(cluster.kubernetes)),
        name(objectNameOf(experiment.name)),
        port(cluster.ports.first == 0 ? PORT : cluster.ports.first),
        dataPath(kj::str(ROOT, "/data")) {
    KJ_IF_MAYBE(source, experiment.data.source) {
      isSourceGiven = true;
      if (source->startsWith("/")) dataPath = kj::str(*source);
    }
  }

  kj::String text() {
    line(0, "# Made by `runner run --dry-run` (", VERSION, "). The Secret ", config.secret,
        " must be there:");
    line(0, "# ", secretCommand(config));
    configMap();
    line(0, "---");
    service();
    job(Role::COORDINATOR, 1);
    uint perPod = cluster.serversPerProcess;
    if (cluster.servers > 0) job(Role::SERVER, (cluster.servers + perPod - 1) / perPod);
    job(Role::WORKER, cluster.workers);
    return kj::strArray(lines, "");
  }

  static kj::String secretCommand(const KubernetesConfig& config) {
    return kj::str("openssl rand -hex 32 | kubectl create secret generic ", config.secret,
        " --from-file=secret=/dev/stdin");
  }

private:
  template <typename... Parts>
  void line(uint indent, Parts&&... parts) {
    lines.add(kj::str(kj::repeat(' ', indent), kj::fwd<Parts>(parts)..., "\n"));
  }

  void labels(uint indent, kj::StringPtr component = nullptr) {
    line(indent, "app.kubernetes.io/name: runner");
    line(indent, "app.kubernetes.io/instance: ", yamlText(name));
    if (component.size() > 0) line(indent, "app.kubernetes.io/component: ", component);
  }

  void header(kj::StringPtr version, kj::StringPtr kind, kj::StringPtr ownName,
      kj::StringPtr component = nullptr) {
    line(0, "apiVersion: ", version);
    line(0, "kind: ", kind);
    line(0, "metadata:");
    line(2, "name: ", yamlText(ownName));
    line(2, "labels:");
    labels(4, component);
  }

  void configMap() {
    header("v1", "ConfigMap", name);
    line(0, "data:");
    lines.add(kj::str("  experiment.toml: ", yamlBlock(loaded.resolved, 4)));
  }

  // DNS names the pods as soon as they have addresses, because roles wait for the coordinator.
  void service() {
    header("v1", "Service", name);
    line(0, "spec:");
    line(2, "clusterIP: None");
    line(2, "publishNotReadyAddresses: true");
    line(2, "selector:");
    labels(4);
    line(2, "ports:");
    line(4, "- name: coordinator");
    line(4, "  port: ", port);
  }

  void job(Role role, uint count) {
    auto word = roleWord(role);
    line(0, "---");
    header("batch/v1", "Job", kj::str(name, "-", word), word);
    line(0, "spec:");
    line(2, "completionMode: Indexed");
    line(2, "completions: ", count);
    line(2, "parallelism: ", count);
    // A restarted role would find its place taken, and only hide the first failure.
    line(2, "backoffLimit: 0");
    line(2, "template:");
    line(4, "metadata:");
    line(6, "labels:");
    labels(8, word);
    line(4, "spec:");
    line(6, "restartPolicy: Never");
    line(6, "subdomain: ", yamlText(name));
    line(6, "automountServiceAccountToken: false");
    line(6, "enableServiceLinks: false");
    if (config.nodeSelector.size() > 0) line(6, "nodeSelector:");
    for (auto& label: config.nodeSelector) {
      line(8, yamlText(label.key), ": ", yamlText(label.value));
    }
    container(role);
    volumes(role);
  }

  void container(Role role) {
    line(6, "containers:");
    line(8, "- name: ", roleWord(role));
    line(8, "  image: ", yamlText(KJ_ASSERT_NONNULL(cluster.image)));
    line(8, "  workingDir: ", ROOT);
    line(8, "  command:");
    for (auto& word: commandOf(role)) line(10, "  - ", yamlText(word));
    line(8, "  env:");
    if (role == Role::COORDINATOR) {
      line(10, "  - name: POD_IP");
      line(10, "    valueFrom:");
      line(10, "      fieldRef:");
      line(10, "        fieldPath: status.podIP");
    }
    variable("RUNNER_SECRET_FILE", kj::str(ROOT, "/secret/secret"));
    variable("RUNNER_CACHE", kj::str(ROOT, "/cache"));
    if (config.data != nullptr && !isSourceGiven) variable("RUNNER_DATASETS", dataPath);
    resources(role);
    line(8, "  volumeMounts:");
    mount("experiment", kj::str(ROOT, "/experiment"), true);
    mount("secret", kj::str(ROOT, "/secret"), true);
    mount("cache", kj::str(ROOT, "/cache"), false);
    if (role == Role::COORDINATOR) mount("runs", kj::str(ROOT, "/runs"), false);
    if (config.data != nullptr) mount("data", dataPath, true);
  }

  kj::Array<kj::String> commandOf(Role role) const {
    auto file = kj::str(ROOT, "/experiment/experiment.toml");
    auto at = kj::str(name, "-", roleWord(Role::COORDINATOR), "-0.", name, ":", port);
    kj::Vector<kj::String> words;
    for (auto word: {"runner"_kj, "role"_kj, file.asPtr(), "--role"_kj, roleWord(role)}) {
      words.add(kj::str(word));
    }
    if (role == Role::COORDINATOR) {
      words.add(kj::str("--listen"));
      words.add(kj::str("$(POD_IP)"));
      if (cluster.ports.first == 0) {
        words.add(kj::str("--set"));
        words.add(kj::str("cluster.port=\"", port, "\""));
      }
    } else {
      words.add(kj::str("--coordinator"));
      words.add(kj::str(at));
    }
    return words.releaseAsArray();
  }

  void variable(kj::StringPtr variableName, kj::StringPtr value) {
    line(10, "  - name: ", variableName);
    line(10, "    value: ", yamlText(value));
  }

  // A worker computes with its threads, or waits for its GPUs. Each server of a pod has a thread.
  void resources(Role role) {
    uint gpus = 0, cpus = 0;
    for (auto& device: cluster.devices) (isGpu(device) ? gpus : cpus)++;
    bool isWorker = role == Role::WORKER;
    uint servers = role == Role::SERVER ? cluster.serversPerProcess : 0;
    uint cores = kj::max(1u, isWorker ? cpus * cluster.threadsPerWorker : servers);
    line(8, "  resources:");
    line(10, "  requests:");
    line(12, "  cpu: ", yamlText(kj::str(cores)));
    kj::Maybe<const kj::String&> memory;
    if (role != Role::COORDINATOR)
      memory = config.memory.map([](const kj::String& text) -> const kj::String& { return text; });
    KJ_IF_MAYBE(text, memory) line(12, "  memory: ", yamlText(*text));
    if (memory == nullptr && !(isWorker && gpus > 0)) return;
    line(10, "  limits:");
    KJ_IF_MAYBE(text, memory) line(12, "  memory: ", yamlText(*text));
    if (isWorker && gpus > 0) line(12, "  nvidia.com/gpu: ", yamlText(kj::str(gpus)));
  }

  void mount(kj::StringPtr volume, kj::StringPtr path, bool isReadOnly) {
    line(10, "  - name: ", volume);
    line(10, "    mountPath: ", yamlText(path));
    if (isReadOnly) line(10, "    readOnly: true");
  }

  void volumes(Role role) {
    line(6, "volumes:");
    line(8, "- name: experiment");
    line(8, "  configMap:");
    line(8, "    name: ", yamlText(name));
    line(8, "- name: secret");
    line(8, "  secret:");
    line(8, "    secretName: ", yamlText(config.secret));
    line(8, "    defaultMode: 0400");
    line(8, "- name: cache");
    line(8, "  emptyDir: {}");
    if (role == Role::COORDINATOR) claim("runs", config.runs);
    KJ_IF_MAYBE(data, config.data) claim("data", *data);
  }

  void claim(kj::StringPtr volume, kj::StringPtr claimName) {
    line(8, "- name: ", volume);
    line(8, "  persistentVolumeClaim:");
    line(8, "    claimName: ", yamlText(claimName));
  }

  const LoadedExperiment& loaded;
  const Experiment& experiment;
  const ClusterConfig& cluster;
  const KubernetesConfig& config;
  const kj::String name;
  const uint port;
  kj::String dataPath;
  bool isSourceGiven = false;
  kj::Vector<kj::String> lines;
};

}  // namespace

kj::String kubernetesManifest(const LoadedExperiment& loaded) {
  return Manifest(loaded).text();
}

kj::String kubernetesAdvice(const Experiment& experiment) {
  auto& config = KJ_ASSERT_NONNULL(experiment.cluster.kubernetes);
  auto name = objectNameOf(experiment.name);
  return kj::str(
      "launcher `kubernetes` starts nothing by itself. Make the Secret once, apply what ",
      "this command prints with --dry-run, and follow the coordinator:\n  ",
      Manifest::secretCommand(config), "\n  runner run … --dry-run | kubectl apply -f -\n  ",
      "kubectl logs --follow job/", name, "-coordinator\n");
}

}  // namespace runner
