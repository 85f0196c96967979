#include "nn/cpu/lowering.h"

#include <kj/debug.h>
#include <kj/map.h>

#include <algorithm>

namespace nn::cpu {
namespace {

// The bytes that the largest tensor of a chunk may take. Input, output and their gradients together then stay in the
// part of the last-level cache that a core can have. Measured on 2 MiB of L2 and 32 MiB of L3 for two cores with
// inception-bn-28-small: half and double cost 2 to 3 %.
constexpr size_t CHUNK_BYTES = 2560 * 1024;

// Cuts `count` images from `first` on into chunks of at most `most`, all of one size if that costs at most half of
// the size: each size needs primitives of its own.
kj::Array<const Chunk> cutShare(uint lane, uint first, uint count, uint most) {
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
    result.add(Chunk{lane, first + begin, end - begin, i == 0});
  }
  return result.finish();
}

// What is known of a unit while tasks are made: where its value and its gradient lie.
struct Storage {
  kj::Maybe<Buffer&> value;  // none: recomputed, or the input
  kj::Maybe<Buffer&> index;  // of a max pool
  kj::Maybe<Convolution&> convolution;
  kj::Maybe<DenseLayer&> dense;
  kj::Maybe<Norm&> norm;

  // A view: the gradient is a run of channels of that of the unit's only user.
  kj::Maybe<UnitId> gradientBase;
  size_t gradientShift = 0;
  kj::Maybe<Buffer&> gradient;  // of bases
  uint gradientFirst = kj::maxValue, gradientLast = 0;  // the phases that touch it, its views' included
  bool gradientDone = false;
};

class Lowering {
public:
  Lowering(const Graph& graph, uint images, uint lanes, const Kernels& kernels, FlatArrays arrays,
      dnnl_engine_t engine)
      : graph(graph),
        images(images),
        lanes(lanes),
        block(kernels.block),
        arrays(arrays),
        engine(engine),
        units(lowerToUnits(graph)),
        plan(kj::heap<Plan>()) {}

  kj::Own<Plan> run() {
    open();
    for (auto& unit: units.all) forward(unit);
    placeGradients();
    for (UnitId u = units.all.size(); u-- > 0;) {
      // Gradients that live in one phase's scratch are made when the backward task that reads them is.
      if (!isScratch(u)) makeGradient(u);
    }
    cutChunks();
    prepare();
    packMemory();
    return kj::mv(plan);
  }

private:
  const Graph& graph;
  uint images, lanes, block;
  FlatArrays arrays;
  dnnl_engine_t engine;
  Units units;
  kj::Own<Plan> plan;
  kj::Array<Storage> storage;
  Buffer* pixels = nullptr;
  // What a phase has recomputed so far, and what of it in plain order.
  struct Made {
    uint phase;
    UnitId unit;
    Layout layout;
    Buffer* buffer;
  };
  kj::Vector<Made> made;

  // ---- buffers and tasks

  Extent extentOf(const Unit& unit) const { return Extent(unit.node->shape, block); }

  PhasePlan& phase(uint p) { return *plan->phases[p]; }

  Buffer& batchBuffer(size_t imageFloats) {
    auto& buffer = *plan->buffers.add(kj::heap<Buffer>());
    buffer.home = Buffer::BATCH;
    buffer.imageFloats = imageFloats;
    buffer.floats = images * imageFloats;
    return buffer;
  }

  Buffer& scratchBuffer(uint p, size_t imageFloats) {
    auto& buffer = *phase(p).scratch.add(kj::heap<Buffer>());
    buffer.home = Buffer::SCRATCH;
    buffer.imageFloats = imageFloats;
    return buffer;
  }

  // Memory for what a task that is added next needs while it runs.
  Buffer& workspace(uint p) {
    auto& buffer = scratchBuffer(p, 0);
    buffer.use(phase(p).tasks.size());
    return buffer;
  }

  // Appends a task that touches `places`.
  void add(uint p, kj::Own<Task> task, std::initializer_list<Place> places) {
    auto& to = phase(p);
    for (auto& place: places) {
      if (place.buffer == nullptr) continue;
      place.buffer->use(place.buffer->home == Buffer::SCRATCH ? to.tasks.size() : p);
      to.imageFloatsMax = kj::max(to.imageFloatsMax, place.stride());
    }
    to.tasks.add(kj::mv(task));
  }

