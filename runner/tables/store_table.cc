#include "runner/tables/store_table.h"

#include <kj/vector.h>

#include <set>

#include "runner/text/numbers.h"

namespace runner {

namespace {

// Pushes with more missed updates are counted together.
constexpr size_t STALENESS_MAX = 8;

// The traffic of several links.
struct Sum {
  kj::Vector<kj::StringPtr> transports;
  double calls = 0;
  double pushed_bytes = 0;
  double pulled_bytes = 0;
  double roundTrips_s = 0;
  double roundTripMax_s = 0;
  double waitingMax_bytes = 0;
  uint64_t reconnects = 0;

  void add(const LinkRecord& link) {
    bool known = false;
    for (auto each: transports) known = known || each == link.transport;
    if (!known) transports.add(link.transport);
    calls += link.calls;
    pushed_bytes += link.pushed_bytes;
    pulled_bytes += link.pulled_bytes;
    roundTrips_s += link.roundTrips_s;
    roundTripMax_s = kj::max(roundTripMax_s, link.roundTripMax_s);
    waitingMax_bytes = kj::max(waitingMax_bytes, link.waitingMax_bytes);
    reconnects += link.reconnects;
  }
};

kj::String ms(double seconds) {
  return figureText(seconds * 1e3, 2);
}

kj::String stalenessOf(const CountedRecord& counted) {
  kj::Vector<kj::String> parts;
  double beyond = 0;
  for (size_t updates: kj::indices(counted.staleness)) {
    double pushes = counted.staleness[updates];
    if (updates >= STALENESS_MAX) {
      beyond += pushes;
    } else if (pushes > 0) {
      parts.add(kj::str(updates, ": ", wholeNumber(pushes)));
    }
  }
  if (beyond > 0) parts.add(kj::str(STALENESS_MAX, " and more: ", wholeNumber(beyond)));
  return kj::strArray(parts, ", ");
}

// Returns one role's cells, except for reconnects. Figures that the role does not have are empty.
kj::Vector<kj::String> row(kj::String role, const Sum& sum, kj::Maybe<const WaitRecord&> wait,
    kj::Maybe<const CountedRecord&> counted) {
  kj::Vector<kj::String> cells;
  cells.add(kj::mv(role));
  cells.add(kj::strArray(sum.transports, ", "));
  cells.add(kj::str(wholeNumber(sum.calls)));
  cells.add(bytesCell(sum.pushed_bytes));
  cells.add(bytesCell(sum.pulled_bytes));
  cells.add(ms(sum.roundTrips_s / kj::max(1.0, sum.calls)));
  cells.add(ms(sum.roundTripMax_s));
  cells.add(bytesCell(sum.waitingMax_bytes));
  KJ_IF_MAYBE(w, wait) {
    cells.add(ms(w->pull_s / kj::max(uint64_t(1), w->steps)));
  } else {
    cells.add();
  }
  KJ_IF_MAYBE(c, counted) {
    cells.add(kj::str(wholeNumber(c->pushed)));
    cells.add(kj::str(wholeNumber(c->dropped)));
    cells.add(stalenessOf(*c));
  } else {
    for (uint i = 0; i < 3; i++) cells.add();
  }
  return cells;
}

template <typename Record, typename Condition>
kj::Maybe<const Record&> findIn(const kj::Array<Record>& records, Condition&& isIt) {
  for (auto& each: records) {
    if (isIt(each)) return each;
  }
  return nullptr;
}

// Returns the sum over the links of one role. Null if they have no traffic.
template <typename Condition>
kj::Maybe<Sum> sumOf(const RunRecord& record, Condition&& isOfRole) {
  Sum sum;
  for (auto& link: record.links) {
    if (isOfRole(link) && link.transport.size() > 0) sum.add(link);
  }
  if (sum.transports.empty()) return nullptr;
  return kj::mv(sum);
}

}  // namespace

TextTable storeTable(const RunRecord& record) {
  kj::Vector<kj::String> header;
  for (auto name: {"role", "transport", "calls", "pushed", "pulled", "round trip ms",
           "max round trip ms", "max queue", "wait ms/step", "pushes", "dropped", "staleness"}) {
    header.add(kj::str(name));
  }
  bool anyReconnects = false;
  for (auto& link: record.links) anyReconnects = anyReconnects || link.reconnects > 0;
  if (anyReconnects) header.add(kj::str("reconnects"));

  kj::Vector<kj::Array<kj::String>> rows;
  auto add = [&](const Sum& sum, kj::Vector<kj::String> cells) {
    if (anyReconnects) cells.add(kj::str(sum.reconnects));
    rows.add(cells.releaseAsArray());
  };
  std::set<uint> workers, holders;
  for (auto& link: record.links) {
    workers.insert(link.worker);
    holders.insert(link.server);
  }
  for (uint worker: workers) {
    auto wait = findIn(record.waits, [&](auto& each) { return each.worker == worker; });
    auto sum = sumOf(record, [&](auto& link) { return link.worker == worker; });
    KJ_IF_MAYBE(s, sum) add(*s, row(kj::str("worker ", worker), *s, wait, nullptr));
  }
  for (uint server: holders) {
    auto counted = findIn(record.counted, [&](auto& each) { return each.server == server; });
    auto name =
        record.servers > 0 ? kj::str("server ", server) : kj::str("shard of worker ", server);
    auto sum = sumOf(record, [&](auto& link) { return link.server == server; });
    KJ_IF_MAYBE(s, sum) add(*s, row(kj::mv(name), *s, nullptr, counted));
  }
  return {header.releaseAsArray(), rows.releaseAsArray(), nullptr};
}

}  // namespace runner
