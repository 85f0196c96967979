#include "runner/checkpoints/saved_part.h"

#include <kj/debug.h>

#include <cstring>

#include "configs/language/failure.h"

namespace runner {

namespace {

struct TypeRow {
  kj::StringPtr name;
  uint64_t bytes;
};

// By configs::StateVisitor::Type.
constexpr TypeRow TYPES[] = {{"F32"_kj, 4}, {"F64"_kj, 8}, {"U64"_kj, 8}};

uint64_t sizeOf(kj::ArrayPtr<const kj::ArrayPtr<kj::byte>> pieces) {
  uint64_t size = 0;
  for (auto& piece: pieces) size += piece.size();
  return size;
}

}  // namespace

void copyPieces(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces, uint64_t offset,
    kj::ArrayPtr<kj::byte> target) {
  for (auto& source: pieces) {
    uint64_t from = kj::min(offset, source.size());
    uint64_t count = kj::min(source.size() - from, target.size());
    if (count > 0) memcpy(target.begin(), source.begin() + from, count);
    target = target.slice(count, target.size());
    offset -= from;
  }
  KJ_REQUIRE(target.size() == 0, "the pieces are too short", target.size());
}

void SavedPart::copy(uint64_t offset, kj::ArrayPtr<kj::byte> target) const {
  kj::ArrayPtr<const kj::byte> pieces[] = {head, values};
  copyPieces(pieces, offset, target);
}

void PartSaver::visit(
    kj::StringPtr name, Type type, kj::ArrayPtr<const kj::ArrayPtr<kj::byte>> pieces) {
  for (auto& tensor: tensors) KJ_REQUIRE(tensor.name != name, "two arrays share a name", name);
  auto& row = TYPES[size_t(type)];
  uint64_t size = sizeOf(pieces);
  tensors.add(Tensor{kj::str(name), row.name, kj::str(size / row.bytes), size});
  for (auto& piece: pieces) values.addAll(piece);
}

SavedPart PartSaver::finish(kj::ArrayPtr<const Note> notes) {
  return {safetensorsHead(notes, tensors), values.releaseAsArray()};
}

PartLoader::PartLoader(kj::ArrayPtr<const kj::byte> bytes) {
  for (auto& tensor: tensorsIn(bytes)) {
    auto name = kj::str(tensor.name);
    if (tensors.find(name) != nullptr) configs::fail("it has `", name, "` twice");
    tensors.insert(kj::mv(name), kj::mv(tensor));
  }
}

void PartLoader::visit(
    kj::StringPtr name, Type type, kj::ArrayPtr<const kj::ArrayPtr<kj::byte>> pieces) {
  KJ_IF_MAYBE(tensor, tensors.find(name)) {
    auto values = tensor->values;
    if (tensor->type != TYPES[size_t(type)].name || values.size() != sizeOf(pieces)) {
      configs::fail("its `", name, "` has another type or size than this experiment's");
    }
    for (auto piece: pieces) {
      if (piece.size() == 0) continue;
      memcpy(piece.begin(), values.begin(), piece.size());
      values = values.slice(piece.size(), values.size());
    }
    tensors.erase(name);
  } else {
    configs::fail("it has no `", name, "`");
  }
}

void PartLoader::finish() const {
  for (auto& entry: tensors) {
    configs::fail("it has `", entry.key, "`, which this experiment does not have");
  }
}

}  // namespace runner