  void open() {
    uint phases = units.forwardPhases.back().end;
    for (auto& range: units.backwardPhases) phases = kj::max(phases, uint(range.end));
    for (uint p = 0; p < phases; ++p) plan->phases.add(kj::heap<PhasePlan>());
    plan->segments = kj::heapArray<SegmentPlan>(graph.segments.size());
    for (uint s = 0; s < graph.segments.size(); ++s) {
      plan->segments[s].forward = units.forwardPhases[s];
      plan->segments[s].backward = units.backwardPhases[s];
    }
    storage = kj::heapArray<Storage>(units.all.size());
    auto& input = batchBuffer(graph.inputShape().size());
    input.home = Buffer::PIXELS;
    pixels = &input;
    plan->verdicts.losses = kj::heapArray<double>(images);
    plan->verdicts.correct = kj::heapArray<int8_t>(images);
  }

  // ---- values

  // Where `unit`'s value lies in phase `p`, blocked and dense, made first if it has to be.
  Place valueOf(const Unit& unit, uint p) {
    KJ_IF_MAYBE(buffer, storage[unit.id].value) {
      return {buffer};
    }
    KJ_IF_MAYBE(buffer, find(p, unit.id, Layout::BLOCKED)) {
      return {buffer};
    }
    Place place = {&scratchBuffer(p, extentOf(unit).floats())};
    fill(unit, p, place);
    made.add(Made{p, unit.id, Layout::BLOCKED, place.buffer});
    return place;
  }

  Place valueOf(const Unit& unit, uint p, Layout layout) {
    return layout == Layout::PLAIN ? plainOf(unit, p) : valueOf(unit, p);
  }

  kj::Maybe<Buffer&> find(uint p, UnitId unit, Layout layout) {
    for (auto& entry: made) {
      if (entry.phase == p && entry.unit == unit && entry.layout == layout) return *entry.buffer;
    }
    return nullptr;
  }

  // The same in plain C×H×W order.
  Place plainOf(const Unit& unit, uint p) {
    if (unit.is<Input>()) return {pixels};
    auto blocked = valueOf(unit, p);
    KJ_IF_MAYBE(buffer, find(p, unit.id, Layout::PLAIN)) {
      return {buffer};
    }
    Place plain = {&scratchBuffer(p, unit.node->shape.size())};
    add(p, unblock(extentOf(unit), blocked, plain), {blocked, plain});
    made.add(Made{p, unit.id, Layout::PLAIN, plain.buffer});
    return plain;
  }

  // The same as rows for a dense layer, which may be longer than what is in them: vectors have such rows already.
  Place rowsOf(const Unit& unit, uint p) {
    bool isVector = extentOf(unit).pixels == 1 && !unit.is<Input>();
    return isVector ? valueOf(unit, p) : plainOf(unit, p);
  }

  // Makes the value of a unit that is the input, a batch norm or a concat at `to`.
  void fill(const Unit& unit, uint p, Place to) {
    if (unit.is<Input>()) {
      add(p, cpu::block(extentOf(unit), {pixels}, to, Write::SET), {{pixels}, to});
    } else if (unit.is<BatchNorm>()) {
      auto y = valueOf(before(unit), p);
      add(p, normalise(normOf(unit), y, to), {y, to});
    } else {
      KJ_ASSERT(unit.is<Concat>());
      uint channel = 0;
      for (UnitId input: unit.inputs) {
        fillChannels(unit, units.all[input], channel, p, to);
        channel += units.all[input].node->shape.channels;
      }
    }
  }

  void fillChannels(const Unit& concat, const Unit& part, uint channel, uint p, Place to) {
    auto extent = extentOf(part);
    if (!fitsBlocks(concat, part, channel)) {
      auto from = valueOf(part, p);
      add(p,
          copyChannels(
              extent, from, 0, extentOf(concat), to, channel, extent.channels, Write::SET),
          {from, to});
      return;
    }
    Place view = {to.buffer, to.shift + channel * extent.pixels};
    bool isThere =
        storage[part.id].value != nullptr || find(p, part.id, Layout::BLOCKED) != nullptr;
    if (isThere) {
      auto from = valueOf(part, p);
      add(p, copy(extent, from, view, Write::SET), {from, view});
    } else {
      fill(part, p, view);
    }
  }

