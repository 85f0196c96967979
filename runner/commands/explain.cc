#include "runner/commands/explain.h"

#include <kj/debug.h>
#include <stdio.h>

#include "nn/cpu/cpu.h"
#include "runner/commands/update_plan.h"
#include "runner/experiment/devices.h"
#include "runner/experiment/model_facts.h"
#include "runner/logs/role_names.h"
#include "runner/roles/batches.h"
#include "runner/roles/store_updater.h"
#include "runner/system/machine.h"
#include "runner/tables/terminal_table.h"
#include "runner/text/fitted_text.h"
#include "runner/text/numbers.h"

namespace runner {

namespace {

// Writes tables and sentences that fit the terminal.
class Form {
public:
  explicit Form(kj::Maybe<uint> columns): columns(columns) {}

  // `important` is as for fittedTable().
  kj::String table(const TextTable& table, kj::ArrayPtr<const kj::StringPtr> important) const {
    // Wider than any table.
    constexpr uint ALL = 1 << 20;
    auto whole = fittedTable(table, important, ALL);
    KJ_IF_MAYBE(c, columns) {
      auto fitting = fittedTable(table, important, *c);
      if (fitting == whole) return whole;
      return kj::str(
          fitting, lines("(some columns are left out; `runner explain FILE | cat` shows all)\n"));
    }
    return whole;
  }

