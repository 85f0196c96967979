#include "nn/cpu/backward.h"

#include <kj/debug.h>

#include <algorithm>

#include "nn/cpu/copies.h"

namespace nn::cpu {
namespace {

// The place of a unit's gradient.
struct Gradient {
  // The unit's only user, if this gradient is a view: a run of channels of the user's gradient.
  // Null for a base, which has its own buffer.
  kj::Maybe<UnitId> base;
  size_t shift = 0;
  kj::Maybe<Buffer&> buffer;            // of bases
  uint first = kj::maxValue, last = 0;  // the stages that touch it, its views' included
  bool isDone = false;
};

class Backward {
public:
  explicit Backward(PlanBuilder& builder)
      : builder(builder), gradients(kj::heapArray<Gradient>(builder.stages.units.size())) {}

  void run() {
    placeGradients();
    for (UnitId u = builder.stages.units.size(); u-- > 0;) {
      // A gradient in the scratch memory of one stage is made together with the backward task that
      // reads it.
      if (!isScratch(u)) makeGradient(u);
    }
  }

private:
  PlanBuilder& builder;
  kj::Array<Gradient> gradients;

  // Returns the unit whose buffer holds the gradient of `u`: `u` itself if it is a base.
  UnitId baseOf(UnitId u) const {
    KJ_IF_MAYBE(base, gradients[u].base) return baseOf(*base);
    return u;
  }

  bool isScratch(UnitId u) {
    KJ_IF_MAYBE(buffer, gradients[baseOf(u)].buffer) return buffer->home == Buffer::SCRATCH;
    return false;
  }

  Place gradientOf(UnitId u) {
    size_t shift = 0;
    while (true) {
      auto& own = gradients[u];
      KJ_IF_MAYBE(base, own.base) {
        shift += own.shift;
        u = *base;
      } else {
        return {&KJ_ASSERT_NONNULL(own.buffer), shift};
      }
    }
  }

  // Decides which gradients are views and which cross stages.
  void placeGradients() {
    for (auto& unit: builder.stages.units) {
      if (unit.trains && !unit.is<SoftmaxCrossEntropy>()) placeView(unit);
    }
    for (auto& unit: builder.stages.units) {
      if (!unit.trains || unit.is<SoftmaxCrossEntropy>()) continue;
      auto& base = gradients[baseOf(unit.id)];
      auto touch = [&](uint p) {
        base.first = kj::min(base.first, p);
        base.last = kj::max(base.last, p);
      };
      for (auto& use: unit.uses) {
        if (builder.stages.units[use.unit].trains) touch(builder.stages.units[use.unit].backwardAt);
      }
      touch(unit.complete);
      touch(unit.backwardAt);
    }
    for (auto& unit: builder.stages.units) {
      auto& own = gradients[unit.id];
      // The loss has set that of its input in the forward pass.
      own.buffer = builder.storage[unit.id].logitsGradient;
      bool isBase = unit.trains && own.base == nullptr && own.buffer == nullptr;
      if (!isBase || unit.is<SoftmaxCrossEntropy>()) continue;
      size_t values = builder.extentOf(unit).values();
      auto element = builder.elementOf(unit);
      own.buffer = own.first == own.last ? builder.scratchBuffer(own.first, values, element)
                                         : builder.batchBuffer(values, element);
    }
  }

  void placeView(const StagedUnit& unit) {
    if (unit.uses.size() != 1) return;
    auto& user = builder.stages.units[unit.uses[0].unit];
    auto& own = gradients[unit.id];
    if (user.is<Concat>()) {
      uint channel = builder.channelOf(user, unit.uses[0].input);
      if (!builder.fitsBlocks(user, unit, channel)) return;
      own.base = user.id;
      own.shift = channel * builder.extentOf(unit).runs();
    } else if (user.is<Add>() && unit.is<BatchNorm>()) {
      // A batch norm only reads its gradient, so it can share the sum's.
      own.base = user.id;
    }
  }

  // A part of a gradient: what one user adds.
  struct Contribution {
    const StagedUnit* user;
    uint input;
    uint rank;
  };

