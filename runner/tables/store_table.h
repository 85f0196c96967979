// runner/tables/store_table.h: what went through the parameter server of a run, role by role.
#pragma once

#include "runner/logs/run_record.h"
#include "runner/text/text_table.h"

namespace runner {

// A row for each worker, of all its traffic since the run began and how long its steps waited, and
// one for each server (or worker that holds a shard), of the traffic of all workers with it and, of
// a server, what it has counted. No rows where nothing went to a server.
//
// Calls and their round trips are those of pushes: of a call over a connection, waiting for other
// workers included, or of a slice through shared memory. `max queue` is the most payload of pushes
// that waited at one worker for one server. `reconnects` is there where a connection was made anew.
// `staleness` says how many pushes were applied so many updates after those that they were computed
// on: `0: 10, 2: 3`.
TextTable storeTable(const RunRecord& record);

// The columns to keep where a terminal has no room for all of them, the most important one first.
constexpr kj::StringPtr IMPORTANT_STORE_COLUMNS[] = {"role"_kj, "wait ms/step"_kj,
    "round trip ms"_kj, "max round trip ms"_kj, "pushed"_kj, "pulled"_kj, "transport"_kj,
    "dropped"_kj, "reconnects"_kj};

}  // namespace runner