  // Whether the part's blocks are blocks of the concat.
  bool fitsBlocks(const Unit& concat, const Unit& part, uint channel) const {
    uint channels = part.node->shape.channels;
    bool isLast = channel + channels == concat.node->shape.channels;
    return channel % block == 0 && (channels % block == 0 || isLast);
  }

  const Unit& before(const Unit& unit) const { return units.all[unit.inputs[0]]; }

  Norm& normOf(const Unit& unit) { return KJ_ASSERT_NONNULL(storage[unit.id].norm); }
  Convolution& convolutionOf(const Unit& unit) {
    return KJ_ASSERT_NONNULL(storage[unit.id].convolution);
  }
  DenseLayer& denseOf(const Unit& unit) { return KJ_ASSERT_NONNULL(storage[unit.id].dense); }

  // ---- forward

  void forward(const Unit& unit) {
    if (!unit.recomputed && !unit.is<Input>() && !unit.is<SoftmaxCrossEntropy>()) {
      storage[unit.id].value = batchBuffer(extentOf(unit).floats());
    }
    KJ_SWITCH_ONEOF(unit.node->op) {
      KJ_CASE_ONEOF(_, Input) {}
      KJ_CASE_ONEOF(op, Conv2d) forwardConvolution(unit, op);
      KJ_CASE_ONEOF(_, Dense) forwardDense(unit);
      KJ_CASE_ONEOF(op, BatchNorm) forwardNorm(unit, op);
      KJ_CASE_ONEOF(op, Activation) {
        copyInto(unit, before(unit), Write::SET);
        auto y = valueOf(unit, unit.at);
        add(unit.at, activate(op.function, extentOf(unit), y), {y});
      }
      KJ_CASE_ONEOF(op, Pool) forwardPool(unit, op);
      KJ_CASE_ONEOF(_, Add) {
        bool first = true;
        for (UnitId input: unit.inputs) {
          copyInto(unit, units.all[input], first ? Write::SET : Write::ADD);
          first = false;
        }
      }
      KJ_CASE_ONEOF(_, Concat) {
        if (!unit.recomputed) fill(unit, unit.at, valueOf(unit, unit.at));
      }
      KJ_CASE_ONEOF(_, SoftmaxCrossEntropy) forwardLoss(unit);
    }
    KJ_IF_MAYBE(function, unit.activation) {
      if (!unit.is<BatchNorm>()) {
        auto y = valueOf(unit, unit.at);
        add(unit.at, activate(*function, extentOf(unit), y), {y});
      }
    }
  }

  void copyInto(const Unit& unit, const Unit& input, Write write) {
    auto from = valueOf(input, unit.at), to = valueOf(unit, unit.at);
    add(unit.at, copy(extentOf(unit), from, to, write), {from, to});
  }

  float* parameterAt(const Unit& unit, uint key) {
    return arrays.parameters.begin() + graph.keys[unit.node->keys.begin + key].offset;
  }
  float* gradientAt(const Unit& unit, uint key) {
    return arrays.gradients.begin() + graph.keys[unit.node->keys.begin + key].offset;
  }

  void forwardConvolution(const Unit& unit, const Conv2d& op) {
    auto& input = before(unit);
    Shape in = input.node->shape;
    auto inputs = inputLayouts(in.channels, block);
    ConvolutionShape shape = {.op = op,
        .in = in,
        .out = unit.node->shape,
        .forwardInput = inputs.forward,
        .weightsInput = inputs.weights,
        .addsBias = op.bias && !unit.biasIsInert,
        .block = block,
        .lanes = lanes};
    // Sizes come later; backward buffers stay empty if it does not train.
    auto& forwardWeights = batchBuffer(0);
    auto& backwardWeights = batchBuffer(0);
    auto& sums = batchBuffer(0);
    ConvolutionArrays weights = {.weights = parameterAt(unit, 0),
        .bias = op.bias ? parameterAt(unit, 1) : nullptr,
        .weightsGradient = gradientAt(unit, 0),
        .biasGradient = op.bias ? gradientAt(unit, 1) : nullptr,
        .forwardWeights = &forwardWeights,
        .backwardWeights = &backwardWeights,
        .sums = &sums};
    auto& convolution = *plan->convolutions.add(kj::heap<Convolution>(shape, weights, engine));
    storage[unit.id].convolution = convolution;

    // Packed at the segment's start.
    forwardWeights.use(units.forwardPhases[unit.segment].begin);
    forwardWeights.use(unit.at);
    backwardWeights.use(units.backwardPhases[unit.segment].begin);
    backwardWeights.use(unit.backwardAt);
    sums.use(unit.backwardAt);

    auto x = valueOf(input, unit.at, inputs.forward), y = valueOf(unit, unit.at);
    auto& scratch = workspace(unit.at);
    add(unit.at, convolution.forward(x, y, scratch), {x, y});
  }

