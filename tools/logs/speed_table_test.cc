#include "tools/logs/speed_table.h"

#include <doctest/doctest.h>

namespace tools {
namespace {

kj::String csv(kj::StringPtr log) {
  return formatTable(textOf(speedTable(readLogLines(log.asArray()))), runner::TableFormat::CSV);
}

TEST_CASE("speedTable: each worker has the mean, minimum, maximum and number of its speeds") {
  CHECK(csv("Node[1] Epoch[0] Batch [50]\tSpeed: 300.00 samples/sec\n"
            "Node[0] Epoch[0] Batch [50]\tSpeed: 100.00 samples/sec\tTrain-accuracy=0.5\n"
            "Node[0] Epoch[0] Batch [50-100]\tSpeed: 250.00 samples/sec\taccuracy=0.5\n"
            "Iter[0] Batch [5]\tSpeed: 175.98 samples/sec\n") ==
        "worker,images/s,minimum,maximum,count\n"
        "0,175.00,100.00,250.00,2\n"
        "1,300.00,300.00,300.00,1\n"
        "all,175.98,175.98,175.98,1\n");
}

TEST_CASE("speedTable: counts infinite speeds, and leaves them out of the means") {
  kj::StringPtr log =
      "Epoch[0] Batch [5]\tSpeed: inf samples/sec\n"
      "Epoch[0] Batch [10]\tSpeed: 4.00 samples/sec\n";
  auto table = speedTable(readLogLines(log.asArray()));
  REQUIRE(table.rows.size() == 1);
  CHECK(table.rows[0].mean == 4);
  CHECK(table.rows[0].count == 1);
  CHECK(table.withoutSpeed == 1);
}

TEST_CASE("speedTable: other lines make no row") {
  CHECK(speedTable(readLogLines("Epoch[0] Time cost=4\n"_kj.asArray())).rows.size() == 0);
}

}  // namespace
}  // namespace tools
