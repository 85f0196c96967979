#include "io/batches/batcher.h"

#include <kj/debug.h>
#include <kj/function.h>
#include <kj/mutex.h>
#include <kj/thread.h>
#include <kj/time.h>
#include <kj/vector.h>

#include <atomic>
#include <deque>
#include <thread>

#include "configs/language/failure.h"
#include "configs/language/random.h"
#include "io/batches/reader_balance.h"
#include "io/images/crop_reader.h"
#include "io/images/pixels.h"

namespace io {

namespace {

// Per batch, only this many bad records are described. The others are counted.
constexpr size_t REPORTS_A_BATCH = 4;

// What a batch will hold.
struct Plan {
  uint64_t step = 0;
  kj::Array<Stream::Sample> samples;  // batchSize samples, of which the first `count` are used
  size_t count = 0;
  uint views = 1;  // in validation: the views of each image, of which this batch shows one
  View view = CENTRE_VIEW[0];
  bool isLastView = true;
};

// A batch in the ring. A reader thread owns it from claiming until it is filled. next() owns it
// from handing it out until the next call.
struct Slot {
  Plan plan;
  // Empty if the form has none.
  kj::Array<float> pixels;
  kj::Array<kj::byte> bytes;
  kj::Array<uint64_t> records;
  kj::Array<Augmentation> augmentations;
  kj::Array<int32_t> labels;
  kj::Array<uint64_t> draws;
  uint images = 0;
  uint64_t badRecords = 0;
  kj::Vector<kj::String> reports;
  kj::Maybe<kj::Exception> error;
};

// What all reader threads share. Only `stopping` changes.
struct Work {
  enum class Kind { TRAINING, VALIDATION };

  Kind kind;
  BatchForm::Word form;
  kj::ArrayPtr<const int32_t> labels;  // see BatchForm
  kj::Maybe<ImageShape> stored;        // of BYTES. Null if the readers crop them
  const RecordDb& records;
  Augmenter augmenter;
  uint64_t seed;
  BadRecordPolicy policy;
  std::atomic<bool> stopping{false};
};

// Reads single images on one thread.
class ImageReader {
public:
  explicit ImageReader(const Work& work)
      : work(work), reader(RecordReader::open(work.records)), crops(work.augmenter) {}

  // The sample will be read soon.
  void prefetch(Stream::Sample sample) {
    if (work.form != BatchForm::NUMBERS) reader->prefetch(sample.record);
  }

  // Fills one row of a batch. If the record is bad, throws a sentence that names it.
  void read(Stream::Sample sample, const View& view, Slot& slot, size_t row) {
    if (work.form == BatchForm::NUMBERS) {
      slot.augmentations[row] = draw(sample, view, KJ_ASSERT_NONNULL(work.stored));
      slot.records[row] = sample.record;
      slot.labels[row] = work.labels[sample.record];
      return;
    }
    auto record = reader->read(sample.record);
    if (!work.augmenter.reaches(record.shape)) {
      configs::fail(tooSmall(work.records, sample.record, record, work.augmenter.shape.height));
    }
    auto problem = kj::runCatchingExceptions([&]() {
      auto augmentation = draw(sample, view, record.shape);
      if (work.form == BatchForm::PIXELS) {
        crops.apply(record, augmentation, rowOf(slot.pixels, slot, row));
        return;
      }
      auto to = rowOf(slot.bytes, slot, row);
      if (work.stored != nullptr) {
        crops.copy(record, to);
      } else {
        crops.cut(record, augmentation, to);
        augmentation = {0, 0, augmentation.mirror};
      }
      slot.augmentations[row] = augmentation;
      slot.records[row] = sample.record;
    });
    KJ_IF_MAYBE(e, problem) configs::fail(badImage(work.records, sample.record, record, *e));
    slot.labels[row] = record.label;
  }

private:
  template <typename T>
  static kj::ArrayPtr<T> rowOf(kj::Array<T>& all, const Slot& slot, size_t row) {
    size_t size = all.size() / slot.labels.size();
    return all.slice(row * size, (row + 1) * size);
  }

  Augmentation draw(Stream::Sample sample, const View& view, ImageShape shape) const {
    if (work.kind == Work::Kind::VALIDATION) return work.augmenter.view(view, shape);
    return work.augmenter.draw(work.seed, sample.pass, sample.record, shape);
  }

