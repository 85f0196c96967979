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
// The largest size of a part of a checkpoint.
constexpr uint64_t PART_BYTES_MAX = 1ull << 40;
// How much memory is allocated before the first piece of a part has arrived.
constexpr uint64_t ROOM_BYTES_MIN = 16 << 20;

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

// A part that is being received.
struct Fetched {
  PartName name;
  uint64_t total = 0;
  kj::Array<kj::byte> room{};  // its capacity may exceed the bytes that have arrived
  uint64_t received = 0;

  // Takes the next piece. The part's size is only a claim of the coordinator, so the memory grows
  // with the bytes that have arrived.
  void take(Session::SavedPartResults::Reader piece) {
    auto bytes = piece.getBytes();
    if (received == 0) {
      total = piece.getTotal();
      KJ_REQUIRE(total <= PART_BYTES_MAX, "a part is too large", total);
    }
    KJ_REQUIRE(bytes.size() > 0 && bytes.size() <= total - received,
        "a piece of a checkpoint does not fit", bytes.size(), received, total);
    uint64_t end = received + bytes.size();
    if (end > room.size()) {
      auto larger = kj::heapArray<kj::byte>(kj::min(total, kj::max(2 * end, ROOM_BYTES_MIN)));
      if (received > 0) memcpy(larger.begin(), room.begin(), received);
      room = kj::mv(larger);
    }
    memcpy(room.begin() + received, bytes.begin(), bytes.size());
    received = end;
  }
};

kj::Promise<kj::Array<kj::byte>> fetchRest(Session::Client session, Fetched part) {
  auto request = session.savedPartRequest();
  request.setPart(part.name.kind);
  request.setIndex(part.name.index);
  request.setOffset(part.received);
  auto sent = request.send();
  return sent.then([session = kj::mv(session), part = kj::mv(part)](
                       capnp::Response<Session::SavedPartResults>&& piece) mutable
      -> kj::Promise<kj::Array<kj::byte>> {
    part.take(piece);
    if (part.received == part.total) return kj::mv(part.room);
    return fetchRest(kj::mv(session), kj::mv(part));
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
    case Part::AVERAGED:
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
  return fetchRest(kj::mv(session), Fetched{name});
}

void readPiece(kj::StringPtr path, uint64_t offset, Session::SavedPartResults::Builder results) {
  int raw = ::open(path.cStr(), O_RDONLY | O_CLOEXEC);
  if (raw < 0) configs::fail("cannot read ", path, ": ", strerror(errno));
  kj::AutoCloseFd fd(raw);
  struct stat facts;
  KJ_SYSCALL(::fstat(fd, &facts), path);
  uint64_t size = facts.st_size;
  KJ_REQUIRE(offset < size, "a role asks for a piece beyond the end of its part", offset, size);
  auto bytes = results.initBytes(kj::min(PIECE_BYTES, size - offset));
  for (size_t done = 0; done < bytes.size();) {
    ssize_t count = ::pread(fd, bytes.begin() + done, bytes.size() - done, offset + done);
    if (count < 0) configs::fail("cannot read ", path, ": ", strerror(errno));
    if (count == 0) configs::fail(path, " became shorter while it was read");
    done += count;
  }
  results.setTotal(size);
}

bool copyPiece(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces, uint64_t offset,
    Session::SavedPartResults::Builder results) {
  uint64_t size = 0;
  for (auto& piece: pieces) size += piece.size();
  KJ_REQUIRE(offset < size, "a role asks for a piece beyond the end of its part", offset, size);
  auto bytes = results.initBytes(kj::min(PIECE_BYTES, size - offset));
  copyPieces(pieces, offset, bytes);
  results.setTotal(size);
  return offset + bytes.size() == size;
}

}  // namespace runner
