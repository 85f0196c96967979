#include "io/batches/batcher.h"

#include <kj/debug.h>
#include <kj/function.h>
#include <kj/mutex.h>
#include <kj/thread.h>
#include <kj/time.h>
#include <kj/vector.h>

#include <deque>
#include <thread>

#include "configs/language/failure.h"
#include "io/batches/batch_reader.h"
#include "io/batches/reader_balance.h"
#include "io/images/pixels.h"

namespace io {

namespace {

// Consecutive records.
struct RecordRange {
  uint64_t begin;
  uint64_t size;
};

// Returns part number `part` of `parts` of `records` records.
RecordRange partOf(uint64_t records, uint part, uint parts) {
  uint64_t begin = part * records / parts;
  return {begin, (part + uint64_t(1)) * records / parts - begin};
}

// Returns the shape of all images before they are cropped. Null if they differ, or if the readers
// crop and resize them.
kj::Maybe<ImageShape> uncroppedShapeOf(const Dataset& dataset, const DataConfig& config) {
  if (config.augment.resizes()) return nullptr;
  return dataset.storedShape();
}

// Returns the number of records to validate on.
uint64_t validationRecordsOf(const Dataset& dataset, const DataConfig& config) {
  return config.validatesOnHeldOut() ? config.heldOut : dataset.validation().count();
}

// Sequence numbers count batches from the start, or from the last restart.
struct Ring {
  struct Place {
    BatchSlot* slot;
    bool isFilled = false;
  };

  uint64_t released = 0;        // batches that next() has given back
  std::deque<Place> places;     // the batches after these that readers have begun
  kj::Vector<BatchSlot*> free;  // unused slots
  uint64_t end = kj::maxValue;
  uint working = 0;  // readers that are filling a batch
  bool paused = false;
  bool stopping = false;
  kj::Maybe<Stream> stream;
  uint64_t first = 0;                            // step of training, or record of validation
  uint64_t count = 0;                            // records of validation
  kj::ArrayPtr<const View> views = CENTRE_VIEW;  // of validation

  // For validation: as many batches as its records need, each once per view.
  void setEnd(size_t batchSize) { end = (count + batchSize - 1) / batchSize * views.size(); }
  uint64_t claimed() const { return released + places.size(); }
  bool canClaim() const { return !paused && claimed() < end && free.size() > 0; }
  // Whether the next batch is ready.
  bool hasNext() const { return !places.empty() && places.front().isFilled; }
  // Forgets all batches.
  void clear() {
    for (auto& place: places) free.add(place.slot);
    places.clear();
    released = 0;
  }
};

class RingBatcher final: public Batcher {
public:
  // `first` is the first record of validation, or the first step of training. `stream` is null for
  // validation of `count` records from `first`.
  RingBatcher(const Dataset& dataset, const DataConfig& config, BatchWork::Kind kind, uint64_t seed,
      kj::Maybe<Stream> stream, uint64_t first, uint64_t count, BatchForm form)
      : work{kind, form.word, form.labels, uncroppedShapeOf(dataset, config),
            recordsOf(dataset, config, kind), augmenterOf(dataset, config), seed,
            config.onBadRecord},
        validationRecords(
            kind == BatchWork::Kind::VALIDATION ? validationRecordsOf(dataset, config) : 0),
        splitsValidation(!config.eachValidatesAll()),
        batchSize(config.batchSize),
        form(kj::mv(form)),
        balance(config.readerThreads, threadsMaxOf(config, kind)) {
    auto& word = this->form.word;
    KJ_REQUIRE(word != BatchForm::NUMBERS || work.labels.size() == work.records.count());
    KJ_REQUIRE(word != BatchForm::BYTES || canReadBytes(dataset, work.augmenter));
    {
      auto locked = ring.lockExclusive();
      locked->stream = kj::mv(stream);
      locked->first = first;
      locked->count = count;
      if (kind == BatchWork::Kind::VALIDATION) {
        locked->views = config.views(false);
        locked->setEnd(batchSize);
      }
    }
    // The step uses one batch, one is ready, and each reader fills one.
    for (uint i = 0; i < 2; ++i) addSlot();
    KJ_ON_SCOPE_FAILURE(stop());
    for (uint i = 0; i < config.readerThreads && addReader(); ++i) {
    }
    if (config.readerThreads > 0 && threads.size() == 0) {
      configs::fail(
          "cannot start a thread that reads records: the machine has no memory for one, "
          "or allows no more threads. Raise that limit (ulimit -u), or set "
          "data.reader_threads = 0");
    }
  }

  ~RingBatcher() noexcept(false) {
    stop();
    threads.clear();
  }

