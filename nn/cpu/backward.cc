#include "nn/cpu/backward.h"

#include <kj/debug.h>

#include <algorithm>

#include "nn/cpu/copies.h"

namespace nn::cpu {
namespace {

// Where a unit's gradient lies.
struct Gradient {
  // A view: a run of channels of the gradient of the unit's only user.
  kj::Maybe<UnitId> base;
  size_t shift = 0;
  kj::Maybe<Buffer&> buffer;            // of bases
  uint first = kj::maxValue, last = 0;  // the phases that touch it, its views' included
  bool isDone = false;
};

class Backward {
public:
  explicit Backward(Draft& draft)
      : draft(draft), gradients(kj::heapArray<Gradient>(draft.units.all.size())) {}

  void run() {
    placeGradients();
    for (UnitId u = draft.units.all.size(); u-- > 0;) {
      // Gradients that live in one phase's scratch are made when the backward task that reads them
      // is.
      if (!isScratch(u)) makeGradient(u);
    }
  }

private:
  Draft& draft;
  kj::Array<Gradient> gradients;

  // Whose images the gradient's are part of: its own for bases.
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

  // Decides which gradients are views and which cross phases.
  void placeGradients() {
    for (auto& unit: draft.units.all) {
      if (unit.trains && !unit.is<SoftmaxCrossEntropy>()) placeView(unit);
    }
    for (auto& unit: draft.units.all) {
      if (!unit.trains || unit.is<SoftmaxCrossEntropy>()) continue;
      auto& base = gradients[baseOf(unit.id)];
      auto touch = [&](uint p) {
        base.first = kj::min(base.first, p);
        base.last = kj::max(base.last, p);
      };
      for (auto& use: unit.uses) {
        if (draft.units.all[use.unit].trains) touch(draft.units.all[use.unit].backwardAt);
      }
      touch(unit.complete);
      touch(unit.backwardAt);
    }
    for (auto& unit: draft.units.all) {
      auto& own = gradients[unit.id];
      // The loss has set that of its input in the forward pass.
      own.buffer = draft.storage[unit.id].logitsGradient;
      bool isBase = unit.trains && own.base == nullptr && own.buffer == nullptr;
      if (!isBase || unit.is<SoftmaxCrossEntropy>()) continue;
      size_t values = draft.extentOf(unit).values();
      auto element = draft.elementOf(unit);
      own.buffer = own.first == own.last ? draft.scratchBuffer(own.first, values, element)
                                         : draft.batchBuffer(values, element);
    }
  }

