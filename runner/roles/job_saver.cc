#include "runner/roles/job_saver.h"

#include <kj/debug.h>
#include <string.h>

#include "configs/language/failure.h"
#include "runner/checkpoints/kept_parts.h"
#include "runner/checkpoints/safetensors.h"
#include "runner/checkpoints/weights.h"
#include "runner/roles/disk_work.h"
#include "runner/roles/lost_role.h"
#include "runner/system/reason.h"

namespace runner {

namespace {

// How many times the workers are asked again to stop. Each request names a later step.
constexpr uint ATTEMPTS = 8;

// The answers to stopAt() from the workers that have not been lost.
struct Answers {
  kj::Vector<Member::Client> present, agreed;
  bool epochEnds = false;  // for at least one of them, the epoch ends before that step
  bool haveBegun = true;   // all of them
  uint64_t furthest = 0;   // the most steps that one of them has begun

  bool allAgree() const { return agreed.size() == present.size(); }
};

kj::Promise<Answers> stopAt(kj::Array<Member::Client> workers, uint64_t step) {
  using Response = capnp::Response<Member::StopAtResults>;
  auto calls = KJ_MAP(worker, workers) {
    auto request = worker.stopAtRequest();
    request.setStep(step);
    return request.send().then(
        [](Response&& response) -> kj::Maybe<Response> { return kj::mv(response); },
        [](kj::Exception&& e) -> kj::Maybe<Response> {
          unlessLost(kj::mv(e));
          return nullptr;
        });
  };
  return kj::joinPromises(kj::mv(calls))
      .then([workers = kj::mv(workers)](kj::Array<kj::Maybe<Response>> responses) mutable {
        Answers answers;
        for (auto i: kj::indices(responses)) {
          KJ_IF_MAYBE(response, responses[i]) {
            bool agrees = response->getAnswer() == StopAnswer::YES;
            bool ends = response->getAnswer() == StopAnswer::EPOCH_ENDS;
            answers.epochEnds = answers.epochEnds || ends;
            answers.haveBegun = answers.haveBegun && (agrees || response->getStep() > 0);
            answers.furthest = kj::max(answers.furthest, response->getStep());
            answers.present.add(workers[i]);
            if (agrees) answers.agreed.add(workers[i]);
          }
        }
        return answers;
      });
}

// Tells the workers that wait at `step` whether they are saved there.
kj::Promise<void> decide(Answers& answers, uint64_t step) {
  auto told = KJ_MAP(worker, answers.agreed) {
    auto request = worker.decideRequest();
    request.setStep(step);
    request.setSave(answers.allAgree());
    return evenIfLost(request.send().ignoreResult());
  };
  return kj::joinPromises(kj::mv(told));
}

// Returns the floats of the array with this name in a worker's part.
kj::ArrayPtr<const float> floatsIn(
    kj::ArrayPtr<const FoundTensor> arrays, kj::StringPtr name, uint64_t size) {
  for (auto& array: arrays) {
    if (array.name != name) continue;
    auto& bytes = array.values;
    if (bytes.size() != size * sizeof(float)) {
      configs::fail(
          "its array `", name, "` has ", bytes.size(), " bytes, and not ", size * sizeof(float));
    }
    if (uintptr_t(bytes.begin()) % alignof(float) != 0) {
      configs::fail("its array `", name, "` does not begin at a multiple of 4 bytes");
    }
    return kj::arrayPtr(reinterpret_cast<const float*>(bytes.begin()), size);
  }
  configs::fail("it lacks the array `", name, "`");
}

}  // namespace

JobSaver::JobSaver(const Experiment& experiment, kj::StringPtr digest, const nn::Graph& graph,
    const RunFolder& folder, kj::Timer& timer, Outcome outcome,
    kj::Maybe<const OneThread&> oneThread)
    : experiment(experiment),
      digest(digest),
      graph(graph),
      folder(folder),
      timer(timer),
      oneThread(oneThread),
      outcome(kj::mv(outcome)),
      logs(folder.path) {}

JobSaver::~JobSaver() noexcept(false) {
  writing = nullptr;
}

bool JobSaver::takeNextEpoch() {
  bool taken = nextEpoch;
  nextEpoch = false;
  return taken;
}

kj::Promise<void> JobSaver::ask(kj::Array<Member::Client> workers, uint64_t furthest) {
  KJ_REQUIRE(!isBusy());
  isAsking = true;
  return ask(kj::mv(workers), furthest, 0)
      .then([this]() { isAsking = false; },
          [this](kj::Exception&& e) {
            isAsking = false;
            kj::throwFatalException(kj::mv(e));
          });
}

void JobSaver::endEpoch() {
  if (asked == nullptr || isAsking) return;
  // A worker that joined has moved the end of the epoch to before the step where the workers had
  // agreed to stop.
  asked = nullptr;
  nextEpoch = true;
}

kj::Promise<void> JobSaver::ask(
    kj::Array<Member::Client> workers, uint64_t furthest, uint attempt) {
  uint64_t step = furthest + (2u << attempt);
  asked = step;
  return stopAt(kj::mv(workers), step).then([this, step, attempt](Answers&& answers) {
    auto told = decide(answers, step);
    return told.then([this, attempt, answers = kj::mv(answers)]() mutable -> kj::Promise<void> {
      auto& present = answers.present;
      if (answers.allAgree() && present.size() > 0) return kj::READY_NOW;
      if (!answers.epochEnds && attempt < ATTEMPTS && present.size() > 0) {
        return ask(present.releaseAsArray(), answers.furthest, attempt + 1);
      }
      nextEpoch = nextEpoch || answers.haveBegun;
      asked = nullptr;
      return kj::READY_NOW;
    });
  });
}

kj::Promise<void> JobSaver::gather(
    SavedPoint point, kj::Array<uint> ranks, kj::Array<Member::Client> shards) {
  uint64_t step = point.step;
  next = step;
  return whenIdle().then([this, step, point = kj::mv(point), ranks = kj::mv(ranks),
                             shards = kj::mv(shards)]() mutable -> kj::Promise<void> {
    forgetAskedUpTo(step);
    bool isAbandoned = next == nullptr;
    next = nullptr;
    if (isAbandoned) return kj::READY_NOW;
    auto& now = gathering.emplace(Gathering{kj::mv(point), timer.now()});
    for (uint rank: ranks) now.parts.add(IncomingPart{{Part::WORKER, rank}});
    for (uint shard: kj::indices(shards)) now.parts.add(IncomingPart{{Part::SHARD, shard}});
    auto copied = KJ_MAP(shard, shards) {
      auto request = shard.saveShardRequest();
      request.setStep(step);
      return request.send().ignoreResult();
    };
    return kj::joinPromises(kj::mv(copied)).then([this]() {
      KJ_IF_MAYBE(now, gathering) now->stood = timer.now() - now->begun;
    });
  });
}

void JobSaver::forgetAskedUpTo(uint64_t step) {
  KJ_IF_MAYBE(at, asked) {
    if (*at <= step) asked = nullptr;
  }
}

void JobSaver::giveUp(uint64_t step) {
  forgetAskedUpTo(step);
  abandoned = step;
}

kj::Maybe<kj::ArrayPtr<const kj::byte>> JobSaver::partOf(uint rank) const {
  KJ_IF_MAYBE(now, gathering) {
    for (auto& part: now->parts) {
      if (part.name == PartName{Part::WORKER, rank} && part.isWhole()) return part.bytes.asPtr();
    }
  }
  return nullptr;
}

bool JobSaver::gathers(uint64_t step) const {
  KJ_IF_MAYBE(now, gathering) return now->point.step == step;
  return false;
}

bool JobSaver::abandon(uint rank) {
  bool any = next != nullptr;
  KJ_IF_MAYBE(step, next) abandoned = *step;
  next = nullptr;
  KJ_IF_MAYBE(now, gathering) {
    for (auto& part: now->parts) {
      if (!(part.name == PartName{Part::WORKER, rank}) || part.isWhole()) continue;
      abandoned = kj::max(abandoned.orDefault(0), now->point.step);
      end();
      return true;
    }
  }
  return any;
}

void JobSaver::take(PartName name, Session::SavePartParams::Reader piece) {
  // Checkpoints are written in order, so an older one that was not given up is complete.
  KJ_IF_MAYBE(step, abandoned) {
    if (piece.getStep() <= *step && !gathers(piece.getStep())) return;
  }
  auto& now = KJ_REQUIRE_NONNULL(gathering, "a role sends a part, but nothing is being saved");
  KJ_REQUIRE(piece.getStep() == now.point.step, "a role sends a part of another checkpoint",
      piece.getStep(), now.point.step);
  for (auto& part: now.parts) {
    if (!(part.name == name)) continue;
    // A part holds a few arrays: values, their optimizer's state, and the state of compression. In
    // some modes, a shard also keeps values or gradients of each worker.
    uint64_t arrays = 64 + 4 * experiment.cluster.seats();
    part.take(
        piece, arrays * (graph.parameters + graph.statisticsSize) * sizeof(float) + (64 << 20));
    if (part.isWhole()) writeIfWhole();
    return;
  }
  KJ_FAIL_REQUIRE("this job has no such part", name.file());
}

bool JobSaver::isWhole() const {
  KJ_IF_MAYBE(now, gathering) {
    for (auto& part: now->parts) {
      if (!part.isWhole()) return false;
    }
    return true;
  }
  return false;
}

kj::Promise<void> JobSaver::whenWritten() {
  if (!isWhole()) return kj::READY_NOW;
  return whenIdle();
}

void JobSaver::writeIfWhole() {
  auto& now = KJ_ASSERT_NONNULL(gathering);
  if (!isWhole()) return;
  auto bytes = kj::heap<uint64_t>(0);
  auto work = [this, &now, files = filesOf(now), &bytes = *bytes]() {
    bytes = writeCheckpoint(folder, now.point, files, experiment.checkpoint.keep, logs);
  };
  writing =
      besideLoop(oneThread, kj::mv(work))
          .then(
              [this, &now, bytes = kj::mv(bytes)]() {
                auto seconds = [](kj::Duration time) { return time / kj::NANOSECONDS * 1e-9; };
                Saved saved{*bytes, seconds(timer.now() - now.begun), seconds(now.stood)};
                outcome(now.point, saved, nullptr);
              },
              [this, &now](
                  kj::Exception&& failure) { outcome(now.point, nullptr, reasonOf(failure)); })
          .then([this]() { end(); })
          .eagerlyEvaluate(nullptr);
}

// Returns the files that the thread writes. They refer to memory of this object.
kj::Array<CheckpointFile> JobSaver::filesOf(const Gathering& now) {
  kj::Vector<CheckpointFile> files;
  heads.clear();
  meanStatistics = kj::heapArray<float>(graph.statisticsSize);
  auto sums = kj::heapArray<double>(graph.statisticsSize);
  for (auto& sum: sums) sum = 0;
  kj::Maybe<kj::ArrayPtr<const float>> parameters;
  uint workers = 0;
  for (auto& part: now.parts) {
    auto bytes = part.bytes.asPtr().asConst();
    bool isShard = part.name.kind == Part::SHARD;
    if (isShard && parameters != nullptr) {
      files.add(CheckpointFile{part.name.file(), kj::arr(bytes)});
      continue;
    }
    auto contents = contentsOf(bytes);
    if (!isShard) {
      auto& tensors = contents.tensors;
      auto statistics = floatsIn(tensors, "program.statistics", graph.statisticsSize);
      for (auto i: kj::indices(sums)) sums[i] += statistics[i];
      // The first worker's part has them. Workers come before shards.
      if (workers++ == 0 && tensors.size() > 0 && tensors.back().name == SENT_PARAMETERS) {
        parameters = floatsIn(tensors, SENT_PARAMETERS, graph.parameters);
      }
    }
    // The file of weights has the parameters.
    auto kept = withoutLast(bytes, contents, isShard ? SHARD_VALUES : SENT_PARAMETERS);
    heads.add(kj::mv(kept.head));
    files.add(
        CheckpointFile{part.name.file(), kj::arr(heads.back().asPtr().asConst(), kept.values)});
  }
  for (auto i: kj::indices(sums)) {
    meanStatistics[i] = float(sums[i] / workers);
  }
  heads.add(weightsHead(graph, digest));
  kj::Vector<kj::ArrayPtr<const kj::byte>> weights;
  weights.add(heads.back());
  KJ_IF_MAYBE(own, parameters) {
    weights.add(own->asBytes());
  } else {
    weights.addAll(parametersIn(now));
  }
  weights.add(meanStatistics.asPtr().asConst().asBytes());
  files.add(CheckpointFile{kj::str(CHECKPOINT_WEIGHTS), weights.releaseAsArray()});
  return files.releaseAsArray();
}

// Returns the parameters in their order, slice by slice, from the parts of the shards.
kj::Vector<kj::ArrayPtr<const kj::byte>> JobSaver::parametersIn(const Gathering& now) const {
  auto placement = placementOf(experiment, graph);
  kj::Vector<kj::ArrayPtr<const float>> left;  // by shard: the values that have not been added yet
  for (uint shard: kj::indices(placement.shards)) {
    uint64_t size = 0;
    for (auto id: placement.shards[shard]) size += placement.slices[id].size;
    for (auto& part: now.parts) {
      if (!(part.name == PartName{Part::SHARD, shard})) continue;
      left.add(floatsIn(tensorsIn(part.bytes), SHARD_VALUES, size));
    }
    KJ_REQUIRE(left.size() == shard + 1, "neither a worker nor the shards have sent parameters");
  }
  kj::Vector<kj::ArrayPtr<const kj::byte>> pieces;
  for (auto& slice: placement.slices) {
    auto& values = left[slice.shard];
    pieces.add(values.slice(0, slice.size).asBytes());
    values = values.slice(slice.size, values.size());
  }
  return pieces;
}

void JobSaver::end() {
  gathering = nullptr;
  waiting.wakeAll();
}

kj::Promise<void> JobSaver::whenIdle() {
  if (gathering == nullptr) return kj::READY_NOW;
  return waiting.wait();
}

}  // namespace runner
