// nn/cpu/plan_builder.h: a plan while it is made: its tasks so far, and where each unit's value
// lies.
#pragma once

#include "nn/cpu/plan.h"
#include "nn/cpu/stages.h"
#include "nn/cpu/timed.h"

namespace nn::cpu {

// The flat arrays that tasks read and write, sized as the graph says.
struct FlatArrays {
  kj::ArrayPtr<float> parameters;
  kj::ArrayPtr<float> gradients;
  kj::ArrayPtr<float> statistics;
};

// What is known of a unit: where its value lies, and what its tasks share.
struct Storage {
  kj::Maybe<Buffer&> value;  // none: recomputed, or plain as `rows` or the input
  kj::Maybe<Buffer&> rows;   // of a dropout on the images: in plain order, as they are
  kj::Maybe<Buffer&> index;  // of a max pool
  kj::Maybe<Convolution&> convolution;
  kj::Maybe<Buffer&> folded;  // of a convolution with a batch norm folded into it
  kj::Maybe<DenseLayer&> dense;
  kj::Maybe<Norm&> norm;
  kj::Maybe<Buffer&> logitsGradient;  // of the loss's input: made by the forward pass
};

class PlanBuilder {
public:
  PlanBuilder(const Graph& graph, Phase phase, uint images, uint lanes, uint block, Element element,
      FlatArrays arrays);

  const Graph& graph;
  const Phase phase;
  const uint images;
  const uint lanes;
  const uint block;
  const Element element;  // of values
  FlatArrays arrays;
  const Stages stages;
  kj::Own<ProgramPlan> plan;
  kj::Array<Storage> storage;  // of each unit

  // While it lives, what is added counts as `unit`'s work in a profile.
  class Scope {
  public:
    Scope(PlanBuilder& builder, const StagedUnit& unit): builder(builder), before(builder.current) {
      builder.current = &unit;
    }
    ~Scope() { builder.current = before; }
    KJ_DISALLOW_COPY(Scope);

  private:
    PlanBuilder& builder;
    const StagedUnit* before;
  };
  // Notes the time of tasks made from here on.
  void setProfile(Profile& profile);
  // The task, or one that notes its time as work of stage `p`.
  kj::Own<Task> timed(uint p, kj::Own<Task> task);
  kj::Own<BatchTask> timed(uint p, kj::Own<BatchTask> task);

  Extent extentOf(const StagedUnit& unit) const { return Extent(unit.node->shape, block); }
  // Of its value and of the gradient of that.
  Element elementOf(const StagedUnit& unit) const {
    return unit.staysFloats ? Element::FLOAT32 : element;
  }
  const StagedUnit& before(const StagedUnit& unit) const { return stages.units[unit.inputs[0]]; }
  StagePlan& stageAt(uint p) { return *plan->stages[p]; }

  Convolution& convolutionOf(const StagedUnit& unit);
  DenseLayer& denseOf(const StagedUnit& unit);
  Norm& normOf(const StagedUnit& unit);

  // The arrays of a unit's keys in the flat ones.
  float* parameterAt(const StagedUnit& unit, uint key);
  float* gradientAt(const StagedUnit& unit, uint key);

  Buffer& batchBuffer(size_t imageValues, Element element = Element::FLOAT32);
  Buffer& scratchBuffer(uint p, size_t imageValues, Element element = Element::FLOAT32);
  // For what `unit` leaves for its users: scratch if nothing after its stage reads it, backward
  // included.
  Buffer& bufferFor(const StagedUnit& unit, size_t imageValues, Element element = Element::FLOAT32);
  // Addresses for what the task that is added next needs while it runs.
  Buffer& workspace(uint p);
  // Appends a task that touches `places`.
  void add(uint p, kj::Own<Task> task, std::initializer_list<Place> places);

  // Where `unit`'s value lies in stage `p`, image after image without gaps. A value that is not
  // stored is made first, once a stage, into scratch memory.
  Place valueOf(const StagedUnit& unit, uint p, Layout layout = Layout::BLOCKED);
  // The same as rows of floats for a dense layer, which may be longer than what is in them.
  Place rowsOf(const StagedUnit& unit, uint p);
  // The same images as `place` has, of `values` each, as floats: there, or in scratch memory.
  Place floatsOf(Place place, size_t values, uint p);
  // Makes the value of a unit that is the input, a dropout on it, a batch norm, a GELU or a concat
  // at `to`.
  void fill(const StagedUnit& unit, uint p, Place to);

  // Whether blocks of `part`, whose first channel is the concat's `channel`, are blocks of the
  // concat.
  bool fitsBlocks(const StagedUnit& concat, const StagedUnit& part, uint channel) const;
  // The channel of a concat where its input begins.
  uint channelOf(const StagedUnit& concat, uint input) const;

private:
  Buffer* pixels;
  kj::Maybe<Profile&> profile;
  uint firstLane = 0;                   // of this program in the profile
  const StagedUnit* current = nullptr;  // whose tasks are being made
  // What stages have recomputed so far.
  struct Made {
    uint stage;
    UnitId unit;
    Layout layout;
    Buffer* buffer;
  };
  kj::Vector<Made> made;

  // Whether backward tasks read its value.
  bool isReadBackward(const StagedUnit& unit) const;
  // The last forward stage that reads its value, itself or to make that of a recomputed one.
  uint lastReadOf(const StagedUnit& unit) const;
  Account account(Profile& profile, uint p) const;
  kj::Maybe<Buffer&> find(uint p, UnitId unit, Layout layout, Element element);
  Place plainOf(const StagedUnit& unit, uint p, Element as);
  void fillChannels(const StagedUnit& concat, uint input, uint p, Place to);
};

}  // namespace nn::cpu