  void forwardDense(const Unit& unit) {
    auto& op = unit.node->op.get<Dense>();
    auto& layer = *plan->denseLayers.add(kj::heap<DenseLayer>());
    layer.inputs = before(unit).node->shape.size();
    layer.units = op.units;
    layer.weights = parameterAt(unit, 0);
    layer.bias = op.bias ? parameterAt(unit, 1) : nullptr;
    layer.gradient = gradientAt(unit, 0);
    auto& sums = batchBuffer(0);
    sums.floats = (lanes - 1) * layer.parameters();
    sums.use(unit.backwardAt);
    layer.sums = &sums;
    storage[unit.id].dense = layer;

    auto x = rowsOf(before(unit), unit.at), y = valueOf(unit, unit.at);
    add(unit.at, denseForward(layer, x, y), {x, y});
  }

  void forwardNorm(const Unit& unit, const BatchNorm& op) {
    auto extent = extentOf(unit);
    size_t channels = extent.blocks * block;
    auto& own = batchBuffer(0);
    own.floats = Norm::ARRAYS * channels;
    own.keep();
    auto& statisticsPartials = batchBuffer(0);
    auto& gradientPartials = batchBuffer(0);
    statisticsPartials.floats = gradientPartials.floats = images * 2 * channels;
    statisticsPartials.use(unit.at);
    gradientPartials.use(unit.complete);
    auto& first = graph.statistics[unit.node->statistics.begin];
    auto& second = graph.statistics[unit.node->statistics.begin + 1];
    auto& y = before(unit);
    auto& norm = *plan->norms.add(kj::heap<Norm>(Norm{.extent = extent,
        .images = images,
        .op = op,
        .rectify = unit.activation == nullptr ? Rectify::NO : Rectify::YES,
        .gamma = parameterAt(unit, 0),
        .beta = parameterAt(unit, 1),
        .gammaGradient = gradientAt(unit, 0),
        .betaGradient = gradientAt(unit, 1),
        .movingMean = arrays.statistics.begin() + first.offset,
        .movingVariance = arrays.statistics.begin() + second.offset,
        .inertBias = y.biasIsInert ? parameterAt(y, 1) : nullptr,
        .channels = &own,
        .statisticsPartials = &statisticsPartials,
        .gradientPartials = &gradientPartials}));
    storage[unit.id].norm = norm;

    auto value = valueOf(y, unit.at);
    add(unit.at, takeStatistics(norm, value), {value});
    phase(unit.at).batchTasks.add(combineStatistics(norm));
    if (!unit.recomputed) fill(unit, unit.ready, valueOf(unit, unit.ready));
  }

  void forwardPool(const Unit& unit, const Pool& op) {
    auto x = valueOf(before(unit), unit.at), y = valueOf(unit, unit.at);
    Place index;
    if (op.function == Pool::MAX) {
      KJ_REQUIRE(op.kernel < 256, "a max pool's window has at most 255 rows", unit.node->name);
      auto& buffer = batchBuffer(extentOf(unit).floats() / 2);
      storage[unit.id].index = buffer;
      index.buffer = &buffer;
    }
    add(unit.at, pool(op, before(unit).node->shape, unit.node->shape, block, x, y, index),
        {x, y, index});
  }

  void forwardLoss(const Unit& unit) {
    auto& input = before(unit);
    auto x = valueOf(input, unit.at);
    // Logits may be read after the step.
    if (x.buffer->home == Buffer::SCRATCH) {
      auto& kept = batchBuffer(x.stride());
      add(unit.at, copy(extentOf(input), x, {&kept}, Write::SET), {x, {&kept}});
      x = {&kept};
    }
    x.buffer->keep();
    plan->logits = x;
    auto& gradient = batchBuffer(x.stride());
    storage[input.id].gradient = gradient;
    add(unit.at, loss(extentOf(input), x, {&gradient}, plan->verdicts), {x, {&gradient}});
  }