  kj::Maybe<const Batch&> next() override {
    auto& clock = kj::systemPreciseMonotonicClock();
    auto before = clock.now();
    bool readsHere;
    {
      auto locked = ring.lockExclusive();
      // Gives back the batch that was handed out last.
      if (handedOut) {
        locked->free.add(locked->places.front().slot);
        locked->places.pop_front();
        ++locked->released;
        handedOut = false;
      }
      readsHere = threads.size() == 0 && !locked->hasNext() && locked->canClaim();
    }
    if (readsHere) readOne(ownReader);
    auto found = ring.when([](const Ring& r) { return r.released == r.end || r.hasNext(); },
        [](Ring& r) { return r.released == r.end ? nullptr : r.places.front().slot; });
    auto now = clock.now();
    uint64_t waited_ns = (now - before) / kj::NANOSECONDS;
    totals.waited_ns += waited_ns;
    if (balance.needsMore(waited_ns, (now - kj::origin<kj::TimePoint>()) / kj::NANOSECONDS)) {
      // If that is not possible, reading continues with the existing threads.
      addReader();
    }
    if (found == nullptr) return nullptr;
    auto& slot = *found;
    KJ_IF_MAYBE(e, slot.error) kj::throwFatalException(kj::cp(*e));
    handedOut = true;
    totals.badRecords += slot.badRecords;
    for (auto& report: slot.reports) reports.add(kj::mv(report));
    slot.reports.clear();
    batch = {slot.plan.step, slot.pixels, slot.bytes, slot.records, slot.augmentations, slot.labels,
        slot.images, slot.draws, slot.plan.views, slot.plan.view.weight, slot.plan.isLastView};
    return batch;
  }

  void restart(kj::ArrayPtr<const View> views) override {
    KJ_REQUIRE(work.kind == BatchWork::Kind::VALIDATION, "only validation can be started over");
    KJ_REQUIRE(views.size() > 0);
    startOver([&](Ring& r) {
      r.views = views;
      r.setEnd(batchSize);
    });
  }

  void take(uint part, uint parts) override {
    KJ_REQUIRE(work.kind == BatchWork::Kind::VALIDATION, "only validation has parts");
    if (!splitsValidation) return;
    auto range = partOf(validationRecords, part, parts);
    startOver([&](Ring& r) {
      r.first = range.begin;
      r.count = range.size;
      r.setEnd(batchSize);
    });
  }

  void divideBy(kj::Own<const Division> division, uint64_t step) override {
    KJ_REQUIRE(work.kind == BatchWork::Kind::TRAINING, "only training is divided by steps");
    startOver([&](Ring& r) {
      KJ_ASSERT_NONNULL(r.stream).divideBy(kj::mv(division));
      r.first = step;
    });
  }

  BatcherCounts counts() const override { return totals; }

  kj::Array<kj::String> takeReports() override { return reports.releaseAsArray(); }

private:
  static const RecordDb& recordsOf(
      const Dataset& dataset, const DataConfig& config, BatchWork::Kind kind) {
    bool own = !config.validatesOnHeldOut();
    return kind == BatchWork::Kind::VALIDATION && own ? dataset.validation() : dataset.training();
  }

  // Begins again with the first batch, after `change` has changed what is read.
  void startOver(kj::FunctionParam<void(Ring&)> change) {
    ring.lockExclusive()->paused = true;
    ring.when([](const Ring& r) { return r.working == 0; },
        [&](Ring& r) {
          r.clear();
          change(r);
          r.paused = false;
        });
    handedOut = false;
  }

  static uint threadsMaxOf(const DataConfig& config, BatchWork::Kind kind) {
    bool grows = config.addsReaders && kind == BatchWork::Kind::TRAINING;
    return grows ? std::thread::hardware_concurrency() : config.readerThreads;
  }

  void addSlot() {
    auto& slot = *slots.add(kj::heap<BatchSlot>());
    slot.plan.samples = kj::heapArray<Stream::Sample>(batchSize);
    slot.labels = kj::heapArray<int32_t>(batchSize);
    slot.draws = kj::heapArray<uint64_t>(batchSize);
    slot.records = kj::heapArray<uint64_t>(batchSize);
    if (form.word == BatchForm::PIXELS) {
      slot.pixels = kj::heapArray<float>(batchSize * work.augmenter.shape.size());
    } else {
      slot.augmentations = kj::heapArray<Augmentation>(batchSize);
    }
    if (form.word == BatchForm::BYTES) {
      slot.bytes = KJ_REQUIRE_NONNULL(form.allocate)(batchSize * work.augmenter.stored.size());
    }
    ring.lockExclusive()->free.add(&slot);
  }

  // Adds a thread, and the batch that it fills. Returns false if the system cannot start a thread.
  bool addReader() {
    auto start = [this]() { threads.add(kj::heap<kj::Thread>([this]() { run(); })); };
    if (kj::runCatchingExceptions(start) != nullptr) return false;
    addSlot();
    totals.threads = threads.size();
    return true;
  }

