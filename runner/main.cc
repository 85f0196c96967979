// runner: reads one experiment file, brings up its roles, trains, and writes logs and tables. Read
// this first: every command of the program is one method below.
#include <errno.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <kj/main.h>
#include <kj/map.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "configs/language/failure.h"
#include "io/datasets/datasets.h"
#include "runner/commands/explain.h"
#include "runner/commands/role_command.h"
#include "runner/commands/run_command.h"
#include "runner/commands/update_plan.h"
#include "runner/experiment/devices.h"
#include "runner/experiment/experiment.h"
#include "runner/experiment/model_facts.h"
#include "runner/launch/launchers.h"
#include "runner/launch/progress.h"
#include "runner/logs/role_names.h"
#include "runner/logs/run_folder.h"
#include "runner/roles/trace_file.h"
#include "runner/sweep/loaded_runs.h"
#include "runner/sweep/run_errors.h"
#include "runner/system/command_line.h"
#include "runner/system/files.h"
#include "runner/system/interrupts.h"
#include "runner/system/reason.h"
#include "runner/system/terminal.h"
#include "runner/system/version.h"
#include "runner/tables/find_runs.h"

namespace runner {

namespace {

// Whether `word` may be the address of a coordinator, such as 127.0.0.1:41234: a host, and a port
// from 1 to 65535. Does not look the host up.
bool isHostAndPort(kj::StringPtr word) {
  KJ_IF_MAYBE(colon, word.findLast(':')) {
    auto port = word.slice(*colon + 1);
    if (*colon == 0 || port.size() == 0 || port.size() > 5) return false;
    uint number = 0;
    for (char digit: port) {
      if (digit < '0' || digit > '9') return false;
      number = 10 * number + (digit - '0');
    }
    return number >= 1 && number <= 65535;
  }
  return false;
}

// Why no folder can be at `path`: a file is there, or on the way to it. Null if one can.
kj::Maybe<kj::String> whyNoFolder(kj::StringPtr path) {
  struct stat about;
  bool isThere = ::stat(path.cStr(), &about) == 0;
  if (isThere ? S_ISDIR(about.st_mode) : errno != ENOTDIR) return nullptr;
  return kj::str("`", path, "` is ", isThere ? "" : "below ", "a file; name a folder");
}

class Main {
public:
  explicit Main(CommandLine& commandLine): commandLine(commandLine) {}

  kj::MainFunc getMain() {
    kj::MainBuilder builder(commandLine, VERSION,
        "Trains image classifiers: one TOML file describes model, data, kvstore mode and roles.\n"
        "\n"
        "  runner check configs/cifar10_dist_sync.toml\n"
        "  runner run configs/cifar10_dist_sync.toml --set train.epochs=1");
    auto add = [&](kj::StringPtr name, kj::Function<kj::MainFunc()> command, kj::StringPtr doc) {
      commandLine.addCommand(name);
      // A role that a launcher starts is the launcher's to end.
      bool isRole = name == "role";
      auto begin = [isRole, command = kj::mv(command)]() mutable {
        if (!isRole) {
          endAtInterrupt("\ninterrupted; all processes have ended\n", &io::isImporting);
        }
        return command();
      };
      builder.addSubCommand(name, kj::mv(begin), doc);
    };
    add("check", KJ_BIND_METHOD(*this, checkMain), "report all errors of a file");
    add("explain", KJ_BIND_METHOD(*this, explainMain), "show the resolved plan");
    add("run", KJ_BIND_METHOD(*this, runMain), "run it and print the table");
    add("table", KJ_BIND_METHOD(*this, tableMain),
        "print the table of runs, and write their report");
    add("role", KJ_BIND_METHOD(*this, roleMain), "run one role of a job");
    add("devices", KJ_BIND_METHOD(*this, devicesMain), "show what this machine can compute on");
    add("reference", KJ_BIND_METHOD(*this, referenceMain),
        "print the reference of the language of experiment files");
    return builder.build();
  }

private:
  // ---- runner check

