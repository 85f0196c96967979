#include "runner/launch/data_sender.h"

#include <kj/debug.h>

#include "configs/language/failure.h"
#include "runner/launch/paced_sum.h"

namespace runner {

namespace {

// Pieces are small, so that a slow connection is never silent for long. So many are in flight that
// a fast connection with a long round-trip time stays busy.
constexpr size_t PIECE_BYTES = 64 << 10;
constexpr kj::uint PIECES_UNDER_WAY = 32;

}  // namespace

kj::Promise<kj::String> SharedData::sum() {
  if (known == nullptr) {
    known = pacedSum(packed, timer).then([this](kj::String text) { digits = kj::mv(text); }).fork();
  }
  return KJ_ASSERT_NONNULL(known).addBranch().then([this]() { return kj::str(digits); });
}

DataSender::DataSender(HostAgent::Client agent, SharedData& data, kj::Function<void(uint64_t)> sent)
    : agent(kj::mv(agent)), data(data), sent(kj::mv(sent)) {}

kj::Promise<kj::String> DataSender::bring() {
  auto request = agent.dataRequest();
  request.setRecordsSha256(data.packed.recordsSha256);
  request.setName(data.packed.name);
  auto from = data.packed.list();
  auto files = request.initFiles(from.size());
  for (size_t i: kj::indices(from)) {
    files[i].setName(from[i].name);
    files[i].setBytes(from[i].size_bytes);
  }
  return request.send()
      .then([this](capnp::Response<HostAgent::DataResults>&& answer) -> kj::Promise<void> {
        if (!answer.hasCopy()) {
          folder = kj::str(answer.getFolder());
          return kj::READY_NOW;
        }
        copy = answer.getCopy();
        // A host that has too many bytes gets no more, and finds that the checksum is wrong.
        return sendFrom(kj::min(answer.getPresentBytes(), data.packed.size_bytes()), false);
      })
      .then([this]() {
        copy = nullptr;
        return kj::mv(folder);
      });
}

kj::Promise<void> DataSender::sendFrom(uint64_t offset, bool isAnew) {
  next = taken = offset;
  sent(taken);
  auto lanes = kj::heapArrayBuilder<kj::Promise<void>>(PIECES_UNDER_WAY);
  for (kj::uint i = 0; i < PIECES_UNDER_WAY; i++) lanes.add(sendPieces());
  // The checksum is computed while the pieces travel.
  auto sum = data.sum().eagerlyEvaluate(nullptr);
  return kj::joinPromises(lanes.finish())
      .then([sum = kj::mv(sum)]() mutable { return kj::mv(sum); })
      .then([this](kj::String sum) {
        auto request = KJ_ASSERT_NONNULL(copy).finishRequest();
        request.setSha256(sum);
        return request.send();
      })
      .then([this, isAnew](capnp::Response<DataCopy::FinishResults>&& answer) -> kj::Promise<void> {
        folder = kj::str(answer.getFolder());
        if (folder.size() > 0) return kj::READY_NOW;
        if (!isAnew) return sendFrom(0, true);
        configs::fail("the copy of the data set arrived damaged twice; check the disk there");
      });
}

kj::Promise<void> DataSender::sendPieces() {
  auto count = kj::min(PIECE_BYTES, data.packed.size_bytes() - next);
  if (count == 0) return kj::READY_NOW;
  auto request = KJ_ASSERT_NONNULL(copy).writeRequest();
  request.setOffset(next);
  data.packed.read(next, request.initBytes(count));
  next += count;
  return request.send().then([this, count](auto&&) {
    taken += count;
    sent(taken);
    return sendPieces();
  });
}

}  // namespace runner