  // Adds the tasks that make the gradient of a unit's value whole, once.
  void makeGradient(UnitId u) {
    auto& unit = builder.stages.units[u];
    auto& own = gradients[u];
    if (own.isDone || unit.is<SoftmaxCrossEntropy>()) return;
    PlanBuilder::Scope scope(builder, unit);
    own.isDone = true;
    KJ_IF_MAYBE(base, own.base) {
      makeGradient(*base);
    } else {
      contribute(unit);
    }
    if (!unit.trains) return;
    if (unit.is<BatchNorm>()) {
      auto y = builder.valueOf(builder.before(unit), unit.complete), gradient = gradientOf(u);
      builder.add(unit.complete, reduceGradient(builder.normOf(unit), y, gradient), {y, gradient});
      builder.stageAt(unit.complete)
          .batchTasks.add(builder.timed(unit.complete, combineGradient(builder.normOf(unit))));
      builder.stageAt(unit.backwardAt)
          .batchTasks.add(builder.timed(unit.backwardAt, exportGradient(builder.normOf(unit))));
    } else {
      KJ_IF_MAYBE(function, unit.activation) {
        auto y = builder.valueOf(unit, unit.complete), gradient = gradientOf(u);
        builder.add(unit.complete, activateBackward(*function, builder.extentOf(unit), y, gradient),
            {y, gradient});
      }
    }
  }