  kj::MainFunc checkMain() {
    kj::MainBuilder builder(commandLine, VERSION,
        "Reads FILE and reports everything that is wrong with it. Starts nothing.\n"
        "\n"
        "  runner check configs/cifar10_local.toml --set data.batch_size=256");
    return withFile(builder).callAfterParsing(KJ_BIND_METHOD(*this, check)).build();
  }

  kj::MainBuilder::Validity check() {
    auto all = loadAll();
    requireSources(all);
    bool open = mustLook(all);
    printWrapped(kj::str(file, open ? ": OK so far" : ": fine",
        all.sweep == nullptr ? kj::str() : kj::str(", ", counted(all.runs.size(), "run")),
        open ? "; image shapes are checked once the data is imported" : "", "\n"));
    return true;
  }

  // ---- runner explain

  kj::MainFunc explainMain() {
    kj::MainBuilder builder(commandLine, VERSION,
        "Shows what FILE resolves to: every value used, the layers with shapes, parameters and "
        "FLOPs, the deal of keys over servers, bytes and memory. Starts nothing.\n"
        "\n"
        "  runner explain configs/cifar10_dist_sync.toml\n"
        "  runner explain configs/cifar10_dist_sync.toml --bandwidth 1000 --overhead 12");
    return withFile(builder)
        .addOptionWithArg({"bandwidth"}, amountSetter(bandwidth_mbit, false), "MBIT",
            "Mbit/s each way of a host's link: tells how long a step's pushes and pulls take")
        .addOptionWithArg({"overhead"}, amountSetter(overhead_ms, true), "MS",
            "fixed network time per step in ms, added to the transfer time; `bench network` "
            "measures "
            "it (default: 0)")
        .callAfterParsing(KJ_BIND_METHOD(*this, explainFile))
        .build();
  }

  kj::MainBuilder::Validity explainFile() {
    if (bandwidth_mbit == 0 && overhead_ms > 0) {
      return kj::str("--overhead needs --bandwidth MBIT: it is added to the transfer time");
    }
    auto all = loadAll();
    if (!areRecordsKnown(all)) prepareData(all);
    kj::Maybe<Links> links;
    if (bandwidth_mbit > 0) links = Links{.mbit = bandwidth_mbit, .overhead_ms = overhead_ms};
    print(explain(all, links, terminalColumns(STDOUT_FILENO)));
    return true;
  }

  static kj::Function<kj::MainBuilder::Validity(kj::StringPtr)> amountSetter(
      double& to, bool mayBeZero) {
    return [&to, mayBeZero](kj::StringPtr word) -> kj::MainBuilder::Validity {
      char* end;
      to = strtod(word.cStr(), &end);
      bool isLargeEnough = mayBeZero ? to >= 0 : to > 0;
      if (word.size() > 0 && *end == '\0' && isLargeEnough && to < 1e9) return true;
      return kj::str("`", word, "` is not a number ", mayBeZero ? "of at least 0" : "above 0",
          " and below 1000000000");
    };
  }

  // ---- runner run

  kj::MainFunc runMain() {
    kj::MainBuilder builder(commandLine, VERSION,
        "Runs the experiment in FILE in a new folder RUNS/<name>/<n>, shows its log and progress, "
        "and prints the result table. A sweep runs in one folder a run, named by its settings, and "
        "skips what is finished. Ctrl-C ends it with exit code 130 and leaves no process.\n"
        "\n"
        "  runner run configs/fashion_mnist_dist_sync.toml\n"
        "  runner run configs/cifar10_local.toml --set train.epochs=2 --runs /tmp/runs\n"
        "  runner run configs/fashion_mnist_dist_sync.toml --sweep data.batch_size=64,128");
    return withFile(builder)
        .addOptionWithArg({"runs"}, KJ_BIND_METHOD(*this, setRuns), "DIR",
            "where the folders of runs are (default: runs)")
        .addOptionWithArg({"trace"}, KJ_BIND_METHOD(*this, setTrace), "FILE",
            "record what each role does when, for Perfetto (https://ui.perfetto.dev)")
        .addOptionWithArg({"trace-steps"}, KJ_BIND_METHOD(*this, setTraceSteps), "A-B",
            "record only these steps, counted from 0 (default: as many as fit into the buffer)")
        .callAfterParsing(KJ_BIND_METHOD(*this, run))
        .build();
  }

