#include "runner/checkpoints/carried_parts.h"

#include <kj/debug.h>

#include <cstring>

#include "configs/language/failure.h"
#include "runner/checkpoints/kept_parts.h"

namespace runner {

namespace {

using Bytes = kj::ArrayPtr<const kj::byte>;
using Type = configs::StateVisitor::Type;

constexpr kj::StringPtr UNSENT = "store.unsent"_kj;
constexpr kj::StringPtr TRAFFIC = "store.traffic."_kj;
constexpr uint TRAFFIC_COUNTS = 7;

// Arrays that only the first worker has.
constexpr kj::StringPtr OF_FIRST[] = {
    "best.weights"_kj, "average.values"_kj, "average.taken"_kj, "average.step"_kj};
// Arrays about a worker's own gradients, or about its current epoch. New workers start with zeros.
constexpr kj::StringPtr OF_RANK[] = {"store.velocities"_kj, "worker.bad_records"_kj};

// An array that may differ between workers, and the words for it in messages.
struct Named {
  kj::StringPtr array;
  kj::StringPtr what;
};
constexpr Named NAMED[] = {
    {"store.optimizer"_kj, "its own optimizer's state"_kj},
    {"store.parameters"_kj, "its own parameters"_kj},
    {"store.velocities"_kj, "the momentum of its compression"_kj},
    {"program.statistics"_kj, "its moving statistics"_kj},
    {"worker.slow_statistics"_kj, "its slow statistics"_kj},
};

bool isIn(kj::ArrayPtr<const kj::StringPtr> names, kj::StringPtr name) {
  for (auto& each: names) {
    if (each == name) return true;
  }
  return false;
}

Type typeOf(const FoundTensor& tensor) {
  if (tensor.type == "F32") return Type::FLOAT32;
  if (tensor.type == "F64") return Type::FLOAT64;
  if (tensor.type == "U64") return Type::UINT64;
  configs::fail("its `", tensor.name, "` has type ", tensor.type);
}

// A PartSaver does not write to the arrays that it visits, so the cast is safe.
kj::ArrayPtr<kj::byte> shown(Bytes bytes) {
  return {const_cast<kj::byte*>(bytes.begin()), bytes.size()};
}

void add(PartSaver& saver, kj::StringPtr name, Type type, Bytes bytes) {
  auto piece = shown(bytes);
  saver.visit(name, type, kj::arrayPtr(&piece, 1));
}

kj::Maybe<const FoundTensor&> find(kj::ArrayPtr<const FoundTensor> tensors, kj::StringPtr name) {
  for (auto& tensor: tensors) {
    if (tensor.name == name) return tensor;
  }
  return nullptr;
}

Bytes valuesOf(kj::ArrayPtr<const FoundTensor> tensors, kj::StringPtr name) {
  KJ_IF_MAYBE(tensor, find(tensors, name)) return tensor->values;
  configs::fail("a part of the checkpoint has no `", name, "`");
}

template <typename T>
kj::Array<T> copyOf(Bytes bytes) {
  auto values = kj::heapArray<T>(bytes.size() / sizeof(T));
  if (values.size() > 0) memcpy(values.begin(), bytes.begin(), values.asBytes().size());
  return values;
}

kj::Array<kj::byte> zeros(size_t size) {
  auto bytes = kj::heapArray<kj::byte>(size);
  memset(bytes.begin(), 0, size);
  return bytes;
}

bool isZero(Bytes bytes) {
  for (auto byte: bytes) {
    if (byte != 0) return false;
  }
  return true;
}

// Returns the sum of the arrays of this name, added in the order of the parts.
kj::Array<float> sumOf(kj::ArrayPtr<const kj::Array<FoundTensor>> workers, kj::StringPtr name) {
  auto sum = copyOf<float>(valuesOf(workers[0], name));
  for (auto& worker: workers.slice(1, workers.size())) {
    auto more = copyOf<float>(valuesOf(worker, name));
    KJ_REQUIRE(more.size() == sum.size(), name, more.size(), sum.size());
    for (auto i: kj::indices(sum)) sum[i] += more[i];
  }
  return sum;
}

// The parts of all shards. An array of a shard holds the values of its slices one after another.
class Slices {
public:
  Slices(kj::ArrayPtr<const Bytes> parts, const rpc::Placement& placement)
      : places(kj::heapArray<Place>(placement.slices.size())) {
    KJ_REQUIRE(parts.size() == placement.shards.size(), parts.size(), placement.shards.size());
    shards = KJ_MAP(part, parts) {
      return tensorsIn(part);
    };
    for (auto shard: kj::indices(placement.shards)) {
      for (auto i: kj::indices(placement.shards[shard])) {
        places[placement.shards[shard][i]] = {shard, i};
      }
    }
  }