  // ---- backward

  // Whose images the gradient's are part of: its own for bases.
  UnitId baseOf(UnitId u) const {
    KJ_IF_MAYBE(base, storage[u].gradientBase) {
      return baseOf(*base);
    }
    return u;
  }

  bool isScratch(UnitId u) {
    KJ_IF_MAYBE(buffer, storage[baseOf(u)].gradient) {
      return buffer->home == Buffer::SCRATCH;
    }
    return false;
  }

  Place gradientOf(UnitId u) {
    size_t shift = 0;
    while (true) {
      KJ_IF_MAYBE(base, storage[u].gradientBase) {
        shift += storage[u].gradientShift;
        u = *base;
      } else {
        return {&KJ_ASSERT_NONNULL(storage[u].gradient), shift};
      }
    }
  }

  // Decides which gradients are views and which cross phases.
  void placeGradients() {
    for (auto& unit: units.all) {
      if (unit.trains && !unit.is<SoftmaxCrossEntropy>()) placeView(unit);
    }
    for (auto& unit: units.all) {
      if (!unit.trains || unit.is<SoftmaxCrossEntropy>()) continue;
      auto& base = storage[baseOf(unit.id)];
      auto touch = [&](uint p) {
        base.gradientFirst = kj::min(base.gradientFirst, p);
        base.gradientLast = kj::max(base.gradientLast, p);
      };
      for (auto& use: unit.uses) {
        if (units.all[use.unit].trains) touch(units.all[use.unit].backwardAt);
      }
      touch(unit.complete);
      touch(unit.backwardAt);
    }
    for (auto& unit: units.all) {
      auto& own = storage[unit.id];
      bool isBase = unit.trains && own.gradientBase == nullptr && own.gradient == nullptr;
      if (!isBase || unit.is<SoftmaxCrossEntropy>()) continue;
      size_t floats = extentOf(unit).floats();
      own.gradient = own.gradientFirst == own.gradientLast
          ? scratchBuffer(own.gradientFirst, floats)
          : batchBuffer(floats);
    }
  }

  void placeView(const Unit& unit) {
    if (unit.uses.size() != 1) return;
    auto& user = units.all[unit.uses[0].unit];
    auto& own = storage[unit.id];
    if (user.is<Concat>()) {
      uint channel = 0;
      for (uint i = 0; i < unit.uses[0].input; ++i) {
        channel += units.all[user.inputs[i]].node->shape.channels;
      }
      if (!fitsBlocks(user, unit, channel)) return;
      own.gradientBase = user.id;
      own.gradientShift = channel * extentOf(unit).pixels;
    } else if (user.is<Add>() && unit.is<BatchNorm>()) {
      // A batch norm only reads its gradient, so it can share the sum's.
      own.gradientBase = user.id;
    }
  }

  // A part of a gradient: what one user adds.
  struct Contribution {
    const Unit* user;
    uint input;
    uint rank;
  };

  // Adds the tasks that make the gradient of a unit's value whole, once.
  void makeGradient(UnitId u) {
    auto& unit = units.all[u];
    auto& own = storage[u];
    if (own.gradientDone || unit.is<SoftmaxCrossEntropy>()) return;
    own.gradientDone = true;
    KJ_IF_MAYBE(base, own.gradientBase) {
      makeGradient(*base);
    } else {
      contribute(unit);
    }
    if (!unit.trains) return;
    if (unit.is<BatchNorm>()) {
      auto y = valueOf(before(unit), unit.complete), gradient = gradientOf(u);
      add(unit.complete, reduceGradient(normOf(unit), y, gradient), {y, gradient});
      phase(unit.complete).batchTasks.add(combineGradient(normOf(unit)));
      phase(unit.backwardAt).batchTasks.add(exportGradient(normOf(unit)));
    } else {
      KJ_IF_MAYBE(function, unit.activation) {
        auto y = valueOf(unit, unit.complete), gradient = gradientOf(u);
        add(unit.complete, activateBackward(*function, extentOf(unit), y, gradient),
            {y, gradient});
      }
    }
  }

