#include "runner/experiment/start_weights.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "configs/language/failure.h"
#include "io/checksum.h"
#include "io/records/mapped_file.h"
#include "runner/logs/run_folder.h"

namespace runner {

kj::Maybe<StartWeights> StartWeights::read(configs::Reader& reader) {
  StartWeights start;
  auto path = reader.maybePath("weights",
      "Trained weights with which the training starts, instead of initial values: a file "
      "(.safetensors, or .params of MXNet), or the folder of a run, whose last weights are used. "
      "Arrays are found by their names: see [docs/formats/weights.md](../docs/formats/weights.md). "
      "Every host that runs a worker needs the file at this path.",
      true);  // each new run moves the link `last` to itself
  start.span = reader.span("weights");
  // The resolved experiment leaves the key out if the file does not have it.
  if (reader.isManual() || reader.has("skip")) {
    start.skip = reader.texts("skip",
        "With `weights`: names of arrays that are not taken from the file and keep their initial "
        "values, such as `fc*` for a last layer with other classes. `*` matches any characters, or "
        "none.");
  }
  start.skipSpan = reader.span("skip");
  KJ_IF_MAYBE(own, path) {
    if (own->size() == 0) {
      reader.error("weights", "`weights` is empty", "name a file or a run, or leave it out");
    }
    start.path = kj::mv(*own);
    return kj::mv(start);
  }
  if (start.skip.size() > 0 && !reader.isManual()) {
    reader.error(
        "skip", "`skip` has no effect without `weights`", "set `weights`, or leave `skip` out");
  }
  return nullptr;
}

kj::String weightsPathOf(kj::StringPtr path) {
  struct stat about;
  if (::stat(path.cStr(), &about) != 0) {
    configs::fail("cannot find the weights ", path, ": ", strerror(errno),
        ". Name a file of weights, or the folder of a run, such as "
        "runs/fashion_mnist_dist_sync/1");
  }
  if (!S_ISDIR(about.st_mode)) return kj::str(path);
  RunFolder run{kj::str(path)};
  if (::stat(run.weights().cStr(), &about) == 0) return run.weights();
  if (errno != ENOENT) configs::fail("cannot read ", run.weights(), ": ", strerror(errno));
  bool isRun = ::stat(run.events().cStr(), &about) == 0;
  if (isRun) {
    configs::fail("the run ", path,
        " has no weights.safetensors: it has not finished, or the file was removed. `runner run "
        "FILE --resume` continues a run. best.safetensors in its folder has the best epoch so far, "
        "if checkpoint.keep_best was set");
  }
  // Of an experiment, `last` is its newest run.
  auto last = kj::str(path, path.endsWith("/") ? "" : "/", "last");
  bool hasRuns = ::stat(last.cStr(), &about) == 0;
  configs::fail(path, " is not a run: it has no events.jsonl. Name the folder of one run, such as ",
      hasRuns ? last.asPtr() : "runs/fashion_mnist_dist_sync/1"_kj, ", or a file of weights");
}

kj::String weightsSha256(const StartWeights& start) {
  auto path = weightsPathOf(start.path);
  auto lost = kj::str(path, " can no longer be read: it was cut short, or its disk fails");
  kj::String sum;
  auto read = [&]() { sum = io::sha256Hex(io::mapFile(path, lost)); };
  KJ_IF_MAYBE(e, kj::runCatchingExceptions(read)) {
    configs::fail("cannot read the weights ", path, ": ", e->getDescription());
  }
  return sum;
}

}  // namespace runner