  const Work& work;
  kj::Own<RecordReader> reader;
  CropReader crops;
};

// Fills one slot by its plan.
class BatchReader {
public:
  explicit BatchReader(const Work& work): work(work), reader(work) {}

  void fill(Slot& slot) {
    slot.images = 0;
    slot.badRecords = 0;
    slot.reports.clear();
    auto& plan = slot.plan;
    for (size_t i = 0; i < plan.count && !work.stopping; ++i) {
      if (i + 1 < plan.count) reader.prefetch(plan.samples[i + 1]);
      if (readGood(slot, i)) {
        ++slot.images;
        continue;
      }
      if (work.kind == Work::Kind::VALIDATION) continue;
      bool found = false;
      for (size_t n = 1; n < plan.count && !found && !work.stopping; ++n) {
        found = readGood(slot, (i + n) % plan.count);
      }
      if (!found && !work.stopping) {
        configs::fail("step ", plan.step,
            " has no record that can be read. The first problem: ", slot.reports[0]);
      }
      ++slot.images;
    }
    // Clears the rows without an image.
    size_t size = slot.pixels.size() / slot.labels.size();
    for (auto& pixel: slot.pixels.slice(slot.images * size, slot.pixels.size())) pixel = 0;
    for (size_t row = slot.images; row < slot.labels.size(); ++row) {
      slot.labels[row] = -1;
      slot.draws[row] = 0;
      if (work.form == BatchForm::PIXELS) continue;
      slot.records[row] = 0;
      slot.augmentations[row] = {0, 0, false};
    }
  }

private:
  // Reads sample `index` of the plan into the next free row. Returns false if the record is bad and
  // may be skipped.
  bool readGood(Slot& slot, size_t index) {
    auto sample = slot.plan.samples[index];
    size_t row = slot.images;
    auto problem =
        kj::runCatchingExceptions([&]() { reader.read(sample, slot.plan.view, slot, row); });
    KJ_IF_MAYBE(e, problem) {
      auto report = e->getDescription();
      if (work.policy == BadRecordPolicy::FAIL) configs::fail(report, OR_SKIP);
      // Each view reads the bad record, but only the last one reports it.
      if (!slot.plan.isLastView) return false;
      ++slot.badRecords;
      if (slot.reports.size() < REPORTS_A_BATCH) slot.reports.add(kj::str(report));
      return false;
    }
    slot.draws[row] =
        work.kind == Work::Kind::TRAINING
            ? configs::Random(work.seed, configs::Purpose::DROPOUT, sample.pass, sample.record)
                  .next()
            : 0;
    return true;
  }

  const Work& work;
  ImageReader reader;
};

// Consecutive records.
struct RecordRange {
  uint64_t begin;
  uint64_t size;
};

// Returns part number `part` of `parts` of so many records.
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
  bool own = config.validateOn == ValidationSet::VALIDATION;
  return own ? dataset.validation().count() : config.heldOut;
}

// Sequence numbers count batches from the start, or from the last restart.
struct Ring {
  struct Place {
    Slot* slot;
    bool isFilled = false;
  };

  uint64_t released = 0;     // batches that next() has given back
  std::deque<Place> places;  // of the batches behind them that readers have begun
  kj::Vector<Slot*> free;    // slots of no batch
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
  // Whether the next batch is there.
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
  RingBatcher(const Dataset& dataset, const DataConfig& config, Work::Kind kind, uint64_t seed,
      kj::Maybe<Stream> stream, uint64_t first, uint64_t count, BatchForm form)
      : work{kind, form.word, form.labels, uncroppedShapeOf(dataset, config),
            recordsOf(dataset, config, kind), augmenterOf(dataset, config), seed,
            config.onBadRecord},
        validationRecords(
            kind == Work::Kind::VALIDATION ? validationRecordsOf(dataset, config) : 0),
        splitsValidation(config.validation == ValidationPart::SPLIT),
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
      if (kind == Work::Kind::VALIDATION) {
        locked->views = config.views(false);
        locked->setEnd(batchSize);
      }
    }
    // The step uses one batch, one is ready, and each reader fills one.
    for (uint i = 0; i < 2; ++i) addSlot();
    KJ_ON_SCOPE_FAILURE(stop());
    for (uint i = 0; i < config.readerThreads; ++i) addReader();
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
    KJ_REQUIRE(work.kind == Work::Kind::VALIDATION, "only validation can be started over");
    KJ_REQUIRE(views.size() > 0);
    startOver([&](Ring& r) {
      r.views = views;
      r.setEnd(batchSize);
    });
  }

  void take(uint part, uint parts) override {
    KJ_REQUIRE(work.kind == Work::Kind::VALIDATION, "only validation has parts");
    if (!splitsValidation) return;
    auto range = partOf(validationRecords, part, parts);
    startOver([&](Ring& r) {
      r.first = range.begin;
      r.count = range.size;
      r.setEnd(batchSize);
    });
  }

  void divideBy(kj::Own<const Division> division, uint64_t step) override {
    KJ_REQUIRE(work.kind == Work::Kind::TRAINING, "only training is divided by steps");
    startOver([&](Ring& r) {
      KJ_ASSERT_NONNULL(r.stream).divideBy(kj::mv(division));
      r.first = step;
    });
  }

  BatcherCounts counts() const override { return totals; }

  kj::Array<kj::String> takeReports() override { return reports.releaseAsArray(); }