  void contribute(const Unit& unit) {
    kj::Vector<Contribution> contributions;
    for (auto& use: unit.uses) {
      auto& user = units.all[use.unit];
      if (user.trains) contributions.add(Contribution{&user, use.input, rankOf(user)});
    }
    // By phase; in a phase first what cannot add, last what has to clear before it adds.
    std::stable_sort(contributions.begin(), contributions.end(),
        [](const Contribution& a, const Contribution& b) {
          if (a.user->backwardAt != b.user->backwardAt) {
            return a.user->backwardAt < b.user->backwardAt;
          }
          return a.rank < b.rank;
        });
    Write write = Write::SET;
    for (auto& contribution: contributions) {
      backward(*contribution.user, contribution.input, unit, write);
      write = Write::ADD;
    }
  }

  uint rankOf(const Unit& user) {
    if (user.is<Conv2d>()) return convolutionOf(user).canAdd() ? 1 : 0;
    return user.is<Pool>() ? 2 : 1;
  }

  // The backward tasks of `user`, as far as they concern its input `unit`.
  void backward(const Unit& user, uint input, const Unit& unit, Write write) {
    uint p = user.backwardAt;
    if (user.is<SoftmaxCrossEntropy>()) return;  // The loss's forward task has set the gradient.
    makeGradient(user.id);
    KJ_SWITCH_ONEOF(user.node->op) {
      KJ_CASE_ONEOF(_, Input) KJ_UNREACHABLE;
      KJ_CASE_ONEOF(_, Conv2d) backwardConvolution(user, unit, write);
      KJ_CASE_ONEOF(_, Dense) backwardDense(user, unit, write);
      KJ_CASE_ONEOF(_, BatchNorm) {
        if (!unit.trains) return;
        auto y = valueOf(unit, p), g = gradientOf(user.id), dy = gradientOf(unit.id);
        add(p, normaliseBackward(normOf(user), y, g, dy, write), {y, g, dy});
      }
      KJ_CASE_ONEOF(op, Activation) {
        if (!unit.trains) return;
        auto y = valueOf(user, p), g = gradientOf(user.id), dx = gradientOf(unit.id);
        // The gradient of its output is not needed any more.
        add(p, activateBackward(op.function, extentOf(user), y, g), {y, g});
        add(p, copy(extentOf(user), g, dx, write), {g, dx});
      }
      KJ_CASE_ONEOF(op, Pool) {
        if (!unit.trains) return;
        auto g = gradientOf(user.id), dx = gradientOf(unit.id);
        Place index;
        KJ_IF_MAYBE(buffer, storage[user.id].index) index.buffer = buffer;
        add(p,
            poolBackward(op, unit.node->shape, user.node->shape, block, g, index, dx, write),
            {g, index, dx});
      }
      KJ_CASE_ONEOF(_, Add) {
        if (!unit.trains) return;
        auto g = gradientOf(user.id), dx = gradientOf(unit.id);
        add(p, copy(extentOf(unit), g, dx, write), {g, dx});
      }
      KJ_CASE_ONEOF(_, Concat) {
        if (unit.trains) backwardConcat(user, input, unit, write);
      }
      KJ_CASE_ONEOF(_, SoftmaxCrossEntropy) KJ_UNREACHABLE;
    }
  }

  // The whole gradient of a unit's output, image after image without gaps, as oneDNN wants it.
  Place denseGradientOf(const Unit& unit, uint p) {
    auto place = gradientOf(unit.id);
    auto extent = extentOf(unit);
    if (place.stride() == extent.floats()) return place;
    Place dense = {&scratchBuffer(p, extent.floats())};
    add(p, copy(extent, place, dense, Write::SET), {place, dense});
    return dense;
  }

  void backwardConvolution(const Unit& user, const Unit& unit, Write write) {
    uint p = user.backwardAt;
    auto& convolution = convolutionOf(user);
    auto layout = inputLayouts(unit.node->shape.channels, block).weights;
    auto dy = denseGradientOf(user, p), x = valueOf(unit, p, layout);
    auto& weightsScratch = workspace(p);
    add(p, convolution.backwardWeights(x, dy, weightsScratch), {x, dy});
    if (!unit.trains) return;

    auto dx = gradientOf(unit.id);
    auto extent = extentOf(unit);
    bool isDirect = dx.stride() == extent.floats() && (write == Write::SET || convolution.canAdd());
    Place to = isDirect ? dx : Place{&scratchBuffer(p, extent.floats())};
    auto& dataScratch = workspace(p);
    auto how = isDirect ? write : Write::SET;
    add(p, convolution.backwardData(dy, to, how, dataScratch), {dy, to});
    if (!isDirect) add(p, copy(extent, to, dx, write), {to, dx});
  }

