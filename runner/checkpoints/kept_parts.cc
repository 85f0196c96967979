#include "runner/checkpoints/kept_parts.h"

#include <kj/debug.h>
#include <kj/vector.h>

#include "configs/language/failure.h"

namespace runner {

namespace {

using Bytes = kj::ArrayPtr<const kj::byte>;

kj::Array<Note> notesOf(const FoundContents& contents) {
  return KJ_MAP(note, contents.notes) {
    return Note{note.name, kj::str(note.text)};
  };
}

// Some arrays of a file: their entries in the header, and their values.
struct Arrays {
  kj::Vector<Tensor> tensors;
  Bytes values;
};

// Returns the first `count` arrays of a file.
Arrays firstOf(Bytes file, const FoundContents& contents, size_t count) {
  auto values = KJ_ASSERT_NONNULL(valuesIn(file));
  Arrays first;
  uint64_t size = 0;
  for (auto& array: contents.tensors.slice(0, count)) {
    if (array.values.begin() != values.begin() + size) configs::fail("its arrays are not in order");
    size += array.values.size();
    first.tensors.add(
        Tensor{kj::str(array.name), array.type, kj::str(array.shape), array.values.size()});
  }
  first.values = values.slice(0, size);
  return first;
}

}  // namespace

KeptPart withoutLast(Bytes part, const FoundContents& contents, kj::StringPtr last) {
  size_t count = contents.tensors.size();
  if (count > 0 && contents.tensors[count - 1].name == last) count--;
  auto kept = firstOf(part, contents, count);
  return {safetensorsHead(notesOf(contents), kept.tensors), kept.values};
}

WholePart wholeShard(Bytes file, Bytes weights, const rpc::Placement& placement, uint shard) {
  auto contents = contentsOf(file);
  for (auto& array: contents.tensors) {
    if (array.name == SHARD_VALUES) return {nullptr, kj::arr(file)};
  }
  Bytes flat = nullptr;
  KJ_IF_MAYBE(all, valuesIn(weights)) flat = *all;
  if (flat.size() < placement.parameters() * sizeof(float)) {
    configs::fail("the file of weights has fewer values than the experiment has parameters");
  }
  kj::Vector<Bytes> slices;
  uint64_t size = 0;
  for (auto id: placement.shards[shard]) {
    auto& slice = placement.slices[id];
    slices.add(
        flat.slice(slice.offset * sizeof(float), (slice.offset + slice.size) * sizeof(float)));
    size += slice.size;
  }
  auto [tensors, values] = firstOf(file, contents, contents.tensors.size());
  tensors.add(Tensor{kj::str(SHARD_VALUES), "F32"_kj, kj::str(size), size * sizeof(float)});
  auto head = safetensorsHead(notesOf(contents), tensors);
  kj::Vector<Bytes> pieces;
  pieces.add(head);
  pieces.add(values);
  pieces.addAll(slices);
  return {kj::mv(head), pieces.releaseAsArray()};
}

}  // namespace runner