private:
  static const RecordDb& recordsOf(
      const Dataset& dataset, const DataConfig& config, Work::Kind kind) {
    bool own = config.validateOn == ValidationSet::VALIDATION;
    return kind == Work::Kind::VALIDATION && own ? dataset.validation() : dataset.training();
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

  static uint threadsMaxOf(const DataConfig& config, Work::Kind kind) {
    bool grows = config.addsReaders && kind == Work::Kind::TRAINING;
    return grows ? std::thread::hardware_concurrency() : config.readerThreads;
  }

  void addSlot() {
    auto& slot = *slots.add(kj::heap<Slot>());
    slot.plan.samples = kj::heapArray<Stream::Sample>(batchSize);
    slot.labels = kj::heapArray<int32_t>(batchSize);
    slot.draws = kj::heapArray<uint64_t>(batchSize);
    if (form.word == BatchForm::PIXELS) {
      slot.pixels = kj::heapArray<float>(batchSize * work.augmenter.shape.size());
    } else {
      slot.records = kj::heapArray<uint64_t>(batchSize);
      slot.augmentations = kj::heapArray<Augmentation>(batchSize);
    }
    if (form.word == BatchForm::BYTES) {
      slot.bytes = KJ_REQUIRE_NONNULL(form.allocate)(batchSize * work.augmenter.stored.size());
    }
    ring.lockExclusive()->free.add(&slot);
  }

  // Adds a thread, and the batch that it fills.
  void addReader() {
    addSlot();
    threads.add(kj::heap<kj::Thread>([this]() { run(); }));
    totals.threads = threads.size();
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
      // An exception of a thread reaches nobody before the thread is joined. Therefore next()
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
  kj::Maybe<Slot&> claim() {
    return ring.when([](const Ring& r) { return r.stopping || r.canClaim(); },
        [&](Ring& r) -> kj::Maybe<Slot&> {
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

  // Says which samples batch number `sequence` has.
  void makePlan(Ring& r, uint64_t sequence, Plan& plan) {
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

  Work work;
  const uint64_t validationRecords;
  const bool splitsValidation;
  const size_t batchSize;
  kj::MutexGuarded<Ring> ring;

  // Belongs to the thread that calls next().
  BatchForm form;
  ReaderBalance balance;
  kj::Vector<kj::Own<Slot>> slots;
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
      dataset, config, Work::Kind::TRAINING, seed, kj::mv(stream), firstStep, 0, kj::mv(form));
}

kj::Own<Batcher> Batcher::validation(
    const Dataset& dataset, const DataConfig& config, uint workers, uint rank, BatchForm form) {
  uint64_t records = validationRecordsOf(dataset, config);
  bool own = config.validateOn == ValidationSet::VALIDATION;
  KJ_REQUIRE(rank < workers, rank, workers);
  KJ_REQUIRE(own || records <= dataset.training().count(), records, dataset.training().count());
  bool split = config.validation == ValidationPart::SPLIT;
  auto range = split ? partOf(records, rank, workers) : RecordRange{0, records};
  return kj::heap<RingBatcher>(
      dataset, config, Work::Kind::VALIDATION, 0, nullptr, range.begin, range.size, kj::mv(form));
}

}  // namespace io
