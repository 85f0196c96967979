#include "runner/commands/scale_command.h"

#include <capnp/message.h>
#include <kj/async-io.h>
#include <string_view>

#include "configs/language/failure.h"
#include "runner/commands/followed_run.h"
#include "runner/commands/launched_runs.h"
#include "runner/experiment/experiment.h"
#include "runner/launch/run_view.h"
#include "runner/logs/events.h"
#include "runner/logs/run_lock.h"
#include "runner/system/interrupts.h"
#include "runner/system/terminal.h"
#include "runner/system/version.h"
#include "runner/text/numbers.h"

namespace runner {

namespace {

constexpr auto LOOK_INTERVAL = 100 * kj::MILLISECONDS;

// How many workers a run has according to its events.
class PresentWorkers {
public:
  // The run began with `begin` workers.
  PresentWorkers(const RunFolder& folder, uint begin)
      : events(folder.events()), begin(begin), count(begin) {
    look([](Event::Reader) {});
  }

  // Passes the changes since the last call to `show`. Returns how many workers there are now.
  uint look(kj::FunctionParam<void(Event::Reader)> show) {
    auto more = events.more();
    // The run went back to a checkpoint, and keeps the events before it, which are known.
    bool isKnown = events.hasBegunAnew();
    if (isKnown) {
      text = nullptr;
      count = begin;
    }
    text = kj::str(text, more);
    kj::StringPtr rest = text;
    while (true) {
      KJ_IF_MAYBE(length, rest.findFirst('\n')) {
        take(rest.slice(0, *length), [&](Event::Reader event) {
          if (!isKnown) show(event);
        });
        rest = rest.slice(*length + 1);
      } else {
        text = kj::heapString(rest);
        return count;
      }
    }
  }

private:
  void take(kj::ArrayPtr<const char> line, kj::FunctionParam<void(Event::Reader)> show) {
    // A run has many more events of other kinds.
    std::string_view view(line.begin(), line.size());
    if (view.find("\"membership\":") == view.npos) return;
    capnp::MallocMessageBuilder message;
    auto event = message.initRoot<Event>();
    auto parse = [&]() { parseEvent(kj::heapString(line), event); };
    if (kj::runCatchingExceptions(parse) != nullptr) {
      configs::fail(events.path, " has a line that is not an event of a run: ", line,
          "; did another program change it?");
    }
    if (!event.isMembership()) return;
    count = event.getMembership().getWorkers();
    show(event);
  }

  GrowingFile events;
  kj::String text;  // the beginning of a line
  const uint begin;
  uint count;
};

// Returns why the run cannot have `count` workers, and what to do. Null if it can.
kj::Maybe<kj::String> whyNot(const RunFolder& folder, const ClusterConfig& cluster, uint count) {
  if (!cluster.onLoss->continues) {
    return kj::str(folder.path, " has cluster.on_loss = \"", cluster.onLoss->name,
        "\", so its workers cannot change while it trains. Stop it with `runner stop ", folder.path,
        "`, and continue with `runner run FILE --resume --set cluster.workers=", count, "`");
  }
  if (cluster.launcher->word != LauncherKind::LOCAL) {
    return kj::str(folder.path, " has launcher = \"", cluster.launcher->name,
        "\". Only a run with \"local\" changes its workers while it trains. Stop it with `runner "
        "stop ",
        folder.path, "`, and continue with `runner run FILE --resume --set cluster.workers=", count,
        "`");
  }
  KJ_IF_MAYBE(holder, lastHolderOf(folder)) {
    if (holder->startsNoRoles) {
      return kj::str("the coordinator of ", folder.path,
          " was started by hand, so no launcher starts or "
          "ends workers for it. Start one with `runner role FILE --role worker --index N "
          "--coordinator ADDRESS`, or end one with SIGTERM: the others continue");
    }
    if (holder->repeatsMembers) {
      return kj::str(folder.path, " repeats the workers of another run (--membership), so `runner ",
          "scale` cannot change them");
    }
  }
  auto& [min, max] = cluster.elastic;
  if (count >= min && count <= max) return nullptr;
  return kj::str(folder.path, " allows ", min, " to ", counted(max, "worker"),
      " (cluster.elastic), not ", count, ". Stop it with `runner stop ", folder.path,
      "`, change cluster.elastic, and continue with `runner run FILE --resume`");
}

}  // namespace

kj::MainFunc ScaleCommand::getMain() {
  return kj::MainBuilder(commandLine, VERSION,
      "Changes the number of workers of a run while it trains, and waits until the run has as many "
      "as WORKERS says. The run needs launcher local and cluster.on_loss = \"continue\". Its "
      "cluster.elastic limits the number of workers. Workers leave and join between two steps. RUN "
      "is the folder of a run, or the folder of an experiment, which stands for its newest run. "
      "Ctrl-C ends only this command, not the run.\n"
      "\n"
      "  runner scale runs/fashion_mnist_dist_sync 4")
      .expectArg("RUN", textSetter(path, "name a folder, e.g. runs/fashion_mnist_dist_sync"))
      .expectArg("WORKERS", KJ_BIND_METHOD(*this, setCount))
      .callAfterParsing(KJ_BIND_METHOD(*this, scale))
      .build();
}

Validity ScaleCommand::setCount(kj::StringPtr word) {
  KJ_IF_MAYBE(number, parseWhole(word, 999'999'999)) {
    count = *number;
    return true;
  }
  return kj::str("write a number of workers, e.g. 4");
}

Validity ScaleCommand::scale() {
  auto folder = launchedRun(path, commandLine);
  if (isSweep(folder)) {
    return kj::str(folder.path,
        " is a sweep. Name the folder of one of its runs: `runner ps` lists "
        "them");
  }
  if (!isHeld(folder)) configs::fail(folder.path, " is over: ", endOf(folder).text);
  auto loaded = loadExperiment(folder.experiment(), nullptr);
  KJ_IF_MAYBE(experiment, loaded.experiment) {
    auto& cluster = experiment->cluster;
    KJ_IF_MAYBE(why, whyNot(folder, cluster, count)) return kj::mv(*why);
    PresentWorkers workers(folder, cluster.workers);
    wantWorkers(folder, count);
    // Ctrl-C ends this command and not the run.
    endAtInterrupt(kj::str("\nleft ", folder.path, ", which continues, and will still change to ",
        counted(count, "worker"), "\n"));
    auto io = kj::setupAsyncIo();
    while (workers.look([](Event::Reader event) { tell(changeText(event)); }) != count) {
      if (!isHeld(folder)) configs::fail(folder.path, " is over: ", endOf(folder).text);
      uint wanted = wantedWorkers(folder).orDefault(count);
      if (wanted != count) {
        configs::fail("another `runner scale` has since asked for ", counted(wanted, "worker"),
            " in ", folder.path, ", so this command stops waiting");
      }
      io.provider->getTimer().afterDelay(LOOK_INTERVAL).wait(io.waitScope);
    }
    tell(kj::str(folder.path, " has ", counted(count, "worker")));
    return true;
  }
  configs::fail(folder.experiment(), " can no longer be read as a run's file: ", loaded.errors);
}

}  // namespace runner