  // Returns the values of a slice in an array that has `sizeOf(id)` bytes of every slice.
  Bytes of(rpc::SliceId id, kj::StringPtr name, const rpc::Placement& placement,
      kj::FunctionParam<uint64_t(rpc::SliceId)> sizeOf) const {
    auto& place = places[id];
    auto all = valuesOf(shards[place.shard], name);
    uint64_t begin = 0, total = 0;
    auto& ids = placement.shards[place.shard];
    for (auto i: kj::indices(ids)) {
      if (i < place.index) begin += sizeOf(ids[i]);
      total += sizeOf(ids[i]);
    }
    if (all.size() != total) {
      configs::fail("`", name, "` of a shard has ", all.size(), " bytes instead of ", total);
    }
    return all.slice(begin, begin + sizeOf(id));
  }

  kj::Array<kj::Array<FoundTensor>> shards;

private:
  struct Place {
    size_t shard, index;
  };
  kj::Array<Place> places;
};

}  // namespace

kj::Array<SavedPart> carriedWorkers(
    kj::ArrayPtr<const Bytes> parts, uint workersNow, const rpc::Placement& placement) {
  auto workers = KJ_MAP(part, parts) {
    return tensorsIn(part);
  };
  auto result = kj::heapArrayBuilder<SavedPart>(workersNow);
  for (uint rank = 0; rank < workersNow; rank++) {
    bool isNew = rank >= parts.size();
    auto& own = workers[isNew ? 0 : rank];
    PartSaver saver(parts[0].size());
    for (auto& tensor: own) {
      auto& name = tensor.name;
      // The loop below adds the traffic counts, one array per shard of the new placement.
      if (name.startsWith(TRAFFIC)) continue;
      if (rank > 0 && isIn(OF_FIRST, name)) continue;
      if (name == UNSENT && rank == 0) {
        auto sum = sumOf(workers, UNSENT);
        add(saver, name, typeOf(tensor), sum.asBytes());
      } else if (name == UNSENT || (isNew && isIn(OF_RANK, name))) {
        add(saver, name, typeOf(tensor), zeros(tensor.values.size()));
      } else {
        add(saver, name, typeOf(tensor), tensor.values);
      }
    }
    for (auto shard: kj::indices(placement.shards)) {
      auto name = kj::str(TRAFFIC, shard);
      Bytes counts = nullptr;
      if (!isNew) {
        KJ_IF_MAYBE(tensor, find(own, name)) counts = tensor->values;
      }
      auto none = zeros(TRAFFIC_COUNTS * sizeof(uint64_t));
      add(saver, name, Type::UINT64, counts == nullptr ? none.asPtr() : counts);
    }
    auto found = notesIn(parts[isNew ? 0 : rank]);
    result.add(saver.finish(KJ_MAP(note, found) { return Note{note.name, kj::mv(note.text)}; }));
  }
  return result.finish();
}

kj::Array<SavedPart> carriedShards(kj::ArrayPtr<const Bytes> parts, const rpc::Placement& before,
    const rpc::Placement& now, kj::FunctionParam<uint(const rpc::Slice& slice)> stateArrays) {
  // Where slices begin and end does not depend on the number of shards.
  auto& slices = now.slices;
  KJ_REQUIRE(slices.size() == before.slices.size());
  Slices saved(parts, before);
  auto floats = [&](rpc::SliceId id) { return slices[id].size * sizeof(float); };
  auto states = [&](rpc::SliceId id) { return floats(id) * stateArrays(slices[id]); };
  auto one = [](rpc::SliceId) { return sizeof(uint64_t); };
  bool haveSums = valuesOf(saved.shards[0], "shard.sums").size() > 0;
  // Without this array the values are in the file of weights, which does not depend on the number
  // of shards.
  bool haveValues = find(saved.shards[0], SHARD_VALUES) != nullptr;

  auto result = kj::heapArrayBuilder<SavedPart>(now.shards.size());
  for (auto shard: kj::indices(now.shards)) {
    auto& ids = now.shards[shard];
    PartSaver saver(parts[0].size());
    auto addSlices = [&](kj::StringPtr name, Type type, auto& sizeOf) {
      auto pieces = KJ_MAP(id, ids) {
        return shown(saved.of(id, name, before, sizeOf));
      };
      saver.visit(name, type, pieces);
    };
    addSlices("shard.optimizer", Type::FLOAT32, states);
    if (haveSums) {
      addSlices("shard.sums", Type::FLOAT32, floats);
    } else {
      add(saver, "shard.sums", Type::FLOAT32, nullptr);
    }
    addSlices("shard.versions", Type::UINT64, one);
    addSlices("shard.pushes", Type::UINT64, one);
    addSlices("shard.steps", Type::UINT64, one);
    add(saver, "shard.rested", Type::UINT64, valuesOf(saved.shards[0], "shard.rested"));
    for (auto name: {"shard.pushed"_kj, "shard.dropped"_kj, "shard.staleness"_kj}) {
      auto counts = copyOf<uint64_t>(valuesOf(saved.shards[0], name));
      for (auto& count: counts) count = 0;
      for (auto from: kj::indices(saved.shards)) {
        bool isOwn = from == shard;
        bool isOfGoneShard = shard == 0 && from >= now.shards.size();
        if (!isOwn && !isOfGoneShard) continue;
        auto more = copyOf<uint64_t>(valuesOf(saved.shards[from], name));
        KJ_REQUIRE(more.size() == counts.size(), name);
        for (auto i: kj::indices(counts)) counts[i] += more[i];
      }
      add(saver, name, Type::UINT64, counts.asBytes());
    }
    if (haveValues) addSlices(SHARD_VALUES, Type::FLOAT32, floats);
    result.add(saver.finish());
  }
  return result.finish();
}

kj::Array<kj::String> carriedFacts(kj::ArrayPtr<const Bytes> parts, uint workersNow) {
  auto workers = KJ_MAP(part, parts) {
    return tensorsIn(part);
  };
  kj::Vector<kj::String> facts;
  bool keepsUnsent = false;
  for (auto& worker: workers) {
    KJ_IF_MAYBE(unsent, find(worker, UNSENT)) {
      keepsUnsent = keepsUnsent || !isZero(unsent->values);
    }
  }
  if (keepsUnsent) facts.add(kj::str("what compression had not sent is added up in worker 0"));
  for (size_t rank = workersNow; rank < workers.size(); rank++) {
    kj::Vector<kj::StringPtr> lost;
    for (auto& each: NAMED) {
      KJ_IF_MAYBE(tensor, find(workers[rank], each.array)) {
        // Values that worker 0 has as well are not lost.
        auto first = valuesOf(workers[0], each.array);
        if (tensor->values != first && !isZero(tensor->values)) lost.add(each.what);
      }
    }
    if (lost.size() == 0) continue;
    facts.add(kj::str("what only worker ", rank, " had is lost: ", kj::strArray(lost, ", ")));
  }
  if (workersNow > workers.size()) {
    facts.add(workersNow == workers.size() + 1
                  ? kj::str("worker ", workers.size(), " begins as a copy of worker 0")
                  : kj::str("workers ", workers.size(), " to ", workersNow - 1,
                        " begin as copies of worker 0"));
  }
  return facts.releaseAsArray();
}

}  // namespace runner
