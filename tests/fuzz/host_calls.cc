// Messages between `runner host` and its launcher. Even first bytes: calls of a bad launcher, apart
// from those that start programs. Odd ones: answers of a bad host.
#include <kj/async-io.h>
#include <kj/vector.h>
#include <stdlib.h>

#include "io/datasets/datasets.h"
#include "io/testing/image_folder.h"
#include "runner/launch/data_sender.h"
#include "runner/launch/host_agent.h"
#include "tests/fuzz/fuzz.h"

namespace fuzz {
namespace {

// A packed data set of some images.
struct Packed {
  io::ImageFolder scratch;

  Packed() {
    auto folder = scratch.path("packed");
    io::packDataset(scratch.config, folder, io::unheard());
    scratch.config.source = kj::mv(folder);
  }
};
const io::DataConfig& packed() {
  static const Packed PACKED;
  return PACKED.scratch.config;
}

// An event loop, and calls whose results are not awaited.
struct Calls {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  kj::Vector<kj::Promise<void>> calls;

  ~Calls() noexcept(false) { calls.clear(); }

  template <typename Promise>
  void add(Promise&& call) {
    calls.add(
        call.then([](auto&&) {}, [](kj::Exception&& e) { judge(e); }).eagerlyEvaluate(nullptr));
  }
};

void callHost(Dice& dice) {
  // The cache of the host.
  static const auto CACHE = kj::str(folder(), "/cache");
  packed();
  removeFolder("cache");
  ::setenv("RUNNER_CACHE", CACHE.cStr(), 1);
  io::PackedData data(packed());
  Calls all;
  auto agent = runner::newHostAgent(all.io);
  kj::Vector<runner::DataCopy::Client> copies;
  while (!dice.isEmpty()) {
    uint8_t method = dice.byte() % 5;
    if (method == 0 || copies.empty()) {
      auto request = agent.dataRequest();
      uint8_t wrong = dice.byte();
      request.setRecordsSha256(
          wrong == 1 ? kj::str(dice.take(64).asChars()) : kj::str(data.recordsSha256));
      request.setName(wrong == 2 ? kj::str(dice.take(20).asChars()) : kj::str("copied"));
      auto files = request.initFiles(wrong == 3 ? dice.byte() : data.list().size());
      for (auto i: kj::indices(files)) {
        auto& file = data.list()[kj::min(i, data.list().size() - 1)];
        files[i].setName(wrong == 4 ? kj::str(dice.take(20).asChars()) : kj::str(file.name));
        files[i].setBytes(wrong == 5 ? dice.near(200) : file.size_bytes);
      }
      auto response = request.send();
      copies.add(response.getCopy());
      all.add(kj::mv(response));
    } else if (method == 1) {
      auto request = agent.prepareRequest();
      request.setFolder(folder());
      request.setExperiment(kj::str(dice.take(dice.byte()).asChars()));
      request.setSecret(kj::str(dice.take(dice.byte()).asChars()));
      request.setSilenceS(dice.number(4));
      all.add(request.send());
    } else {
      auto& copy = copies[dice.near(copies.size()) % copies.size()];
      if (method == 4) {
        auto request = copy.finishRequest();
        request.setSha256(kj::str(dice.take(dice.byte()).asChars()));
        all.add(request.send());
      } else {
        auto request = copy.writeRequest();
        request.setOffset(dice.near(100));
        request.setBytes(dice.take(dice.byte()));
        all.add(request.send());
      }
    }
    all.io.waitScope.poll();
  }
}

class BadCopy final: public runner::DataCopy::Server {
public:
  explicit BadCopy(Dice& dice): dice(dice) {}

  kj::Promise<void> write(WriteContext) override {
    KJ_REQUIRE(dice.byte() != 1, "the disk is full");
    return kj::READY_NOW;
  }
  kj::Promise<void> finish(FinishContext context) override {
    context.getResults().setFolder(kj::str(dice.take(dice.byte()).asChars()));
    return kj::READY_NOW;
  }

private:
  Dice& dice;
};

class BadHost final: public runner::HostAgent::Server {
public:
  explicit BadHost(Dice& dice): dice(dice) {}

  kj::Promise<void> data(DataContext context) override {
    auto results = context.getResults();
    uint8_t choice = dice.byte();
    if (choice % 4 == 1) results.setFolder(kj::str(dice.take(10).asChars()));
    if (choice % 4 > 1) results.setCopy(kj::heap<BadCopy>(dice));
    results.setPresentBytes(dice.near(200));
    return kj::READY_NOW;
  }

private:
  Dice& dice;
};

void answerLauncher(Dice& dice) {
  constexpr uint TURNS_MAX = 200;
  auto& config = packed();
  Calls all;
  kj::TimerImpl timer(kj::origin<kj::TimePoint>());
  runner::SharedData data(config, timer);
  uint64_t sent_bytes = 0;
  runner::DataSender sender(
      kj::heap<BadHost>(dice), data, [&](uint64_t bytes) { sent_bytes = bytes; });
  all.add(sender.bring());
  for (uint i = 0; i < TURNS_MAX && !dice.isEmpty(); i++) {
    all.io.waitScope.poll();
    timer.advanceTo(timer.now() + 1 * kj::MILLISECONDS);
  }
  must(sent_bytes <= data.packed.size_bytes(), "more is sent than there is");
  all.calls.clear();
}

}  // namespace

void feed(Bytes input) {
  Dice dice(input);
  if (dice.byte() % 2 == 0) {
    callHost(dice);
  } else {
    answerLauncher(dice);
  }
}

}  // namespace fuzz
