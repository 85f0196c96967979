#include "runner/logs/tensorboard.h"

#include <kj/vector.h>
#include <string.h>

#include <array>
#include <filesystem>

#include "configs/language/failure.h"
#include "runner/logs/run_folder.h"
#include "runner/text/numbers.h"

namespace runner {

namespace {

constexpr std::array<uint32_t, 256> makeCrcTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0u);
    table[i] = crc;
  }
  return table;
}

// The checksum of each single byte.
constexpr std::array<uint32_t, 256> CRC_TABLE = makeCrcTable();

uint32_t maskedCrc32c(kj::ArrayPtr<const kj::byte> bytes) {
  uint32_t crc = crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

// A protobuf message, written field by field. The processor is little-endian, like the format.
class Message {
public:
  void addInteger(uint field, uint64_t value) {
    addKey(field, 0);
    addVarint(value);
  }
  void addDouble(uint field, double value) {
    addKey(field, 1);
    addFixed(value);
  }
  void addFloat(uint field, float value) {
    addKey(field, 5);
    addFixed(value);
  }
  void addBytes(uint field, kj::ArrayPtr<const kj::byte> value) {
    addKey(field, 2);
    addVarint(value.size());
    bytes.addAll(value);
  }

  kj::ArrayPtr<const kj::byte> asBytes() const { return bytes; }

private:
  void addKey(uint field, uint wireType) { addVarint(field << 3 | wireType); }
  void addVarint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes.add(kj::byte(value | 0x80));
    bytes.add(kj::byte(value));
  }
  template <typename T>
  void addFixed(T value) {
    bytes.addAll(kj::arrayPtr(&value, 1).asBytes());
  }

  kj::Vector<kj::byte> bytes;
};

kj::Array<kj::byte> recordOf(const Message& event) {
  auto data = event.asBytes();
  uint64_t length = data.size();
  uint32_t lengthCrc = maskedCrc32c(kj::arrayPtr(&length, 1).asBytes());
  uint32_t dataCrc = maskedCrc32c(data);
  kj::Vector<kj::byte> record(length + 16);
  record.addAll(kj::arrayPtr(&length, 1).asBytes());
  record.addAll(kj::arrayPtr(&lengthCrc, 1).asBytes());
  record.addAll(data);
  record.addAll(kj::arrayPtr(&dataCrc, 1).asBytes());
  return record.releaseAsArray();
}

}  // namespace

uint32_t crc32c(kj::ArrayPtr<const kj::byte> bytes) {
  uint32_t crc = ~0u;
  for (auto byte: bytes) crc = CRC_TABLE[(crc ^ byte) & 0xff] ^ crc >> 8;
  return ~crc;
}

kj::Array<kj::byte> versionRecord(double time_s) {
  Message event;
  event.addDouble(1, time_s);
  event.addBytes(3, "brain.Event:2"_kj.asBytes());
  return recordOf(event);
}

kj::Array<kj::byte> scalarsRecord(
    double time_s, uint64_t step, kj::ArrayPtr<const Scalar> scalars) {
  Message summary;
  for (auto& scalar: scalars) {
    Message value;
    value.addBytes(1, scalar.tag.asBytes());
    value.addFloat(2, scalar.value);
    summary.addBytes(1, value.asBytes());
  }
  Message event;
  event.addDouble(1, time_s);
  event.addInteger(2, step);
  event.addBytes(5, summary.asBytes());
  return recordOf(event);
}

void TensorBoard::removeFrom(kj::StringPtr folder) {
  std::error_code error;
  std::filesystem::remove_all(folder.cStr(), error);
  if (error) configs::fail("cannot remove ", folder, ": ", error.message());
}

void TensorBoard::restart(kj::ArrayPtr<const FileExtent> extents) {
  const auto own = "tensorboard/"_kj;
  for (auto& extent: extents) {
    if (!extent.name.startsWith(own)) continue;
    auto inside = extent.name.slice(own.size());
    auto path = kj::str(folder, "/", inside);
    cutFile(path, extent.bytes);
    auto name = inside.slice(0, KJ_REQUIRE_NONNULL(inside.findFirst('/')));
    files.insert(kj::heapString(name), LineFile(path));
  }
  if (!isFolder(folder)) return;
  for (auto& name: foldersIn(folder)) {
    if (files.find(name) == nullptr) removeFrom(kj::str(folder, "/", name));
  }
}

void TensorBoard::eachFile(kj::FunctionParam<void(const LineFile& file)> take) const {
  for (auto& file: files) take(file.value);
}

void TensorBoard::append(Event::Reader event) {
  auto worker = [&]() { return kj::str("worker-", event.getIndex()); };
  switch (event.which()) {
    case Event::SPEED: {
      auto speed = event.getSpeed();
      add(worker(), event.getTimeS(), speed.getGlobalStep(),
          {{"train/loss", float(speed.getLoss())}, {"train/accuracy", float(speed.getAccuracy())},
              {"images_per_s", float(speed.getImagesPerS())},
              {"learning_rate", float(speed.getLearningRate())}});
      break;
    }
    case Event::TRAINED: {
      auto trained = event.getTrained();
      add(worker(), event.getTimeS(), trained.getGlobalStep(),
          {{"epoch/loss", float(trained.getLoss())},
              {"epoch/accuracy", float(trained.getAccuracy())},
              {"epoch/seconds", float(trained.getTimeS())}});
      break;
    }
    case Event::VALIDATED: {
      // Every worker reports the figure. All report the same one, unless each validates all
      // records. The first report counts, because any worker may be lost before it reports.
      auto validated = event.getValidated();
      if (validated.getEpoch() == validatedEpoch) break;
      validatedEpoch = validated.getEpoch();
      kj::Vector<Scalar> scalars;
      scalars.add(Scalar{"validation/loss", float(validated.getLoss())});
      scalars.add(Scalar{"validation/accuracy", float(validated.getAccuracy())});
      auto topK = validated.getTopK();
      auto tag = kj::str("validation/top_", topK.getK(), "_accuracy");
      if (validated.hasTopK()) scalars.add(Scalar{tag, float(topK.getAccuracy())});
      add("validation", event.getTimeS(), validated.getGlobalStep(), scalars);
      break;
    }
    default:
      break;
  }
}

void TensorBoard::add(
    kj::StringPtr name, double time_s, uint64_t step, kj::ArrayPtr<const Scalar> scalars) {
  auto place = kj::str(folder, "/", name);
  // The coordinator soon notices that the folder of the run is gone.
  if (files.find(name) == nullptr && !(makeFolder(folder) && makeFolder(place))) return;
  auto& file = files.findOrCreate(name, [&]() {
    // TensorBoard reads a folder's files in the order of their names. Ten digits keep that order.
    auto seconds = kj::str(wholeNumber(time_s));
    auto zeros = "0000000000"_kj.slice(kj::min(seconds.size(), size_t(10)));
    LineFile made(kj::str(place, "/events.out.tfevents.", zeros, seconds, ".runner"));
    made.appendWhole(versionRecord(time_s));
    return kj::HashMap<kj::String, LineFile>::Entry{kj::str(name), kj::mv(made)};
  });
  file.appendWhole(scalarsRecord(time_s, step, scalars));
}

}  // namespace runner
