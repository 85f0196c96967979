#include "io/images/record_check.h"

#include <kj/mutex.h>
#include <kj/thread.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "io/images/pixels.h"

namespace io {

namespace {

constexpr size_t PROBLEMS_MAX = 20;
// How many records a thread takes at a time.
constexpr uint64_t BLOCK = 64;

struct Problem {
  uint64_t record;
  kj::String sentence;
};

// The common results of several threads.
struct Found {
  RecordSums sums;
  std::vector<Problem> problems;  // of the first bad records, sorted

  void addProblem(uint64_t record, kj::String sentence) {
    ++sums.bad;
    auto place = std::upper_bound(problems.begin(), problems.end(), record,
        [](uint64_t record, const Problem& other) { return record < other.record; });
    problems.insert(place, Problem{record, kj::mv(sentence)});
    if (problems.size() > PROBLEMS_MAX) problems.pop_back();
  }
};

void add(RecordSums& sums, const Record& record) {
  ++sums.good;
  if (record.encoding == Encoding::JPEG) ++sums.jpegFiles;
  sums.payload_bytes += record.bytes.size();
  uint side = kj::min(record.shape.height, record.shape.width);
  sums.sideMin = kj::min(sums.sideMin, side);
  sums.sideMax = kj::max(sums.sideMax, side);
  ++sums.imagesOfClass[record.label];
}

// Reads the records from `begin` to before `end`.
void check(const RecordDb& db, RecordReader& reader, JpegDecoder& decoder, uint64_t begin,
    uint64_t end, const kj::MutexGuarded<Found>& found) {
  for (uint64_t i = begin; i < end; ++i) {
    kj::Maybe<Record> record;
    auto problem = kj::runCatchingExceptions([&]() { record = reader.read(i); });
    KJ_IF_MAYBE(intact, record) {
      auto undecodable = kj::runCatchingExceptions([&]() { pixelsOf(*intact, decoder); });
      auto lock = found.lockExclusive();
      KJ_IF_MAYBE(e, undecodable) {
        lock->addProblem(i, badImage(db, i, *intact, *e));
      } else {
        add(lock->sums, *intact);
      }
    } else KJ_IF_MAYBE(e, problem) {
      found.lockExclusive()->addProblem(i, kj::str(e->getDescription()));
    }
  }
}

}  // namespace

RecordSums checkRecords(const RecordDb& db, Progress& progress) {
  kj::MutexGuarded<Found> found;
  auto& counts = found.getWithoutLock().sums.imagesOfClass;
  counts = kj::heapArray<uint64_t>(db.classes());
  for (auto& count: counts) count = 0;
  std::atomic<uint64_t> next{0};
  auto work = [&](kj::FunctionParam<void(uint64_t)> done) {
    auto reader = RecordReader::open(db);
    JpegDecoder decoder;
    for (uint64_t begin; (begin = next.fetch_add(BLOCK)) < db.count();) {
      check(db, *reader, decoder, begin, kj::min(begin + BLOCK, db.count()), found);
      done(begin);
    }
  };
  {
    kj::Vector<kj::Own<kj::Thread>> others;
    // If `progress` throws, the other threads get no more work.
    KJ_ON_SCOPE_FAILURE(next = db.count());
    for (uint i = 1; i < std::thread::hardware_concurrency(); ++i) {
      others.add(kj::heap<kj::Thread>([&]() { work([](uint64_t) {}); }));
    }
    work([&](uint64_t at) { progress("checking records", at, db.count()); });
  }
  auto& all = found.getWithoutLock();
  auto sums = kj::mv(all.sums);
  for (auto& problem: all.problems) sums.problems.add(kj::mv(problem.sentence));
  sums.hasItsDigest = hasItsDigest(db, progress);
  return sums;
}

}  // namespace io
