// The confusion matrix that a run leaves.
#include <doctest/doctest.h>

#include "tests/cluster/whole_runs.h"

namespace tests {
namespace {

TEST_CASE("confusion.csv is the same whoever validates, and is about the validation's images") {
  kj::StringPtr settings[] = {"train.steps=40", "cluster.launcher=inline", ""};
  auto with = [&](kj::StringPtr more) {
    settings[2] = more;
    return train(MLP, settings);
  };
  auto two = with("log.top_k=2");
  auto text = confusionOf(two);
  CHECK(text.startsWith("label,predicted,images\n0,0,"));
  // Every worker validates on all records, and one of them counts.
  auto whole = with("data.validation=whole");
  CHECK(whole.weightsSha256 == two.weightsSha256);
  CHECK(confusionOf(whole) == text);
  // One worker with two devices trains as two workers do.
  auto one =
      train(MLP, {"train.steps=40", "kvstore.mode=device", "cluster.servers=0", "cluster.workers=1",
                     "cluster.devices=[\"cpu\", \"cpu:1\"]", "data.batch_size=200"});
  CHECK(one.weightsSha256 == two.weightsSha256);
  CHECK(confusionOf(one) == text);
}

TEST_CASE("confusion.csv is about the records that are held out, if these are validated on") {
  auto run = train(MLP, {"train.steps=5", "data.validate_on=held_out", "data.held_out=1000",
                            "cluster.launcher=inline"});
  confusionOf(run);
}

}  // namespace
}  // namespace tests