  void placeView(const Unit& unit) {
    if (unit.uses.size() != 1) return;
    auto& user = draft.units.all[unit.uses[0].unit];
    auto& own = gradients[unit.id];
    if (user.is<Concat>()) {
      uint channel = draft.channelOf(user, unit.uses[0].input);
      if (!draft.fitsBlocks(user, unit, channel)) return;
      own.base = user.id;
      own.shift = channel * draft.extentOf(unit).pixels;
    } else if (user.is<Add>() && unit.is<BatchNorm>()) {
      // A batch norm only reads its gradient, so it can share the sum's.
      own.base = user.id;
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
    auto& unit = draft.units.all[u];
    auto& own = gradients[u];
    if (own.isDone || unit.is<SoftmaxCrossEntropy>()) return;
    Draft::Scope scope(draft, unit);
    own.isDone = true;
    KJ_IF_MAYBE(base, own.base) {
      makeGradient(*base);
    } else {
      contribute(unit);
    }
    if (!unit.trains) return;
    if (unit.is<BatchNorm>()) {
      auto y = draft.valueOf(draft.before(unit), unit.complete), gradient = gradientOf(u);
      draft.add(unit.complete, reduceGradient(draft.normOf(unit), y, gradient), {y, gradient});
      draft.phaseAt(unit.complete)
          .batchTasks.add(draft.timed(unit.complete, combineGradient(draft.normOf(unit))));
      draft.phaseAt(unit.backwardAt)
          .batchTasks.add(draft.timed(unit.backwardAt, exportGradient(draft.normOf(unit))));
    } else {
      KJ_IF_MAYBE(function, unit.activation) {
        auto y = draft.valueOf(unit, unit.complete), gradient = gradientOf(u);
        draft.add(unit.complete, activateBackward(*function, draft.extentOf(unit), y, gradient),
            {y, gradient});
      }
    }
  }

  void contribute(const Unit& unit) {
    kj::Vector<Contribution> contributions;
    for (auto& use: unit.uses) {
      auto& user = draft.units.all[use.unit];
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
    if (user.is<Conv2d>()) return draft.convolutionOf(user).canAdd() ? 1 : 0;
    return user.is<Pool>() ? 2 : 1;
  }

  // The backward tasks of `user`, as far as they concern its input `unit`.
  void backward(const Unit& user, uint input, const Unit& unit, Write write) {
    uint p = user.backwardAt;
    if (user.is<SoftmaxCrossEntropy>()) return;  // The loss's forward task has set the gradient.
    makeGradient(user.id);
    Draft::Scope scope(draft, user);
    KJ_SWITCH_ONEOF(user.node->op) {
      KJ_CASE_ONEOF(_, Input) KJ_UNREACHABLE;
      KJ_CASE_ONEOF(_, Conv2d) backwardConvolution(user, unit, write);
      KJ_CASE_ONEOF(_, Dense) backwardDense(user, unit, write);
      KJ_CASE_ONEOF(_, BatchNorm) {
        if (!unit.trains) return;
        auto y = draft.valueOf(unit, p), g = gradientOf(user.id), dy = gradientOf(unit.id);
        draft.add(p, normaliseBackward(draft.normOf(user), y, g, dy, write), {y, g, dy});
      }
      KJ_CASE_ONEOF(op, Activation) {
        if (!unit.trains) return;
        auto extent = draft.extentOf(user);
        auto g = gradientOf(user.id), dx = gradientOf(unit.id);
        if (op.function == Activation::GELU) {
          auto x = draft.valueOf(unit, p);
          draft.add(p, geluBackward(extent, x, g, dx, write), {x, g, dx});
          return;
        }
        auto y = draft.valueOf(user, p);
        // The gradient of its output is not needed any more.
        draft.add(p, activateBackward(op.function, extent, y, g), {y, g});
        draft.add(p, copy(extent, g, dx, write), {g, dx});
      }
      KJ_CASE_ONEOF(op, Scale) {
        if (!unit.trains) return;
        auto g = gradientOf(user.id), dx = gradientOf(unit.id);
        draft.add(p, scale(draft.extentOf(user), op.factor, g, dx, write), {g, dx});
      }
      KJ_CASE_ONEOF(op, Dropout) {
        if (!unit.trains) return;
        auto g = gradientOf(user.id), dx = gradientOf(unit.id);
        draft.add(p, drop(op, draft.nodeOf(user), draft.extentOf(user), g, dx, write), {g, dx});
      }
      KJ_CASE_ONEOF(op, Pool) {
        if (!unit.trains) return;
        auto g = gradientOf(user.id), dx = gradientOf(unit.id);
        Place index;
        KJ_IF_MAYBE(buffer, draft.storage[user.id].index) index.buffer = buffer;
        draft.add(p,
            poolBackward(op, unit.node->shape, user.node->shape, draft.block, g, index, dx, write),
            {g, index, dx});
      }
      KJ_CASE_ONEOF(_, Add) {
        if (!unit.trains) return;
        auto g = gradientOf(user.id), dx = gradientOf(unit.id);
        draft.add(p, copy(draft.extentOf(unit), g, dx, write), {g, dx});
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
    auto extent = draft.extentOf(unit);
    if (place.stride() == extent.values()) return place;
    Place dense = {&draft.scratchBuffer(p, extent.values(), place.element())};
    draft.add(p, copy(extent, place, dense, Write::SET), {place, dense});
    return dense;
  }

  void backwardConvolution(const Unit& user, const Unit& unit, Write write) {
    uint p = user.backwardAt;
    auto& convolution = draft.convolutionOf(user);
    auto dy = denseGradientOf(user, p);
    auto x = draft.valueOf(unit, p, convolution.inputLayouts().weights);
    auto& weightsScratch = draft.workspace(p);
    draft.add(p, convolution.backwardWeights(x, dy, weightsScratch), {x, dy});
    if (!unit.trains) return;

    auto dx = gradientOf(unit.id);
    auto extent = draft.extentOf(unit);
    bool isDirect = dx.stride() == extent.values() && (write == Write::SET || convolution.canAdd());
    Place to = isDirect ? dx : Place{&draft.scratchBuffer(p, extent.values(), dx.element())};
    auto& dataScratch = draft.workspace(p);
    auto how = isDirect ? write : Write::SET;
    draft.add(p, convolution.backwardData(dy, to, how, dataScratch), {dy, to});
    if (!isDirect) draft.add(p, copy(extent, to, dx, write), {to, dx});
  }

  void backwardDense(const Unit& user, const Unit& unit, Write write) {
    uint p = user.backwardAt;
    auto& layer = draft.denseOf(user);
    auto gradient = gradientOf(user.id);
    auto dy = draft.floatsOf(gradient, draft.extentOf(user).values(), p);
    auto x = draft.rowsOf(unit, p);
    draft.add(p, denseBackwardWeights(layer, x, dy), {x, dy});
    draft.phaseAt(p).batchTasks.add(draft.timed(p, sumGradient(layer)));
    if (!unit.trains) return;

    auto dx = gradientOf(unit.id);
    auto extent = draft.extentOf(unit);
    bool isFloats = dx.element() == Element::FLOAT;
    if (isFloats && extent.pixels == 1 && dx.stride() == extent.values()) {
      draft.add(p, denseBackwardData(layer, dy, dx, write), {dy, dx});
      return;
    }
    Place plain = {&draft.scratchBuffer(p, unit.node->shape.size())};
    draft.add(p, denseBackwardData(layer, dy, plain, Write::SET), {dy, plain});
    draft.add(p, cpu::block(extent, plain, dx, write), {plain, dx});
  }

  void backwardConcat(const Unit& user, uint input, const Unit& unit, Write write) {
    uint channel = draft.channelOf(user, input);
    auto extent = draft.extentOf(unit);
    auto g = gradientOf(user.id), dx = gradientOf(unit.id);
    draft.add(user.backwardAt,
        copyChannels(draft.extentOf(user), g, channel, extent, dx, 0, extent.channels, write),
        {g, dx});
  }
};

}  // namespace

void addBackward(Draft& draft) {
  Backward(draft).run();
}

}  // namespace nn::cpu
