#include "runner/tables/store_table.h"

#include <doctest/doctest.h>

#include "tests/text.h"

namespace runner {
namespace {

RunRecord twoWorkers() {
  RunRecord record;
  record.workers = 2;
  record.servers = 1;
  record.links = kj::heapArray<LinkRecord>(2);
  record.links[0] = {0, 0, kj::str("tcp"), 10, 2048, 4096, 0.02, 0.005, 1024, 0};
  record.links[1] = {1, 0, kj::str("shared_memory"), 30, 1024, 1024, 0.02, 0.015, 0, 0};
  record.waits = kj::heapArray<WaitRecord>(2);
  record.waits[0] = {0, 4, 0.01};
  record.waits[1] = {1, 4, 0.02};
  record.counted = kj::heapArray<CountedRecord>(1);
  auto staleness = kj::heapArray<double>(12);
  for (auto& count: staleness) count = 0;
  staleness[0] = 7, staleness[2] = 3, staleness[8] = 1, staleness[11] = 2;
  record.counted[0] = {0, 14, 1, kj::mv(staleness)};
  return record;
}

TEST_CASE("storeTable: sums a worker's row over servers, and a server's row over workers") {
  CHECK(formatTable(storeTable(twoWorkers()), TableFormat::MARKDOWN) ==
        "| role | transport | calls | pushed | pulled | round trip ms | max round trip ms | max "
        "queue | wait ms/step | pushes | dropped | staleness |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
        "| worker 0 | tcp | 10 | 2.0 KiB | 4.0 KiB | 2.00 | 5.00 | 1.0 KiB | 2.50 |  |  |  |\n"
        "| worker 1 | shared_memory | 30 | 1.0 KiB | 1.0 KiB | 0.67 | 15.00 | 0 bytes | 5.00 |  |  "
        "|  |\n"
        "| server 0 | tcp, shared_memory | 40 | 3.0 KiB | 5.0 KiB | 1.00 | 15.00 | 1.0 KiB |  | 14 "
        "| 1 | 0: 7, 2: 3, 8 and more: 3 |\n");
}

TEST_CASE("storeTable: has rows for workers that joined later") {
  auto record = twoWorkers();
  record.links[1].worker = 3;
  auto table = storeTable(record);
  REQUIRE(table.rows.size() == 3);
  CHECK(table.rows[1][0] == "worker 3");
}

TEST_CASE("storeTable: has a column for reconnects if there were some") {
  auto record = twoWorkers();
  record.links[1].reconnects = 2;
  auto table = storeTable(record);
  CHECK(table.header.back() == "reconnects");
  REQUIRE(table.rows.size() == 3);
  CHECK(table.rows[0].back() == "0");
  CHECK(table.rows[1].back() == "2");
  CHECK(table.rows[2].back() == "2");
  for (auto& row: table.rows) CHECK(row.size() == table.header.size());
}

TEST_CASE(
    "storeTable: workers that hold shards have rows, and a worker's own shard is not traffic") {
  auto record = twoWorkers();
  record.servers = 0;
  record.counted = nullptr;
  record.links[0].server = 1;
  record.links[1].transport = nullptr;
  auto table = storeTable(record);
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[0][0] == "worker 0");
  CHECK(table.rows[1][0] == "shard of worker 1");
}

TEST_CASE("storeTable: a run without servers has no rows") {
  RunRecord record;
  record.workers = 1;
  CHECK(storeTable(record).rows.size() == 0);
}

}  // namespace
}  // namespace runner
