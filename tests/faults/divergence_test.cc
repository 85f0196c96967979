// Runs whose values become infinite or NaN fail, even if a layer hides that from the loss.
#include <doctest/doctest.h>

#include "tests/faults/failure.h"

namespace tests {
namespace {

TEST_CASE("a value that is not a number passes through ReLU to the loss, and ends the run") {
  Run run("tests/faults/short.toml", {"data.augment.deviation=[1e-300]"});
  auto ended = run.command.wait();
  checkFailed(ended,
      {"worker", "the loss is", "at step 1 (epoch 1)", "before the first update of this worker",
          "data.augment.scale, mean and deviation"});
  checkRecorded(run, ended);
}

TEST_CASE("a run whose losses are finite fails if its moving statistics are not") {
  // The variance of values around 1e20 is infinite, and all that comes out of batch norm is 0.
  Run run("tests/faults/overflow.toml");
  checkFailed(run.command.wait(),
      {"worker 0", "_moving_var` holds inf at the end of the run", "training diverged"});
}

}  // namespace
}  // namespace tests