  void backwardDense(const Unit& user, const Unit& unit, Write write) {
    uint p = user.backwardAt;
    auto& layer = denseOf(user);
    auto dy = gradientOf(user.id), x = rowsOf(unit, p);
    add(p, denseBackwardWeights(layer, x, dy), {x, dy});
    phase(p).batchTasks.add(sumGradient(layer));
    if (!unit.trains) return;

    auto dx = gradientOf(unit.id);
    auto extent = extentOf(unit);
    if (extent.pixels == 1 && dx.stride() == extent.floats()) {
      add(p, denseBackwardData(layer, dy, dx, write), {dy, dx});
      return;
    }
    Place plain = {&scratchBuffer(p, unit.node->shape.size())};
    add(p, denseBackwardData(layer, dy, plain, Write::SET), {dy, plain});
    add(p, cpu::block(extent, plain, dx, write), {plain, dx});
  }

  void backwardConcat(const Unit& user, uint input, const Unit& unit, Write write) {
    uint channel = 0;
    for (uint i = 0; i < input; ++i) {
      channel += units.all[user.inputs[i]].node->shape.channels;
    }
    auto extent = extentOf(unit);
    auto g = gradientOf(user.id), dx = gradientOf(unit.id);
    add(user.backwardAt,
        copyChannels(extentOf(user), g, channel, extent, dx, 0, extent.channels, write), {g, dx});
  }

  // ---- sizes

  void cutChunks() {
    for (auto& phase: plan->phases) {
      size_t imageBytes = kj::max(phase->imageFloatsMax, size_t(1)) * sizeof(float);
      uint most = kj::max(uint(kj::min(CHUNK_BYTES / imageBytes, size_t(images))), 1u);
      auto chunks = kj::heapArrayBuilder<kj::Array<const Chunk>>(lanes);
      uint largest = 0;
      for (uint lane = 0; lane < lanes; ++lane) {
        uint first = uint64_t(images) * lane / lanes, end = uint64_t(images) * (lane + 1) / lanes;
        chunks.add(cutShare(lane, first, end - first, most));
        for (auto& chunk: chunks[lane]) largest = kj::max(largest, chunk.images);
      }
      phase->chunks = chunks.finish();
      for (auto& buffer: phase->scratch) buffer->floats = largest * buffer->imageFloats;
    }
  }

  void prepare() {
    for (auto& phase: plan->phases) {
      kj::Vector<uint> sizes;
      for (auto& share: phase->chunks) {
        for (auto& chunk: share) {
          bool isKnown = std::find(sizes.begin(), sizes.end(), chunk.images) != sizes.end();
          if (!isKnown) sizes.add(chunk.images);
        }
      }
      for (auto& task: phase->tasks) task->prepare(sizes);
    }
    uint turn = 0;
    for (auto& unit: units.all) {
      if (!unit.is<Conv2d>()) continue;
      auto& convolution = convolutionOf(unit);
      auto& segment = plan->segments[unit.segment];
      segment.prepareForward.add(convolution.packForward(turn));
      if (unit.trains) {
        if (before(unit).trains) segment.prepareBackward.add(convolution.packBackward(turn));
        phase(unit.backwardAt).batchTasks.add(convolution.sumGradient(turn));
      }
      ++turn;
    }
  }

  void packMemory() {
    kj::Vector<Buffer*> shared;
    for (auto& buffer: plan->buffers) {
      if (buffer->home == Buffer::BATCH && buffer->floats > 0) shared.add(buffer.get());
    }
    plan->batchFloats = pack(shared);
    plan->scratchFloats = 0;
    for (auto& phase: plan->phases) {
      kj::Vector<Buffer*> own;
      for (auto& buffer: phase->scratch) {
        if (buffer->floats > 0) own.add(buffer.get());
      }
      plan->scratchFloats = kj::max(plan->scratchFloats, pack(own));
    }
  }
};

}  // namespace

kj::Own<Plan> lowerToPlan(
    const Graph& graph, uint images, uint lanes, const Kernels& kernels, FlatArrays arrays,
    dnnl_engine_t engine) {
  return Lowering(graph, images, lanes, kernels, arrays, engine).run();
}

}  // namespace nn::cpu
