#include "nn/cpu/lowering.h"

#include <algorithm>

#include "nn/cpu/backward.h"
#include "nn/cpu/fold.h"
#include "nn/cpu/forward.h"

namespace nn::cpu {
namespace {

// Returns the number of values that the largest tensor of a chunk may have. Input, output and their
// gradients should stay together in the caches that a core need not share. The number depends on
// nothing but the kernels, because it decides in which order gradients are added up. Medians of
// three alternating runs with two threads:
// - AVX2, Zen 3, 512 KiB of L2: with a quarter of a million values instead of a million, a step of
//   resnet-56 takes 0.77 of the time, airbench94 0.82, inception-bn-28-small 0.84, inception-bn at
//   224 0.98, lenet the same. Half a million and an eighth are slower than a quarter. Only
//   resnet-56 gains another 4 % from an eighth.
// - AVX-512, Zen 4, 1 MiB of L2, inception-bn-28-small: with floats, tensors of 2.5 to 8 MiB differ
//   by at most 2 %, and 1.25 and 12 MiB cost 3 to 5 %. With bfloat16s, 2 MiB are 1 % faster than 4
//   MiB, and 2 % faster than 8 MiB.
size_t chunkValues(const PlanBuilder& builder) {
  return builder.block == 8 ? 256 * 1024 : 1024 * 1024;
}

bool sharesChunks(const PlanBuilder& builder) {
  return builder.batch.groups() < builder.lanes;
}

// Cuts `count` images from `first` on into chunks of at most `most` images. Each size of chunk
// needs primitives of its own. So all chunks get one size, unless they would have to be less than
// half as large.
kj::Array<const Chunk> cut(uint lane, Share share, uint first, uint count, uint most) {
  uint chunks = (count + most - 1) / most;
  for (uint more = chunks; more <= 2 * chunks && more <= count; ++more) {
    if (count % more == 0) {
      chunks = more;
      break;
    }
  }
  auto result = kj::heapArrayBuilder<const Chunk>(chunks);
  for (uint i = 0; i < chunks; ++i) {
    uint begin = uint64_t(count) * i / chunks, end = uint64_t(count) * (i + 1) / chunks;
    result.add(Chunk{lane, first + begin, end - begin, i == 0, share});
  }
  return result.finish();
}

// Sets the chunks of each stage, and the sizes of the scratch buffers that hold images.
void cutChunks(PlanBuilder& builder) {
  for (auto& stage: builder.plan->stages) {
    size_t imageValues = kj::max(stage->imageValuesMax, size_t(1));
    uint images = builder.batch.groups();
    uint most = kj::max(uint(kj::min(chunkValues(builder) / imageValues, size_t(images))), 1u);
    auto chunks = kj::heapArrayBuilder<kj::Array<const Chunk>>(builder.lanes);
    uint largest = 0;
    for (uint lane = 0; lane < builder.lanes; ++lane) {
      Share part = {lane, builder.lanes};
      auto own = part.of(images);
      chunks.add(sharesChunks(builder) ? cut(lane, part, 0, images, most)
                                       : cut(lane, {}, own.begin, own.size(), most));
      for (auto& chunk: chunks[lane]) largest = kj::max(largest, chunk.images);
    }
    stage->chunks = chunks.finish();
    for (auto& buffer: stage->scratch) buffer->values = largest * buffer->imageValues;
  }
}

// Makes all primitives. Then makes the tasks that convert parameters and gradients to and from the
// layouts of these primitives.
void prepare(PlanBuilder& builder) {
  for (auto& stage: builder.plan->stages) {
    kj::Vector<uint> sizes;
    for (auto& share: stage->chunks) {
      for (auto& chunk: share) {
        bool isKnown = std::find(sizes.begin(), sizes.end(), chunk.images) != sizes.end();
        if (!isKnown) sizes.add(chunk.images);
      }
    }
    for (auto& task: stage->tasks) task->prepare(sizes);
  }
  uint turn = 0;
  for (auto& unit: builder.stages.units) {
    if (builder.storage[unit.id].convolution == nullptr) continue;
    PlanBuilder::Scope scope(builder, unit);
    auto& convolution = builder.convolutionOf(unit);
    auto& segment = builder.plan->segments[unit.segment];
    // Both tasks have the same turn, so one lane does one after the other.
    KJ_IF_MAYBE(norm, unit.folded) {
      segment.prepareForward.add(builder.timed(unit.at, fold(builder, unit, *norm, turn)));
    }
    segment.prepareForward.add(builder.timed(unit.at, convolution.packForward(turn)));
    if (unit.trains && builder.phase == Phase::TRAIN) {
      uint p = unit.backwardAt;
      if (builder.before(unit).trains) {
        segment.prepareBackward.add(builder.timed(p, convolution.packBackward(turn)));
      }
      builder.stageAt(p).batchTasks.add(builder.timed(p, convolution.sumGradient(turn)));
    }
    ++turn;
  }
}

void packMemory(ProgramPlan& plan) {
  kj::Vector<Buffer*> shared;
  for (auto& buffer: plan.buffers) {
    if (buffer->home == Buffer::BATCH && buffer->values > 0) shared.add(buffer.get());
  }
  plan.batch_bytes = pack(shared);
  plan.scratch_bytes = 0;
  for (auto& stage: plan.stages) {
    kj::Vector<Buffer*> own;
    for (auto& buffer: stage->scratch) {
      if (buffer->values > 0) own.add(buffer.get());
    }
    plan.scratch_bytes = kj::max(plan.scratch_bytes, pack(own));
  }
}

}  // namespace

kj::Own<ProgramPlan> planFor(const Graph& graph, Phase phase, uint images, uint lanes,
    const Kernels& kernels, Element element, FlatArrays arrays, dnnl_engine_t engine,
    kj::Maybe<Profile&> profile) {
  PlanBuilder builder(graph, phase, images, lanes, kernels, element, arrays);
  KJ_IF_MAYBE(to, profile) builder.setProfile(*to);
  addForward(builder, engine);
  if (phase == Phase::TRAIN) addBackward(builder);
  builder.plan->sharesChunks = sharesChunks(builder);
  // The convolutions of other kernels cannot share a chunk: each lane has sums of its own.
  KJ_REQUIRE(!builder.plan->sharesChunks || builder.amx != nullptr);
  cutChunks(builder);
  prepare(builder);
  packMemory(*builder.plan);
  return kj::mv(builder.plan);
}

}  // namespace nn::cpu