  // `text` may have several lines, each with a newline.
  kj::String lines(kj::StringPtr text) const {
    KJ_IF_MAYBE(c, columns) return wrapped(text, *c);
    return kj::str(text);
  }

private:
  kj::Maybe<uint> columns;  // of the terminal
};

template <typename... Cells>
kj::Array<kj::String> cells(Cells&&... texts) {
  return kj::arr(kj::str(kj::fwd<Cells>(texts))...);
}

constexpr kj::StringPtr IMPORTANT_LAYER_COLUMNS[] = {
    "layer"_kj, "op"_kj, "output"_kj, "parameters"_kj, "MFLOP"_kj};
constexpr kj::StringPtr IMPORTANT_UPDATE_COLUMNS[] = {
    "group"_kj, "rule"_kj, "learning rate"_kj, "decay"_kj, "until"_kj, "keys"_kj};

kj::String megabytes(double bytes) {
  return kj::str(fixedPoint(bytes / 1e6, 2), " MB");
}

kj::String shapeText(const nn::Shape& shape) {
  return kj::str(shape.channels, "×", shape.height, "×", shape.width);
}

kj::String layers(const nn::Graph& graph, const Form& form) {
  kj::Vector<kj::Array<kj::String>> rows;
  uint64_t flops = 0;
  uint segment = 0;  // the one that `id` is in
  for (uint id = 0; id < graph.nodes.size(); id++) {
    auto& node = graph.nodes[id];
    auto inputs = KJ_MAP(input, node.inputs) {
      return graph.nodes[input].shape;
    };
    uint64_t own = nn::forwardFlops(node.op, inputs);
    flops += own;
    uint64_t parameters = 0;
    for (uint64_t k = node.keys.begin; k < node.keys.end; k++) parameters += graph.keys[k].size;
    while (graph.segments[segment].nodes.end <= id) segment++;
    rows.add(cells(node.name, nn::nameOf(node.op), shapeText(node.shape),
        parameters == 0 ? kj::str() : grouped(parameters), fixedPoint(own / 1e6, 2), segment));
  }
  TextTable table{cells("layer", "op", "output", "parameters", "MFLOP", "segment"),
      rows.releaseAsArray(), nullptr};
  kj::Vector<kj::String> lines;
  lines.add(kj::str(grouped(graph.parameters), " parameters in ", graph.keys.size(), " keys, ",
      grouped(graph.statisticsSize), " moving statistics, ", fixedPoint(flops / 1e6, 1),
      " MFLOP per image forward, about three times as many in training\n"));
  bool modelsInit = false;
  for (auto& key: graph.keys) {
    modelsInit = modelsInit || (key.role == nn::Key::WEIGHT && key.initializer == nullptr);
  }
  if (!modelsInit) {
    lines.add(kj::str("`init` of [model] is unused: every weight has its own init\n"));
  }
  return kj::str(form.table(table, IMPORTANT_LAYER_COLUMNS), form.lines(kj::strArray(lines, "")));
}

kj::String views(const io::DataConfig& data) {
  size_t last = data.views(true).size(), before = data.views(false).size();
  if (last == before) return kj::str();
  return kj::str(
      "the last validation uses ", last, " views of each image, earlier ones use ", before, "\n");
}

kj::String updates(const Experiment& experiment, const ModelFacts& facts, const Form& form) {
  auto warnings = KJ_MAP(sentence, endlessWarmUps(experiment, facts)) {
    return kj::str(sentence, "\n");
  };
  return kj::str(form.table(updatePlan(experiment, facts), IMPORTANT_UPDATE_COLUMNS),
      form.lines(kj::strArray(warnings, "")));
}

// Returns how many floats of state `updater` has for all slices of a list.
uint64_t stateOf(const rpc::Updater& updater, const rpc::Placement& placement,
    kj::ArrayPtr<const rpc::SliceId> ids) {
  uint64_t state = 0;
  for (auto id: ids) {
    auto& slice = placement.slices[id];
    state += slice.size * updater.stateArrays(slice);
  }
  return state;
}

// Returns a line about the code that updates parameters in each worker. Empty if servers do it.
kj::String ownUpdates(
    const Experiment& experiment, const ModelFacts& facts, const rpc::Placement& placement) {
  KJ_IF_MAYBE(own, experiment.kvstore.mode->ownUpdates()) {
    StoreUpdater updater(experiment, facts);
    uint64_t state = 0;
    for (auto& ids: placement.shards) state += stateOf(updater, placement, ids);
    return kj::str("every worker updates all parameters ", own->with, ": ", megabytes(state * 4.0),
        " optimizer state in each\n");
  }
  return kj::str();
}

// Returns the traffic of a step over connections, and the least time that it takes. Without
// connections, says why `links` have no effect.
kj::String traffic(
    const Experiment& experiment, const rpc::Placement& placement, const kj::Maybe<Links>& links) {
  if (!experiment.kvstore.exchanges()) {
    if (links == nullptr) return kj::str();
    return kj::str("mode ", experiment.kvstore.mode->row.name,
        " sends nothing over a network, so --bandwidth changes nothing\n");
  }
  auto traffic = stepTraffic(experiment, placement);
  kj::Vector<kj::String> lines;
  lines.add(kj::str("a worker sends ", megabytes(traffic.pushed_bytes), " and receives ",
      megabytes(traffic.answered_bytes), " per step; the busiest ",
      experiment.kvstore.hasServers() ? "server" : "shard", " receives ",
      megabytes(traffic.shardIn_bytes), " and sends ", megabytes(traffic.shardOut_bytes), "\n"));
  KJ_IF_MAYBE(given, links) {
    lines.add(kj::str("with worker and server number i on host i, the busiest link carries ",
        megabytes(traffic.link_bytes), " per step: ", fixedPoint(network_ms(traffic, *given), 1),
        " ms of network at ", sixDigits(given->mbit), " Mbit/s\n"));
  }
  return kj::strArray(lines, "");
}

// A worker's program, or why this machine cannot have it.
using Lowered = kj::OneOf<kj::Own<nn::Program>, kj::String>;

Lowered tryToLower(const Experiment& experiment, const nn::Graph& graph) {
  for (auto& device: experiment.cluster.devices) {
    KJ_IF_MAYBE(why, whyNotHere(device)) return kj::str("device ", device, ": ", *why);
  }
  useInstructionSetOf(experiment);
  return programOf(experiment, graph);
}

kj::String bits(const Experiment& experiment) {
  KJ_IF_MAYBE(why, whyBitsDiffer(experiment)) return kj::str(*why, "\n");
  return kj::str();
}

// Returns what the precision "auto" means on this machine, or advises a better precision.
kj::String precision(const Experiment& experiment, const nn::Graph& graph) {
  auto level = nn::instructionSet();
  if (experiment.train.precision == nn::Precision::AUTO) {
    auto word = wordOf(nn::automaticPrecision(level));
    return kj::str(
        "train.precision = \"auto\" is ", word, " on this machine (instruction set ", level, ")\n");
  }
  KJ_IF_MAYBE(hint, precisionHint(experiment, graph)) return kj::str(*hint, '\n');
  return kj::str();
}

kj::String memory(const Lowered& program) {
  KJ_SWITCH_ONEOF(program) {
    KJ_CASE_ONEOF(lowered, kj::Own<nn::Program>) {
      return kj::str(
          megabytes(lowered->memory_bytes()), " (instruction set ", nn::instructionSet(), ")");
    }
    KJ_CASE_ONEOF(why, kj::String) {
      return kj::str("unknown on this machine (", why, ")");
    }
  }
  KJ_UNREACHABLE;
}

// `itself`: the worker's program updates its own parameters, and there is no shard.
kj::String store(const Experiment& experiment, const ModelFacts& facts,
    const kj::Maybe<Links>& links, bool itself, const Form& form) {
  auto& graph = facts.graph;
  auto& kvstore = experiment.kvstore;
  auto& mode = kvstore.mode->row;
  auto placement = placementOf(experiment, graph);
  auto updater = shardUpdater(experiment, facts);
  kj::Vector<kj::String> lines;
  lines.add(kj::str("mode ", mode.name, ": ", mode.doc, "\n"));
  lines.add(kj::str(placeOfUpdates(experiment, itself), "\n"));
  if (itself) {
    lines.add(traffic(experiment, placement, links));
    return form.lines(kj::strArray(lines, ""));
  }
  auto head = form.lines(kj::strArray(lines, ""));
  lines.clear();
  kj::Vector<kj::Array<kj::String>> rows;
  for (uint shard = 0; shard < placement.shards.size(); shard++) {
    uint64_t size = 0;
    for (auto id: placement.shards[shard]) size += placement.slices[id].size;
    uint64_t state = stateOf(*updater, placement, placement.shards[shard]);
    auto holder = kvstore.hasServers()          ? "server "_kj
                  : kvstore.workersHoldShards() ? "worker "_kj
                                                : "shard "_kj;
    rows.add(cells(kj::str(holder, shard), placement.shards[shard].size(),
        fixedPoint(size * 4 / 1e6, 2), fixedPoint(state * 4 / 1e6, 2)));
  }
  TextTable table{
      cells("where", "slices", "values MB", "optimizer state MB"), rows.releaseAsArray(), nullptr};
  lines.add(kj::str("largest share ", fixedPoint(100 * placement.largestShare(), 1), " %\n"));
  if (kvstore.exchanges()) {
    auto& transport = *kvstore.transport;
    lines.add(kj::str("transport ", transport.name, ": ", transport.doc, "\n"));
  }
  lines.add(traffic(experiment, placement, links));
  lines.add(ownUpdates(experiment, facts, placement));
  return kj::str(head, "\n", form.table(table, nullptr), "\n", form.lines(kj::strArray(lines, "")));
}

// Returns a sentence about the images that stay on the devices, if they do.
kj::String cache(const Experiment& experiment) {
  if (experiment.data.cache != io::DataCache::DEVICE) return kj::str();
  return kj::str("images kept on each device: ",
      megabytes(kept_bytes(experiment.data, datasetFacts(experiment.data))), "\n");
}

// Returns a sentence about where the roles listen.
kj::String addresses(const ClusterConfig& cluster) {
  auto atInterface = cluster.interface.map(
      [](kj::StringPtr word) { return kj::str("cluster.interface, ", word); });
  auto ports = cluster.ports.first == 0 ? kj::str("ports chosen by the system")
               : cluster.ports.first == cluster.ports.last
                   ? kj::str("port ", cluster.ports.first)
                   : kj::str("ports ", cluster.ports.first, " to ", cluster.ports.last);
  kj::String coordinator;
  switch (cluster.launcher->word) {
    case LauncherKind::LOCAL:
    case LauncherKind::INLINE: {
      bool isUnused = cluster.interface != nullptr || cluster.hosts.size() > 0;
      return kj::str("addresses on 127.0.0.1, ", ports, "\n",
          isUnused ? kj::str("launcher ", cluster.launcher->name,
                         " starts all roles on this machine, and uses neither cluster.hosts nor "
                         "cluster.interface\n")
                   : kj::str());
    }
    case LauncherKind::KUBERNETES:
      return kj::str("the coordinator and each server listen at the address of their pod\n");
    case LauncherKind::SLURM:
      coordinator = kj::str("the address from which its node reaches the others");
      break;
    case LauncherKind::SSH:
    case LauncherKind::MANUAL:
    case LauncherKind::MPI:
      coordinator = cluster.hosts.size() > 0
                        ? kj::str("the address from which this machine reaches the hosts")
                        : kj::str("127.0.0.1");
      break;
  }
  KJ_IF_MAYBE(named, atInterface) coordinator = kj::mv(*named);
  return kj::str("the coordinator listens at ", coordinator,
      ", and each other role at the address from which it reaches the coordinator; ", ports, "\n");
}

// Returns one line per host: `host node1 slots=2: server 0, worker 0, worker 2`.
kj::String hostsAndRoles(const ClusterConfig& cluster) {
  if (cluster.launcher->hosts == LauncherKind::UNUSED || cluster.hosts.size() == 0)
    return kj::str();
  auto placed = cluster.roleHosts();
  kj::Vector<kj::String> lines;
  for (size_t host: kj::indices(cluster.hosts)) {
    kj::Vector<kj::String> names;
    for (uint i = 0; i < cluster.servers; i++) {
      if (placed.servers[i] == host) names.add(roleName(Role::SERVER, i));
    }
    for (uint i = 0; i < cluster.workers; i++) {
      if (placed.workers[i] == host) names.add(roleName(Role::WORKER, i));
    }
    if (names.empty()) names.add(kj::str("no role"));
    auto slots = cluster.hosts[host].slots.map([](uint n) { return kj::str(" slots=", n); });
    lines.add(kj::str("host ", cluster.hosts[host].toString(), slots.orDefault(nullptr), ": ",
        kj::strArray(names, ", "), "\n"));
  }
  return kj::strArray(lines, "");
}

// Returns a sentence if this machine has fewer cores than threads that compute.
kj::String crowd(const ClusterConfig& cluster) {
  uint64_t threads = 0;
  for (auto& device: cluster.devices) threads += isGpu(device) ? 0 : cluster.threadsPerWorker;
  threads *= cluster.workers;
  auto cores = thisMachine().cores;
  if (!cluster.isHere() || threads <= cores) return nullptr;
  return kj::str(threads, " threads of workers share the ", counted(cores, "core"),
      " of this machine. More threads than cores do not make an epoch faster\n");
}

}  // namespace

kj::String explain(
    const LoadedExperiment& loaded, const kj::Maybe<Links>& links, kj::Maybe<uint> columns) {
  Form form(columns);
  auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
  ModelFacts facts(experiment);
  auto& cluster = experiment.cluster;
  auto valueUpdates = StoreUpdater(experiment, facts).byValue();
  auto program = tryToLower(experiment, facts.graph);
  // This also holds if the device cannot be asked.
  bool itself = valueUpdates != nullptr && cluster.devices.size() == 1 &&
                targetOf(cluster.devices[0]).backend != &nn::CPU;
  if (program.is<kj::Own<nn::Program>>()) {
    auto& lowered = *program.get<kj::Own<nn::Program>>();
    KJ_IF_MAYBE(own, valueUpdates) KJ_ASSERT((lowered.trainBy(*own) != nullptr) == itself);
  }
  double perEpoch = double(facts.passLength) * experiment.data.readings(cluster.workers) /
                    experiment.globalBatchSize();
  auto roles = kj::str("launcher ", cluster.launcher->name, ": 1 coordinator, ", cluster.roles(),
      "; ", cluster.devices.size() > 1 ? kj::str(cluster.devices.size(), " devices × ") : kj::str(),
      counted(cluster.threadsPerWorker, "thread"), " per worker; ", addresses(cluster),
      hostsAndRoles(cluster), grouped(facts.trainingRecords), " training and ",
      grouped(facts.validationRecords), " validation records; ", experiment.globalBatchSize(),
      " images per step, ", fixedPoint(perEpoch, 2), " steps per epoch, ",
      grouped(facts.steps(experiment)), " steps in all\n", views(experiment.data), bits(experiment),
      crowd(cluster), precision(experiment, facts.graph));
  return kj::str("# every value used\n\n", loaded.resolved, "\n# roles\n\n", form.lines(roles),
      "\n# layers\n\n", layers(facts.graph, form), "\n# updates\n\n",
      updates(experiment, facts, form), "\n# store\n\n",
      store(experiment, facts, links, itself, form), "\n# memory\n\n",
      form.lines(kj::str("a worker's program: ", memory(program), "\n", cache(experiment))));
}

kj::String explain(const LoadedRuns& all, const kj::Maybe<Links>& links, kj::Maybe<uint> columns) {
  auto first = explain(all.runs[0].loaded, links, columns);
  if (all.sweep == nullptr) return first;
  kj::Vector<kj::String> lines;
  for (size_t i: kj::indices(all.runs)) lines.add(kj::str(i + 1, "  ", all.runs[i].name, "\n"));
  return kj::str("# ", counted(lines.size(), "run"), "\n\n", kj::strArray(lines, ""),
      "\nWhat follows is run 1.\n\n", first);
}

}  // namespace runner