  kj::MainBuilder::Validity run() {
    auto all = loadAll();
    kj::Maybe<TraceOrder> trace;
    if (tracePath.size() > 0) {
      if (all.sweep != nullptr) return kj::str("--trace is for a single run, and this is a sweep");
      trace = TraceOrder{traceSteps.orDefault(rpc::TraceSteps()), tracePath};
    } else if (traceSteps != nullptr) {
      return kj::str("--trace-steps needs --trace FILE");
    }
    prepareData(all, all.sweep != nullptr);
    KJ_IF_MAYBE(order, trace) {
      auto& experiment = KJ_ASSERT_NONNULL(all.runs[0].loaded.experiment);
      auto made = ModelFacts(experiment).steps(experiment);
      KJ_IF_MAYBE(why, whyNoTrace(order->steps, made, order->path, "--trace FILE")) {
        return kj::mv(*why);
      }
    }
    warnOf(all.runs);
    runExperiment(all, runs, trace, commandLine);
  }

  // ---- runner table

  kj::MainFunc tableMain() {
    return kj::MainBuilder(commandLine, VERSION,
        "Prints the table of the runs in RUNS: folders of runs, or folders that hold such. Writes "
        "table.md, table.csv and report.html to DIR; without --into to RUNS, if that is one "
        "folder.\n"
        "\n"
        "  runner table runs/fashion_mnist_dist_sync\n"
        "  runner table runs/cifar10_dist_sync/1 runs/cifar10_dist_async/1 --into both")
        .addOptionWithArg({"into"}, KJ_BIND_METHOD(*this, setFolder), "DIR",
            "the folder to write to: made if it is not there")
        .expectOneOrMoreArgs("RUNS", KJ_BIND_METHOD(*this, addRuns))
        .callAfterParsing(KJ_BIND_METHOD(*this, table))
        .build();
  }

  kj::MainBuilder::Validity table() {
    kj::Vector<kj::String> errors;
    auto runs = readRuns(runsNamed, errors);
    for (auto& each: errors) commandLine.error(each);
    if (runs.size() == 0) commandLine.endWith(WRONG_INPUT);
    orEnd([&]() {
      if (folder.size() > 0) makeFolders(folder, OTHER_REPORT);
    });
    for (auto& each: runsNamed) {
      KJ_IF_MAYBE(sentence, notBegunIn(each)) commandLine.warning(*sentence);
    }
    if (folder.size() == 0 && runsNamed.size() == 1) folder = kj::str(runsNamed[0]);
    auto code = showRuns(kj::mv(runs), folder);
    commandLine.endWith(errors.size() > 0 ? WRONG_INPUT : code);
  }

  // ---- runner role

  kj::MainFunc roleMain() {
    return kj::MainBuilder(commandLine, VERSION,
        "Runs one role of the job described by FILE. Start all roles on one machine, with the same "
        "file. The coordinator makes its folder, says where it listens, shows the log of the run, "
        "prints its table and leaves its report, as `runner run` does, and ends with the same exit "
        "codes. A server or worker that ends because another role was lost has exit code 75.\n"
        "\n"
        "  runner role x.toml --role coordinator --folder /tmp/run\n"
        "  runner role x.toml --role server --index 0 --coordinator 127.0.0.1:41234\n"
        "  runner role x.toml --role worker --index 0 --coordinator 127.0.0.1:41234")
        .addOptionWithArg(
            {"role"}, KJ_BIND_METHOD(*this, setRole), "ROLE", "coordinator, server or worker")
        .addOptionWithArg({"index"}, KJ_BIND_METHOD(*this, setIndex), "N",
            "which server or worker, from 0: its rank (default: 0); of several servers in a "
            "process the "
            "first")
        .addOptionWithArg({"coordinator"}, KJ_BIND_METHOD(*this, setCoordinator), "ADDRESS",
            "where the coordinator listens")
        .addOptionWithArg({"folder"}, KJ_BIND_METHOD(*this, setFolder), "DIR",
            "the coordinator's run folder: made if it is not there, and it may hold no run; where "
            "a "
            "role leaves its trace")
        .addOptionWithArg({"trace-steps"}, KJ_BIND_METHOD(*this, setTraceSteps), "A-B",
            "record what it does in these steps, from 0, and leave it in DIR")
        .addOption({"until-stdin-closes"}, KJ_BIND_METHOD(*this, setUntilStdinCloses),
            "end at once when standard input closes")
        .addOption({"launched"}, KJ_BIND_METHOD(*this, setLaunched),
            "a launcher started this role and records how the run ends: the coordinator prints its "
            "events as lines of JSON, and the others only what goes wrong")
        .expectArg("FILE", KJ_BIND_METHOD(*this, setFile))
        .callAfterParsing(KJ_BIND_METHOD(*this, runOneRole))
        .build();
  }

