// nn/cuda/kernel_bodies_loss.h: the loss.
#pragma once

#include <math.h>

#include "nn/cuda/packs.h"

namespace nn::cuda {

// Adds up an array with one value per thread, in pairs whose distance halves from step to step, by
// merge(array[i], array[i + half]).
template <typename Block, typename T, typename Merge>
HOST_DEVICE void mergeAll(Block& block, T* array, Merge&& merge) {
  for (uint32_t half = block.threads() / 2; half > 0; half /= 2) {
    block.each([&](uint32_t thread) {
      if (thread < half) merge(array[thread], array[thread + half]);
    });
  }
}

// ---- one block per row

struct LossTerms {
  float powers;       // sum of e^(x - largest)
  float differences;  // sum of x - largest
};
struct LossMemory {
  static constexpr uint32_t THREADS = 128;  // a power of two
  struct Largest {
    float value;
    uint32_t place;
  } largest[THREADS];
  LossTerms terms[THREADS];
};

inline Grid gridOf(const SoftmaxLoss& k, uint32_t) {
  return {k.x.pixels, LossMemory::THREADS, sizeof(LossMemory)};
}

// Writes the largest logit, the first of equal ones, to memory.largest[0].
template <typename Block>
HOST_DEVICE void findLargest(Block& block, const float* x, uint32_t classes, LossMemory& memory) {
  using Largest = LossMemory::Largest;
  block.each([&](uint32_t thread) {
    // A thread without a logit gets a value below every logit. The first thread always has a logit.
    Largest mine = {-INFINITY, thread};
    for (uint32_t c = thread; c < classes; c += LossMemory::THREADS) {
      if (x[c] > mine.value) mine = {x[c], c};
    }
    memory.largest[thread] = mine;
  });
  mergeAll(block, memory.largest, [](Largest& mine, const Largest& other) {
    bool isBefore = other.value == mine.value && other.place < mine.place;
    if (other.value > mine.value || isBefore) mine = other;
  });
}

// Writes the sums to memory.terms[0].
template <typename Block>
HOST_DEVICE void sumTerms(Block& block, const float* x, uint32_t classes, LossMemory& memory) {
  block.each([&](uint32_t thread) {
    float largest = memory.largest[0].value;
    LossTerms mine = {0, 0};
    for (uint32_t c = thread; c < classes; c += LossMemory::THREADS) {
      mine.powers += expf(x[c] - largest);
      mine.differences += x[c] - largest;
    }
    memory.terms[thread] = mine;
  });
  mergeAll(block, memory.terms, [](LossTerms& mine, const LossTerms& other) {
    mine.powers += other.powers;
    mine.differences += other.differences;
  });
}

HOST_DEVICE RowResult judge(
    const SoftmaxLoss& k, const float* x, int32_t label, const LossMemory& memory) {
  if (label < 0) return {0, 0, 0};
  auto& [largest, place] = memory.largest[0];
  auto& [powers, differences] = memory.terms[0];
  float wanted = (1 - k.smoothing) * (x[label] - largest);
  if (k.smoothing > 0) wanted += k.smoothing / float(k.x.channels) * differences;
  return {logf(powers) - wanted, place == uint32_t(label), 1};
}

template <typename T, unsigned N, typename Block>
HOST_DEVICE void body(const SoftmaxLoss& k, Block& block) {
  uint32_t row = block.index(), classes = k.x.channels;
  const float* x = placeIn<float>(k.x, row, 0);
  int32_t label = k.labels[row];
  LossMemory& memory = *block.template shared<LossMemory>();
  findLargest(block, x, classes, memory);
  sumTerms(block, x, classes, memory);
  block.each([&](uint32_t thread) {
    if (thread == 0) k.rows[row] = judge(k, x, label, memory);
    if (k.dx.data == nullptr) return;
    float largest = memory.largest[0].value, factor = 1 / memory.terms[0].powers;
    float everywhere = k.smoothing / float(classes);
    for (uint32_t c = thread; c < k.dx.width; c += LossMemory::THREADS) {
      float dx[1] = {0};
      if (label >= 0 && c < classes) {
        float wanted = (c == uint32_t(label) ? 1 - k.smoothing : 0) + everywhere;
        dx[0] = k.factor * (expf(x[c] - largest) * factor - wanted);
      }
      write<T>(k.dx, row, c, dx, false);
    }
  });
}

// ---- the sums of all rows

constexpr uint32_t ROW_THREADS = 256;  // a power of two

inline Grid gridOf(const SumRows&, uint32_t) {
  return {1, ROW_THREADS, ROW_THREADS * uint32_t(sizeof(BatchSums))};
}
template <typename T, unsigned N, typename Block>
HOST_DEVICE void body(const SumRows& k, Block& block) {
  BatchSums* sums = block.template shared<BatchSums>();
  block.each([&](uint32_t thread) {
    BatchSums mine = {0, 0, 0};
    for (uint32_t row = thread; row < k.count; row += ROW_THREADS) {
      mine.lossSum += k.rows[row].loss;
      mine.correct += k.rows[row].correct;
      mine.images += k.rows[row].counts;
    }
    sums[thread] = mine;
  });
  mergeAll(block, sums, [](BatchSums& mine, const BatchSums& other) {
    mine.lossSum += other.lossSum;
    mine.correct += other.correct;
    mine.images += other.images;
  });
  block.each([&](uint32_t thread) {
    if (thread != 0) return;
    *k.to = sums[0];
    if (k.total == nullptr) return;
    k.total->lossSum += sums[0].lossSum;
    k.total->correct += sums[0].correct;
    k.total->images += sums[0].images;
  });
}

}  // namespace nn::cuda
