#include "runner/commands/scale_command.h"

#include <capnp/message.h>
#include <kj/async-io.h>
#include <stdio.h>

#include "configs/language/failure.h"
#include "runner/commands/followed_run.h"
#include "runner/commands/launched_runs.h"
#include "runner/experiment/experiment.h"
#include "runner/launch/run_view.h"
#include "runner/logs/run_log.h"
#include "runner/system/interrupts.h"
#include "runner/system/terminal.h"
#include "runner/system/version.h"
#include "runner/text/numbers.h"

namespace runner {

namespace {

constexpr auto LOOK_INTERVAL = 100 * kj::MILLISECONDS;

// How many workers a run has, by its events.
class PresentWorkers {
public:
  PresentWorkers(const RunFolder& folder, uint begin): events(folder.events()), count(begin) {
    look([](Event::Reader) {});
  }

  // Passes the changes since the last call to `show`. Returns how many workers there are now.
  uint look(kj::FunctionParam<void(Event::Reader)> show) {
    text = kj::str(text, events.more());
    while (true) {
      KJ_IF_MAYBE(length, text.findFirst('\n')) {
        capnp::MallocMessageBuilder message;
        auto event = message.initRoot<Event>();
        auto line = kj::heapString(text.slice(0, *length));
        text = kj::str(text.slice(*length + 1));
        parseEvent(line, event);
        if (!event.isMembership()) continue;
        count = event.getMembership().getWorkers();
        show(event);
      } else {
        return count;
      }
    }
  }

private:
  GrowingFile events;
  kj::String text;  // the begin of a line
  uint count;
};

// Throws, with the way out, if the run cannot have `count` workers.
void check(const RunFolder& folder, const ClusterConfig& cluster, uint count) {
  if (!cluster.onLoss->continues) {
    configs::fail(folder.path, " has cluster.on_loss = \"", cluster.onLoss->name,
        "\". Only a run with \"continue\" changes its workers while it trains");
  }
  if (cluster.launcher->word != LauncherKind::LOCAL) {
    configs::fail(folder.path, " has launcher = \"", cluster.launcher->name,
        "\". Only a run with \"local\" changes its workers while it trains");
  }
  auto& [min, max] = cluster.elastic;
  if (count >= min && count <= max) return;
  configs::fail(folder.path, " may have ", min, " to ", counted(max, "worker"),
      " (cluster.elastic), and not ", count,
      ". Stop it, and go on with `runner run FILE --resume` and another cluster.elastic");
}

}  // namespace

kj::MainFunc ScaleCommand::getMain() {
  return kj::MainBuilder(commandLine, VERSION,
      "Changes how many workers a run has while it trains, and waits until it has them. The run "
      "needs cluster.on_loss = \"continue\", and cluster.elastic says how many workers it may "
      "have. Workers leave and join between two steps. RUN is the folder of a run, or that of an "
      "experiment: then its newest run. Ctrl-C ends this command only.\n"
      "\n"
      "  runner scale runs/fashion_mnist_dist_sync 4")
      .expectArg("RUN", textSetter(path, "name a folder, e.g. runs/fashion_mnist_dist_sync"))
      .expectArg("WORKERS", KJ_BIND_METHOD(*this, setCount))
      .callAfterParsing(KJ_BIND_METHOD(*this, scale))
      .build();
}

Validity ScaleCommand::setCount(kj::StringPtr word) {
  int length = 0;
  if (::sscanf(word.cStr(), "%9u%n", &count, &length) == 1 && size_t(length) == word.size()) {
    return true;
  }
  return kj::str("write a number of workers, e.g. 4");
}

Validity ScaleCommand::scale() {
  auto folder = launchedRun(path);
  if (isSweep(folder)) {
    configs::fail(folder.path, " is a sweep: name one of its runs, e.g. ", folder.path, "/1");
  }
  if (!isHeld(folder)) configs::fail(folder.path, " is over: ", endOf(folder).text);
  auto loaded = loadExperiment(folder.experiment(), nullptr);
  KJ_IF_MAYBE(experiment, loaded.experiment) {
    auto& cluster = experiment->cluster;
    check(folder, cluster, count);
    PresentWorkers workers(folder, cluster.workers);
    wantWorkers(folder, count);
    lastWords = kj::str(
        "\nleft ", folder.path, ", which goes on and still wants ", counted(count, "worker"), "\n");
    endAtInterrupt(lastWords);
    auto io = kj::setupAsyncIo();
    while (workers.look([](Event::Reader event) { tell(changeText(event)); }) != count) {
      if (!isHeld(folder)) configs::fail(folder.path, " is over: ", endOf(folder).text);
      io.provider->getTimer().afterDelay(LOOK_INTERVAL).wait(io.waitScope);
    }
    tell(kj::str(folder.path, " has ", counted(count, "worker")));
    return true;
  }
  configs::fail(folder.experiment(), " is not the file of a run any more: ", loaded.errors);
}

}  // namespace runner