  kj::MainBuilder::Validity runOneRole() {
    KJ_IF_MAYBE(r, role) {
      if (*r != Role::COORDINATOR && coordinator.size() == 0) {
        return kj::str("a ", roleWord(*r), " needs --coordinator ADDRESS");
      }
      if (*r == Role::COORDINATOR && index > 0) {
        return kj::str("a coordinator takes no --index N: a job has one coordinator");
      }
      if (*r == Role::COORDINATOR && folder.size() == 0) {
        return kj::str("a coordinator needs --folder DIR");
      }
      if (*r == Role::COORDINATOR && coordinator.size() > 0) {
        return kj::str(
            "a coordinator takes no --coordinator ADDRESS: it listens on a free port of "
            "127.0.0.1 and says which, since all roles run on one machine");
      }
      if (traceSteps != nullptr && folder.size() == 0) {
        return kj::str("a role leaves its trace in a folder: --folder DIR");
      }
      if (untilStdinCloses) endWithStdin();
      if (!launched) {
        nameFolderOption();
        endAtInterrupt("\ninterrupted\n");
      }
      auto loaded = load();
      RoleOptions options{*r, index, kj::mv(coordinator), {kj::mv(folder)}, traceSteps, launched};
      KJ_IF_MAYBE(why, runRoles(loaded, options, commandLine)) return kj::mv(*why);
      return true;
    }
    return kj::str("--role is missing");
  }

  // ---- runner devices

  kj::MainFunc devicesMain() {
    return kj::MainBuilder(commandLine, VERSION,
        "Shows what this machine and program can compute on: the processor's instruction set, and "
        "each GPU, or why there is none.")
        .callAfterParsing([]() -> kj::MainBuilder::Validity {
          printWrapped(describeDevices());
          return true;
        })
        .build();
  }

  // ---- runner reference

  kj::MainFunc referenceMain() {
    return kj::MainBuilder(commandLine, VERSION,
        "Prints the reference of the language of experiment files: configs/REFERENCE.md.")
        .callAfterParsing([]() -> kj::MainBuilder::Validity {
          print(languageReference());
          return true;
        })
        .build();
  }

  // ---- what they share

  // FILE, and what is laid over it.
  kj::MainBuilder& withFile(kj::MainBuilder& builder) {
    return builder
        .addOptionWithArg({"set"}, KJ_BIND_METHOD(*this, addOverride), "KEY=VALUE",
            "override a value of the file, e.g. --set train.epochs=2; may be repeated")
        .addOptionWithArg({"sweep"}, KJ_BIND_METHOD(*this, addSweep), "KEY=V1,V2",
            "run it for each of these values, e.g. --sweep data.batch_size=64,128, or for those of "
            "a range, in place of the values that the file's grid has for the key; with several, "
            "for every combination")
        .expectArg("FILE", KJ_BIND_METHOD(*this, setFile));
  }

  // The file of one run, without errors: with errors the program ends here.
  LoadedExperiment load() {
    checkFile();
    LoadedExperiment loaded;
    orEnd([&]() { loaded = loadExperiment(file, overrides, terminalColumns(STDERR_FILENO)); });
    if (loaded.experiment == nullptr) commandLine.exitError(loaded.errors);
    return loaded;
  }