  void contribute(const StagedUnit& unit) {
    kj::Vector<Contribution> contributions;
    for (auto& use: unit.uses) {
      auto& user = builder.stages.units[use.unit];
      if (user.trains) contributions.add(Contribution{&user, use.input, rankOf(user)});
    }
    // Ordered by stage. Within a stage, parts that cannot add come first, and parts that have to
    // clear before they add come last.
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

  uint rankOf(const StagedUnit& user) {
    if (user.is<Conv2d>()) return builder.convolutionOf(user).canAdd() ? 1 : 0;
    return user.is<Pool>() ? 2 : 1;
  }

  // The backward tasks of `user`, as far as they concern its input `unit`.
  void backward(const StagedUnit& user, uint input, const StagedUnit& unit, Write write) {
    uint p = user.backwardAt;
    if (user.is<SoftmaxCrossEntropy>()) return;  // The loss's forward task has set the gradient.
    makeGradient(user.id);
    PlanBuilder::Scope scope(builder, user);
    KJ_SWITCH_ONEOF(user.node->op) {
      KJ_CASE_ONEOF(_, Input) KJ_UNREACHABLE;
      KJ_CASE_ONEOF(_, Conv2d) backwardConvolution(user, unit, write);
      KJ_CASE_ONEOF(_, Dense) {
        if (builder.amx == nullptr) {
          backwardDense(user, unit, write);
        } else {
          backwardConvolution(user, unit, write);
        }
      }
      KJ_CASE_ONEOF(_, BatchNorm) {
        if (!unit.trains) return;
        auto y = builder.valueOf(unit, p), g = gradientOf(user.id), dy = gradientOf(unit.id);
        builder.add(p, normaliseBackward(builder.normOf(user), y, g, dy, write), {y, g, dy});
      }
      KJ_CASE_ONEOF(op, Activation) {
        if (!unit.trains) return;
        auto extent = builder.extentOf(user);
        auto g = gradientOf(user.id), dx = gradientOf(unit.id);
        if (op.function == Activation::GELU) {
          auto x = builder.valueOf(unit, p);
          builder.add(p, geluBackward(extent, x, g, dx, write), {x, g, dx});
          return;
        }
        auto y = builder.valueOf(user, p);
        // The gradient of its output is no longer needed.
        builder.add(p, activateBackward(op.function, extent, y, g), {y, g});
        builder.add(p, copy(extent, g, dx, write), {g, dx});
      }
      KJ_CASE_ONEOF(op, Scale) {
        if (!unit.trains) return;
        auto g = gradientOf(user.id), dx = gradientOf(unit.id);
        builder.add(p, scale(builder.extentOf(user), op.factor, g, dx, write), {g, dx});
      }
      KJ_CASE_ONEOF(op, Dropout) {
        if (!unit.trains) return;
        auto g = gradientOf(user.id), dx = gradientOf(unit.id);
        builder.add(
            p, drop(op, user.nodeId, builder.extentOf(user), builder.batch, g, dx, write), {g, dx});
      }
      KJ_CASE_ONEOF(op, Pool) {
        if (!unit.trains) return;
        auto g = gradientOf(user.id), dx = gradientOf(unit.id);
        Place index;
        KJ_IF_MAYBE(buffer, builder.storage[user.id].index) index.buffer = buffer;
        builder.add(p,
            poolBackward(
                op, unit.node->shape, user.node->shape, builder.block, g, index, dx, write),
            {g, index, dx});
      }
      KJ_CASE_ONEOF(_, Add) {
        if (!unit.trains) return;
        auto g = gradientOf(user.id), dx = gradientOf(unit.id);
        builder.add(p, copy(builder.extentOf(unit), g, dx, write), {g, dx});
      }
      KJ_CASE_ONEOF(_, Concat) {
        if (unit.trains) backwardConcat(user, input, unit, write);
      }
      KJ_CASE_ONEOF(_, SoftmaxCrossEntropy) KJ_UNREACHABLE;
    }
  }

  // The whole gradient of a convolution's output, image after image without gaps, as oneDNN wants
  // it.
  Place denseGradientOf(const StagedUnit& unit, uint p) {
    auto place = gradientOf(unit.id);
    auto extent = builder.extentOf(unit);
    if (place.stride() == extent.values() && place.element() == builder.element) return place;
    Place dense = {&builder.scratchBuffer(p, extent.values(), builder.element)};
    builder.add(p, copy(extent, place, dense, Write::SET), {place, dense});
    return dense;
  }

  void backwardConvolution(const StagedUnit& user, const StagedUnit& unit, Write write) {
    uint p = user.backwardAt;
    auto& convolution = builder.convolutionOf(user);
    auto dy = denseGradientOf(user, p);
    auto x = builder.inputOf(unit, p, convolution.inputLayouts().weights);
    auto& weightsScratch = builder.workspace(p);
    builder.add(p, convolution.backwardWeights(x, dy, weightsScratch), {x, dy});
    if (!unit.trains) return;

    auto dx = gradientOf(unit.id);
    auto extent = builder.extentOf(unit);
    bool isDirect = dx.stride() == extent.values() && (write == Write::SET || convolution.canAdd());
    Place to = isDirect ? dx : Place{&builder.scratchBuffer(p, extent.values(), dx.element())};
    auto& dataScratch = builder.workspace(p);
    auto how = isDirect ? write : Write::SET;
    builder.add(p, convolution.backwardData(dy, to, how, dataScratch), {dy, to});
    if (!isDirect) builder.add(p, copy(extent, to, dx, write), {to, dx});
  }

  void backwardDense(const StagedUnit& user, const StagedUnit& unit, Write write) {
    uint p = user.backwardAt;
    auto& layer = builder.denseOf(user);
    auto gradient = gradientOf(user.id);
    auto dy = builder.floatsOf(gradient, builder.extentOf(user).values(), p);
    auto x = builder.rowsOf(unit, p);
    builder.add(p, denseBackwardWeights(layer, x, dy), {x, dy});
    builder.stageAt(p).batchTasks.add(builder.timed(p, sumGradient(layer)));
    if (!unit.trains) return;

    auto dx = gradientOf(unit.id);
    auto extent = builder.extentOf(unit);
    bool isFloats = dx.element() == Element::FLOAT32;
    if (isFloats && extent.pixels == 1 && dx.stride() == extent.values()) {
      builder.add(p, denseBackwardData(layer, dy, dx, write), {dy, dx});
      return;
    }
    Place plain = {&builder.scratchBuffer(p, unit.node->shape.size())};
    builder.add(p, denseBackwardData(layer, dy, plain, Write::SET), {dy, plain});
    builder.add(p, cpu::block(extent, builder.batch, plain, dx, write), {plain, dx});
  }

  void backwardConcat(const StagedUnit& user, uint input, const StagedUnit& unit, Write write) {
    uint channel = builder.channelOf(user, input);
    auto extent = builder.extentOf(unit);
    auto g = gradientOf(user.id), dx = gradientOf(unit.id);
    builder.add(user.backwardAt,
        copyChannels(builder.extentOf(user), g, channel, extent, dx, 0, extent.channels, write),
        {g, dx});
  }
};

}  // namespace

void addBackward(PlanBuilder& builder) {
  Backward(builder).run();
}

}  // namespace nn::cpu
