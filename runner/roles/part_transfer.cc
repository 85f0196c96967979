#include "runner/roles/part_transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "configs/language/failure.h"
#include "runner/checkpoints/checkpoints.h"

namespace runner {

namespace {

constexpr uint64_t PIECE_BYTES = 512 << 10;
// No part of a checkpoint is larger.
constexpr uint64_t PART_BYTES_MAX = 1ull << 40;

kj::Promise<void> sendFrom(Session::Client session, uint64_t step, PartName name,
    kj::Own<SavedPart> part, uint64_t offset) {
  auto request = session.savePartRequest();
  request.setStep(step);
  request.setPart(name.kind);
  request.setIndex(name.index);
  request.setTotal(part->size());
  request.setOffset(offset);
  uint64_t bytes = kj::min(PIECE_BYTES, part->size() - offset);
  part->copy(offset, request.initBytes(bytes));
  auto sent = request.send();
  return sent.then([session = kj::mv(session), step, name, part = kj::mv(part),
                       next = offset + bytes](auto&&) mutable -> kj::Promise<void> {
    if (next == part->size()) return kj::READY_NOW;
    return sendFrom(kj::mv(session), step, name, kj::mv(part), next);
  });
}

kj::Promise<kj::Array<kj::byte>> fetchFrom(
    Session::Client session, PartName name, kj::Array<kj::byte> part, uint64_t offset) {
  auto request = session.savedPartRequest();
  request.setPart(name.kind);
  request.setIndex(name.index);
  request.setOffset(offset);
  auto sent = request.send();
  return sent.then([session = kj::mv(session), name, part = kj::mv(part), offset](
                       capnp::Response<Session::SavedPartResults>&& piece) mutable
      -> kj::Promise<kj::Array<kj::byte>> {
    auto bytes = piece.getBytes();
    if (offset == 0) {
      KJ_REQUIRE(piece.getTotal() <= PART_BYTES_MAX, "a part is too large", piece.getTotal());
      part = kj::heapArray<kj::byte>(piece.getTotal());
    }
    KJ_REQUIRE(bytes.size() > 0 && bytes.size() <= part.size() - offset,
        "a piece of a checkpoint does not fit", bytes.size(), offset, part.size());
    memcpy(part.begin() + offset, bytes.begin(), bytes.size());
    uint64_t next = offset + bytes.size();
    if (next == part.size()) return kj::mv(part);
    return fetchFrom(kj::mv(session), name, kj::mv(part), next);
  });
}

}  // namespace

kj::String PartName::file() const {
  switch (kind) {
    case Part::WORKER:
      return workerPartName(index);
    case Part::SHARD:
      return shardPartName(index);
    case Part::BEST:
      break;
  }
  configs::fail("a checkpoint has no such part");
}

void IncomingPart::take(Session::SavePartParams::Reader piece, uint64_t most) {
  auto next = piece.getBytes();
  if (bytes == nullptr) {
    KJ_REQUIRE(
        piece.getTotal() > 0 && piece.getTotal() <= most, "a part is too large", piece.getTotal());
    bytes = kj::heapArray<kj::byte>(piece.getTotal());
  }
  KJ_REQUIRE(
      piece.getOffset() == received && next.size() > 0 && next.size() <= bytes.size() - received,
      "a piece of a part is not the next one", piece.getOffset(), received);
  memcpy(bytes.begin() + received, next.begin(), next.size());
  received += next.size();
}

kj::Promise<void> sendPart(Session::Client session, uint64_t step, PartName name, SavedPart part) {
  return sendFrom(kj::mv(session), step, name, kj::heap(kj::mv(part)), 0);
}

kj::Promise<kj::Array<kj::byte>> fetchPart(Session::Client session, PartName name) {
  return fetchFrom(kj::mv(session), name, nullptr, 0);
}

void readPiece(kj::StringPtr path, uint64_t offset, Session::SavedPartResults::Builder results) {
  int raw = ::open(path.cStr(), O_RDONLY | O_CLOEXEC);
  if (raw < 0) configs::fail("cannot read ", path, ": ", strerror(errno));
  kj::AutoCloseFd fd(raw);
  struct stat facts;
  KJ_SYSCALL(::fstat(fd, &facts), path);
  uint64_t size = facts.st_size;
  KJ_REQUIRE(offset < size, "a role asks for a piece behind the end of its part", offset, size);
  auto bytes = results.initBytes(kj::min(PIECE_BYTES, size - offset));
  for (size_t done = 0; done < bytes.size();) {
    ssize_t count = ::pread(fd, bytes.begin() + done, bytes.size() - done, offset + done);
    if (count < 0) configs::fail("cannot read ", path, ": ", strerror(errno));
    if (count == 0) configs::fail(path, " became shorter while it was read");
    done += count;
  }
  results.setTotal(size);
}

bool copyPiece(kj::ArrayPtr<const kj::byte> part, uint64_t offset,
    Session::SavedPartResults::Builder results) {
  KJ_REQUIRE(offset < part.size(), "a role asks for a piece behind the end of its part", offset);
  auto end = kj::min(offset + PIECE_BYTES, part.size());
  results.setBytes(part.slice(offset, end));
  results.setTotal(part.size());
  return end == part.size();
}

}  // namespace runner