  // The file with all its runs, likewise.
  LoadedRuns loadAll() {
    checkFile();
    LoadedRuns all;
    orEnd([&]() { all = loadRuns(file, overrides, sweeps, terminalColumns(STDERR_FILENO)); });
    if (all.errors.size() > 0) commandLine.exitError(all.errors);
    return all;
  }

  void checkFile() {
    char folder[PATH_MAX];
    if (::getcwd(folder, sizeof(folder)) == nullptr && errno == ENOENT) {
      commandLine.exitError(
          "error: the current folder was removed: change to one that exists (`cd`)");
    }
    struct stat about;
    if (::access(file.cStr(), R_OK) != 0 || ::stat(file.cStr(), &about) != 0) {
      commandLine.exitError(kj::str("error: cannot read ", file, ": ", strerror(errno)));
    }
    if (!S_ISREG(about.st_mode)) {
      commandLine.exitError(kj::str("error: ", file,
          S_ISDIR(about.st_mode) ? " is a directory" : " is not a regular file",
          "; give the path of a .toml file"));
    }
  }

  // Ends the program if a run has no place to take its images from.
  void requireSources(const LoadedRuns& all) {
    configs::Diagnostics diagnostics;
    for (auto& run: all.runs) {
      configs::Diagnostics own;
      io::requireSource(KJ_ASSERT_NONNULL(run.loaded.experiment).data, own);
      diagnostics.addNew(own);
    }
    if (diagnostics.count() > 0) commandLine.exitError(diagnostics.format(file));
  }

  // Whether a run's shapes are known from its data set's records alone.
  static bool mustLook(const LoadedRuns& all) {
    for (auto& run: all.runs) {
      if (io::factsOf(KJ_ASSERT_NONNULL(run.loaded.experiment).data) == nullptr) return true;
    }
    return false;
  }

  static bool areRecordsKnown(const LoadedRuns& all) {
    for (auto& run: all.runs) {
      if (!io::areRecordsKnown(KJ_ASSERT_NONNULL(run.loaded.experiment).data)) return false;
    }
    return true;
  }

  // The command is wrong if it names a file that cannot be read, a folder without runs, or one that
  // cannot be made.
  template <typename Func>
  void orEnd(Func&& read) {
    KJ_IF_MAYBE(e, kj::runCatchingExceptions(read)) {
      commandLine.exitError(kj::str("error: ", reasonOf(*e)));
    }
  }

  // Fetches and imports a data set, with progress and warnings. Ends the program at an interrupt.
  void prepare(const io::DataConfig& config, kj::FunctionParam<void(kj::StringPtr)> warn) {
    ProgressLine line(STDERR_FILENO);
    KJ_DEFER(line.clear());
    bool warned = false;
    kj::Own<io::Dataset> dataset;
    auto problem = kj::runCatchingExceptions([&]() {
      dataset = io::openDataset(
          config,
          [&](kj::StringPtr what, uint64_t done, uint64_t total) {
            if (isInterrupted()) configs::fail("interrupted");
            line.show(progressText(what, done, total));
          },
          [&](kj::StringPtr sentence) {
            warned = true;
            line.clear();
            warn(sentence);
          });
    });
    line.clear();
    if (isInterrupted()) endInterrupted();
    KJ_IF_MAYBE(e, problem) kj::throwFatalException(kj::mv(*e));
    // An earlier command imported it.
    if (!warned) {
      for (auto& sentence: dataset->leftOut()) warn(sentence);
    }
    bool validates = config.validateOn == io::ValidationSet::VALIDATION;
    if (validates && dataset->validation().count() == 0) {
      warn(kj::str("the data set has no validation records, so its runs have no ",
          "validation accuracy: of an image folder every tenth image is for validation, and ",
          "this one has ", dataset->training().count()));
    }
  }