  // The body of a reader thread.
  void run() {
    kj::Maybe<BatchReader> reader;
    while (readOne(reader)) {
    }
  }

  // Waits for a free slot and reads its batch. Makes `reader` at the first call. Returns false when
  // the batcher ends.
  bool readOne(kj::Maybe<BatchReader>& reader) {
    auto claimed = claim();
    KJ_IF_MAYBE(slot, claimed) {
      // An exception of a thread would be noticed only when the thread is joined. Therefore next()
      // throws it.
      if (slot->error == nullptr) {
        slot->error = kj::runCatchingExceptions([&]() {
          KJ_IF_MAYBE(r, reader) {
            r->fill(*slot);
          } else {
            reader.emplace(work).fill(*slot);
          }
        });
      }
      auto locked = ring.lockExclusive();
      for (auto& place: locked->places) {
        if (place.slot == slot) place.isFilled = true;
      }
      --locked->working;
      return true;
    }
    return false;
  }

  // Waits for a free slot and plans its batch. Returns null when the batcher ends. Batches are
  // claimed in their order.
  kj::Maybe<BatchSlot&> claim() {
    return ring.when([](const Ring& r) { return r.stopping || r.canClaim(); },
        [&](Ring& r) -> kj::Maybe<BatchSlot&> {
          if (r.stopping) return nullptr;
          auto& slot = *r.free.back();
          r.free.removeLast();
          uint64_t sequence = r.claimed();
          r.places.push_back({&slot});
          ++r.working;
          slot.error = kj::runCatchingExceptions([&]() { makePlan(r, sequence, slot.plan); });
          return slot;
        });
  }

  // Plans which samples batch number `sequence` has.
  void makePlan(Ring& r, uint64_t sequence, BatchPlan& plan) {
    KJ_IF_MAYBE(stream, r.stream) {
      plan.step = r.first + sequence;
      plan.count = batchSize;
      stream->samples(plan.step, plan.samples);
    } else {
      plan.step = sequence / r.views.size();
      size_t view = sequence % r.views.size();
      plan.views = r.views.size();
      plan.view = r.views[view];
      plan.isLastView = view + 1 == r.views.size();
      uint64_t begin = plan.step * batchSize;
      plan.count = kj::min(batchSize, r.count - begin);
      for (size_t i = 0; i < plan.count; ++i) plan.samples[i] = {r.first + begin + i, 0};
    }
  }

  void stop() {
    work.stopping = true;
    ring.lockExclusive()->stopping = true;
  }

  BatchWork work;
  const uint64_t validationRecords;
  const bool splitsValidation;
  const size_t batchSize;
  kj::MutexGuarded<Ring> ring;

  // Only for the thread that calls next().
  BatchForm form;
  ReaderBalance balance;
  kj::Vector<kj::Own<BatchSlot>> slots;
  bool handedOut = false;
  kj::Maybe<BatchReader> ownReader;  // without reader threads
  Batch batch;
  BatcherCounts totals;
  kj::Vector<kj::String> reports;

  // The threads come last in the class, because they use all members above.
  kj::Vector<kj::Own<kj::Thread>> threads;
};

}  // namespace

Augmenter augmenterOf(const Dataset& dataset, const DataConfig& config) {
  auto batch = dataset.batchShape();
  return Augmenter(config.augment, batch, uncroppedShapeOf(dataset, config).orDefault(batch),
      dataset.meanImage());
}

bool canReadBytes(const Dataset& dataset, const Augmenter& augmenter) {
  return !augmenter.finishes() && (dataset.storedShape() != nullptr || augmenter.canCut());
}

kj::Own<Batcher> Batcher::training(const Dataset& dataset, const DataConfig& config, uint64_t seed,
    uint workers, uint rank, uint64_t firstStep, BatchForm form) {
  Stream stream(config, dataset.training().count(), seed, workers, rank);
  return kj::heap<RingBatcher>(
      dataset, config, BatchWork::Kind::TRAINING, seed, kj::mv(stream), firstStep, 0, kj::mv(form));
}

kj::Own<Batcher> Batcher::validation(
    const Dataset& dataset, const DataConfig& config, uint workers, uint rank, BatchForm form) {
  uint64_t records = validationRecordsOf(dataset, config);
  bool own = !config.validatesOnHeldOut();
  KJ_REQUIRE(rank < workers, rank, workers);
  KJ_REQUIRE(own || records <= dataset.training().count(), records, dataset.training().count());
  auto range = config.eachValidatesAll() ? RecordRange{0, records} : partOf(records, rank, workers);
  return kj::heap<RingBatcher>(dataset, config, BatchWork::Kind::VALIDATION, 0, nullptr,
      range.begin, range.size, kj::mv(form));
}

}  // namespace io
