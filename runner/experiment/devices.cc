#include "runner/experiment/devices.h"

#include <kj/vector.h>
#include <string.h>

#include "nn/cpu/cpu.h"
#include "nn/cuda/cuda.h"
#include "nn/cuda/presence.h"
#include "runner/text/numbers.h"

namespace runner {

namespace {

struct Device {
  const char* kind;  // a row of KINDS
  uint index;
};

constexpr const char* CPU = "cpu";
constexpr const char* CUDA = "cuda";
constexpr const char* KINDS[] = {CPU, CUDA};

// The error about a word, and what to do.
struct Complaint {
  kj::String what;
  kj::String help;
};

kj::OneOf<Device, Complaint> parse(kj::StringPtr word) {
  for (auto kind: KINDS) {
    if (word == kind) return Device{kind, 0};
    if (!word.startsWith(kj::str(kind, ':'))) continue;
    KJ_IF_MAYBE(index, parseWhole(word.slice(strlen(kind) + 1), 9999)) {
      return Device{kind, uint(*index)};
    }
    return Complaint{kj::str(" has no number from 0 to 9999 after its colon"),
        kj::str("write \"", kind, ":0\"")};
  }
  return Complaint{kj::str(" is not known"),
      kj::str("known: \"cpu\", \"cpu:0\", \"cpu:1\", …, \"cuda\", \"cuda:0\", \"cuda:1\", …")};
}

bool operator==(const Device& a, const Device& b) {
  return a.kind == b.kind && a.index == b.index;
}

}  // namespace

void checkDevices(configs::Reader& reader, kj::ArrayPtr<const kj::String> devices,
    const rpc::ModeRow& mode, uint batchSize) {
  if (reader.isManual() || !reader.isRight("cluster.devices")) return;
  kj::Vector<Device> known;
  for (auto& word: devices) {
    auto complain = [&](const Complaint& complaint) {
      reader.error(
          "cluster.devices", kj::str("device `", word, "`", complaint.what), complaint.help);
    };
    auto parsed = parse(word);
    KJ_SWITCH_ONEOF(parsed) {
      KJ_CASE_ONEOF(complaint, Complaint) {
        complain(complaint);
      }
      KJ_CASE_ONEOF(device, Device) {
        for (auto& other: known) {
          if (other != device) continue;
          complain({kj::str(" is named twice"),
              kj::str('"', device.kind, "\" means \"", device.kind, ":0\"")});
        }
        known.add(device);
      }
    }
  }
  if (devices.size() == 0) {
    reader.error(
        "cluster.devices", "a worker needs at least one device", "write devices = [\"cpu\"]");
  } else if (devices.size() > 1 && !mode.severalDevices) {
    reader.error("cluster.devices", kj::str("mode `", mode.name, "` allows only one device"),
        "choose kvstore.mode = \"device\" for several", {"kvstore.mode"_kj});
  } else if (devices.size() > batchSize) {
    reader.error("cluster.devices",
        kj::str("a batch of ", batchSize, batchSize == 1 ? " image" : " images",
            " cannot be divided among ", devices.size(), " devices"),
        "make data.batch_size larger, or name fewer devices", {"data.batch_size"_kj});
  }
}

kj::Maybe<kj::String> whyNotHere(kj::StringPtr word) {
  auto device = parse(word).get<Device>();
  if (device.kind == CPU) return nullptr;
  return nn::cuda::whyNot(nn::cuda::presence(), device.index);
}

bool isGpu(kj::StringPtr word) {
  auto parsed = parse(word);
  return parsed.is<Device>() && parsed.get<Device>().kind == CUDA;
}

bool haveGpu(kj::ArrayPtr<const kj::String> devices) {
  for (auto& device: devices) {
    if (isGpu(device)) return true;
  }
  return false;
}

nn::Target targetOf(kj::StringPtr word) {
  auto device = parse(word).get<Device>();
  return {device.kind == CPU ? &nn::CPU : &nn::cuda::CUDA, device.index};
}

kj::Array<kj::String> devicesAfter(kj::ArrayPtr<const kj::String> devices, uint others) {
  uint gpus = 0;
  for (auto& word: devices) gpus += isGpu(word) ? 1 : 0;
  return KJ_MAP(word, devices) {
    if (!isGpu(word) || others == 0) return kj::str(word);
    return kj::str(CUDA, ":", parse(word).get<Device>().index + others * gpus);
  };
}

kj::String describeDevices() {
  auto cpu = kj::str("cpu: ", nn::instructionSet(), "\n");
  auto& found = nn::cuda::presence();
  if (found.gpus.size() == 0) return kj::str(cpu, "cuda: ", found.whyNone, "\n");
  kj::Vector<kj::String> lines;
  for (uint i = 0; i < found.gpus.size(); ++i) {
    auto& gpu = found.gpus[i];
    auto tenthsOfGiB = gpu.memory_bytes * 10 >> 30;
    auto why = nn::cuda::whyNot(found, i).map(
        [](kj::StringPtr why) { return kj::str("; cannot be used: ", why); });
    lines.add(kj::str("cuda:", i, ": ", gpu.name, ", ", tenthsOfGiB / 10, '.', tenthsOfGiB % 10,
        " GiB, compute capability ", gpu.major, '.', gpu.minor, why.orDefault(kj::str()), "\n"));
  }
  return kj::str(cpu, kj::strArray(lines, ""));
}

}  // namespace runner
