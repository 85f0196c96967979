#include "runner/tables/run_table.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "runner/system/files.h"
#include "tests/text.h"

namespace runner {
namespace {

// Returns the rows of the table, as CSV, that a run with these events has in the style `name`.
kj::String rows(kj::StringPtr name, kj::StringPtr events, uint topK = 0) {
  RunFolder folder{kj::str(::getenv("TEST_TMPDIR"), "/", name, topK)};
  REQUIRE(::mkdir(folder.path.cStr(), 0777) == 0);
  writeWhole(folder.events(), events);
  for (auto& style: LOG_STYLES) {
    if (name != style.name) continue;
    auto table = readRunTable(folder, style, topK);
    auto text =
        style.isBySteps() ? textOf(table.get<StepTable>()) : textOf(table.get<ResultTable>());
    auto csv = formatTable(text, TableFormat::CSV);
    return kj::str(csv.slice(KJ_ASSERT_NONNULL(csv.findFirst('\n')) + 1));
  }
  KJ_FAIL_REQUIRE("no style has this name", name);
}

TEST_CASE("readRunTable: in style mxnet, averages the rounded figures of all workers by epoch") {
  CHECK(rows("mxnet",
            R"({"role":"worker","index":0,"trained":{"epoch":1,"accuracy":0.10000051,"epoch_s":2}}
{"role":"worker","index":1,"trained":{"epoch":1,"accuracy":0.10000051,"epoch_s":3}}
{"role":"worker","index":2,"trained":{"epoch":1,"accuracy":0.1,"epoch_s":4}}
{"role":"worker","index":0,"validated":{"epoch":1,"accuracy":0.5}}
{"role":"worker","index":1,"trained":{"epoch":2,"accuracy":0.75,"epoch_s":4}}
)") == "1,0.100001,0.500000,3.0\n2,0.750000,,4.0\n");
}

TEST_CASE("readRunTable: the top-k accuracies are those of the run's own k") {
  CHECK(
      rows("mxnet",
          R"({"role":"worker","index":0,"validated":{"epoch":1,"accuracy":0.5,"top_k":3,"top_k_accuracy":0.75}}
{"role":"worker","index":0,"validated":{"epoch":2,"accuracy":0.5,"top_k":5,"top_k_accuracy":0.90000051}}
{"role":"worker","index":1,"validated":{"epoch":2,"accuracy":0.5,"top_k":5,"top_k_accuracy":0.90000051}}
)",
          5) == "1,,0.500000,,\n2,,0.500000,0.900001,\n");
}

TEST_CASE("readRunTable: in style tf_aws, has the figures of each batch, and steps at the end") {
  CHECK(
      rows("tf_aws",
          R"({"role":"worker","index":0,"speed":{"step":100,"global_step":95,"batch_loss":2.3,"batch_accuracy":0.125,"training_s":1.5}}
{"role":"worker","index":0,"ended":{"step":200,"global_step":190}}
)") == "100,95,2.3,0.125,0.016000\n200,190,,,\n");
}

TEST_CASE(
    "readRunTable: in style tf_replica, a batch takes the time since the worker's last line") {
  CHECK(rows("tf_replica",
            R"({"time_s":100,"role":"worker","index":0,"speed":{"step":1,"global_step":0}}
{"time_s":100.25,"role":"worker","index":1,"speed":{"step":1,"global_step":1}}
{"time_s":101,"role":"worker","index":0,"speed":{"step":3,"global_step":4}}
{"role":"worker","index":0,"validated":{"epoch":1,"loss":0.5,"images":100}}
{"role":"worker","index":0,"validated":{"epoch":1,"loss":0.5,"images":100,"global_step":6,"last":true}}
)") == "1,0,,,\n1,1,,,\n3,4,,,0.500000\n,6,50,,\n");
}

TEST_CASE("readRunTable: in style schlag, rounds costs, and ends with accuracy and cost") {
  CHECK(
      rows("schlag",
          R"({"role":"worker","index":0,"speed":{"step":100,"global_step":200,"batch_loss":2.91334,"interval_s":0.31141,"batches":100}}
{"role":"worker","index":0,"ended":{"batch_loss":1.23456,"validates":true}}
{"role":"worker","index":0,"validated":{"epoch":1,"accuracy":0.4267,"last":true}}
)") == "100,200,2.9133,,0.003110\n,,1.2346,0.43,\n");
}

}  // namespace
}  // namespace runner