  // Before any role starts, so that none waits for another's download. What only the records can
  // tell of an experiment is checked here. Throws if the data of a run cannot be had; where
  // `mayFail`, it does so only if that is true of all runs, and leaves it with those of which it
  // is.
  void prepareData(LoadedRuns& all, bool mayFail = false) {
    auto runs = all.runs.asPtr();
    configs::Diagnostics diagnostics;
    // Runs may differ in [data] and have the same records: each sentence is told once.
    kj::HashSet<kj::String> told;
    auto warnOnce = [&](kj::StringPtr sentence) {
      if (told.contains(sentence)) return;
      commandLine.warning(sentence);
      told.insert(kj::str(sentence));
    };
    // The lines of [data] of each data set, and why it cannot be had.
    kj::HashMap<kj::String, kj::Maybe<kj::String>> prepared;
    auto endIfWrong = [&]() {
      if (diagnostics.count() > 0) {
        commandLine.exitError(diagnostics.format(file, terminalColumns(STDERR_FILENO)));
      }
    };
    requireSources(all);
    for (auto& run: runs) {
      configs::Diagnostics own;
      requireMachineFor(KJ_ASSERT_NONNULL(run.loaded.experiment), own);
      diagnostics.addNew(own);
    }
    endIfWrong();
    RunErrors errors;
    for (auto& run: runs) {
      auto& experiment = KJ_ASSERT_NONNULL(run.loaded.experiment);
      auto data = dataSection(run.loaded.resolved);
      KJ_IF_MAYBE(earlier, prepared.find(data)) {
        KJ_IF_MAYBE(why, *earlier) run.problem = kj::str(*why);
      } else {
        KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { prepare(experiment.data, warnOnce); })) {
          // One that fails ends no other.
          if (!mayFail) kj::throwFatalException(kj::mv(*e));
          run.problem = reasonOf(*e);
        }
        kj::Maybe<kj::String> problem;
        KJ_IF_MAYBE(why, run.problem) problem = kj::str(*why);
        prepared.insert(kj::mv(data), kj::mv(problem));
      }
      if (run.problem != nullptr) continue;
      configs::Diagnostics own;
      checkAgainst(experiment, datasetFacts(experiment.data), own);
      errors.add(run.settings, kj::mv(own));
    }
    errors.tell(all.shortKeys, diagnostics);
    endIfWrong();
    bool allFail = true;
    for (auto& run: runs) allFail = allFail && run.problem != nullptr;
    if (allFail) {
      KJ_IF_MAYBE(why, runs[0].problem) configs::fail(*why);
    }
    addRecords(all);
  }

  // What is allowed, but hardly meant: each sentence once.
  void warnOf(kj::ArrayPtr<const LoadedRun> runs) {
    kj::HashSet<kj::String> told;
    for (auto& run: runs) {
      if (run.problem != nullptr) continue;
      auto& experiment = KJ_ASSERT_NONNULL(run.loaded.experiment);
      for (auto& sentence: endlessWarmUps(experiment, ModelFacts(experiment))) {
        if (told.contains(sentence)) continue;
        commandLine.warning(sentence);
        told.insert(kj::mv(sentence));
      }
    }
  }

  // The lines of [data] in a resolved experiment: of runs with the same, the data are prepared
  // once.
  static kj::String dataSection(kj::StringPtr resolved) {
    kj::StringPtr rest = strstr(resolved.cStr(), "\n[data]\n");
    auto end = strstr(rest.cStr() + 1, "\n[");
    return kj::heapString(rest.begin(), end == nullptr ? rest.size() : end - rest.begin());
  }

  // A launcher that dies closes our standard input. A thread of its own sees that whatever the
  // others do.
  static void endWithStdin() {
    kj::Thread([]() {
      char byte;
      ssize_t n;
      do {
        n = ::read(STDIN_FILENO, &byte, 1);
      } while (n > 0 || (n < 0 && errno == EINTR));
      ::_exit(RUN_FAILED);
    }).detach();
  }

