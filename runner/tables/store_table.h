// runner/tables/store_table.h: the traffic of a run's parameter server, role by role.
#pragma once

#include "runner/logs/run_record.h"
#include "runner/text/text_table.h"

namespace runner {

// Returns one row per worker, with all its traffic since the run began and how long its steps
// waited. One row per server (or per worker that holds a shard) has the traffic of all workers with
// it, and for a server its counts. No rows if no values were sent to a server.
//
// Calls and their round trips are those of pushes. A round trip is that of a call over a
// connection, including the wait for other workers, or that of a slice through shared memory. `max
// queue` is the largest payload of pushes that waited at one worker for one server. There is a
// column `reconnects` if a broken connection was made again. `staleness` is a histogram of applied
// pushes by the number of updates since the values that they were computed on: `0: 10, 2: 3`.
TextTable storeTable(const RunRecord& record);

// The columns to keep if a terminal has no room for all of them, the most important one first.
constexpr kj::StringPtr IMPORTANT_STORE_COLUMNS[] = {"role"_kj, "wait ms/step"_kj,
    "round trip ms"_kj, "max round trip ms"_kj, "pushed"_kj, "pulled"_kj, "transport"_kj,
    "dropped"_kj, "reconnects"_kj};

}  // namespace runner