  kj::MainBuilder::Validity setFile(kj::StringPtr word) {
    file = kj::str(word);
    return true;
  }
  kj::MainBuilder::Validity addOverride(kj::StringPtr word) {
    if (word.findFirst('=') == nullptr) return kj::str("write --set KEY=VALUE");
    overrides.add(word);
    return true;
  }
  kj::MainBuilder::Validity addSweep(kj::StringPtr word) {
    if (word.findFirst('=') == nullptr) return kj::str("write --sweep KEY=V1,V2");
    auto keyOf = [](kj::StringPtr text) {
      return text.slice(0, text.findFirst('=').orDefault(text.size()));
    };
    for (auto other: sweeps) {
      if (keyOf(other) != keyOf(word)) continue;
      return kj::str("--sweep names ", keyOf(word), " twice: write all its values in one --sweep");
    }
    sweeps.add(word);
    return true;
  }
  kj::MainBuilder::Validity setRuns(kj::StringPtr word) {
    // A path that is put behind an empty one begins at the root.
    if (word.size() == 0) return kj::str("name a folder, e.g. --runs runs");
    KJ_IF_MAYBE(why, whyNoFolder(word)) return kj::mv(*why);
    runs = kj::str(word);
    return true;
  }
  kj::MainBuilder::Validity setTrace(kj::StringPtr word) {
    if (word.size() == 0) return kj::str("name a file, e.g. --trace trace.json");
    tracePath = kj::str(word);
    return true;
  }
  kj::MainBuilder::Validity setTraceSteps(kj::StringPtr word) {
    traceSteps = parseTraceSteps(word);
    if (traceSteps == nullptr) {
      return kj::str("write --trace-steps A-B with A up to B, e.g. 100-199");
    }
    return true;
  }
  kj::MainBuilder::Validity addRuns(kj::StringPtr word) {
    if (word.size() == 0) return kj::str("name a folder, e.g. runs/fashion_mnist_dist_sync");
    runsNamed.add(kj::str(word));
    return true;
  }
  kj::MainBuilder::Validity setRole(kj::StringPtr word) {
    for (auto each: {Role::COORDINATOR, Role::SERVER, Role::WORKER}) {
      if (word == roleWord(each)) {
        role = each;
        return true;
      }
    }
    return kj::str("there is no role `", word, "` (coordinator, server, worker)");
  }
  kj::MainBuilder::Validity setIndex(kj::StringPtr word) {
    constexpr uint INDEX_MAX = 1000000;
    char* end;
    long n = strtol(word.cStr(), &end, 10);
    if (word.size() == 0 || *end != '\0' || n < 0 || n > long(INDEX_MAX)) {
      return kj::str("`", word, "` is not a whole number from 0 to ", INDEX_MAX);
    }
    index = n;
    return true;
  }
  kj::MainBuilder::Validity setCoordinator(kj::StringPtr word) {
    if (!isHostAndPort(word)) {
      return kj::str("`", word,
          "` is not HOST:PORT with a port from 1 to 65535; the coordinator "
          "says where it listens, e.g. 127.0.0.1:41234");
    }
    coordinator = kj::str(word);
    return true;
  }
  kj::MainBuilder::Validity setFolder(kj::StringPtr word) {
    if (word.size() == 0) return kj::str("name a folder, e.g. /tmp/runs");
    KJ_IF_MAYBE(why, whyNoFolder(word)) return kj::mv(*why);
    folder = kj::str(word);
    return true;
  }
  kj::MainBuilder::Validity setUntilStdinCloses() {
    untilStdinCloses = true;
    return true;
  }
  kj::MainBuilder::Validity setLaunched() {
    launched = true;
    return true;
  }

  CommandLine& commandLine;
  kj::String file;
  kj::Vector<kj::StringPtr> overrides;
  kj::Vector<kj::StringPtr> sweeps;
  kj::String runs = kj::str("runs");
  kj::Vector<kj::String> runsNamed;
  kj::String tracePath;
  kj::Maybe<rpc::TraceSteps> traceSteps;
  kj::Maybe<Role> role;
  uint index = 0;
  kj::String coordinator;
  kj::String folder;
  bool untilStdinCloses = false;
  bool launched = false;
  double bandwidth_mbit = 0;  // of explain; 0: not told
  double overhead_ms = 0;
};

}  // namespace
}  // namespace runner

int main(int argc, char* argv[]) {
  // Before the streams are opened: the program that it starts must see which are closed.
  runner::setThreadEnvironment(argv);
  runner::openStandardStreams();
  runner::CommandLine commandLine("runner");
  runner::Main main(commandLine);
  commandLine.run(main.getMain(), argc, argv, runner::LOST_A_PEER_EXIT);
}
