// nn/cpu/plan_builder.h: makes a plan: collects tasks, and decides where the value of each unit is
// stored.
#pragma once

#include "nn/cpu/plan.h"
#include "nn/cpu/stages.h"
#include "nn/cpu/timed.h"

namespace nn::cpu {

// The flat arrays that tasks read and write, with the sizes of the graph.
struct FlatArrays {
  kj::ArrayPtr<float> parameters;
  kj::ArrayPtr<float> gradients;
  kj::ArrayPtr<float> statistics;
};

// The place of a unit's value, and data that the tasks of the unit share.
struct Storage {
  kj::Maybe<Buffer&> value;  // null if it is recomputed, or is in `rows` or in the input
  kj::Maybe<Buffer&> rows;   // the value of a dropout of the input images, in plain order
  kj::Maybe<Buffer&> index;  // of a max pool
  kj::Maybe<Convolution&> convolution;
  kj::Maybe<Buffer&> folded;  // of a convolution with a batch norm folded into it
  kj::Maybe<DenseLayer&> dense;
  kj::Maybe<Norm&> norm;
  kj::Maybe<Buffer&> logitsGradient;  // of the loss's input: made by the forward pass
};

// Collects the tasks of one phase in `plan`. addForward() sets the `storage` of each unit, and
// addBackward() reads it. In the end, planFor() completes `plan` and takes it.
class PlanBuilder {
public:
  PlanBuilder(const Graph& graph, Phase phase, uint images, uint lanes, const Kernels& kernels,
      Element element, FlatArrays arrays);

  const Graph& graph;
  const Phase phase;
  const Batch batch;
  const uint lanes;
  const uint block;
  const AmxLoops* const amx;  // or null
  const Element element;      // of values
  FlatArrays arrays;
  const Stages stages;
  kj::Own<ProgramPlan> plan;
  kj::Array<Storage> storage;  // of each unit

  // While it lives, tasks that are added count as the work of `unit` in a profile.
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
  // Makes tasks that are added from now on record their time.
  void setProfile(Profile& profile);
  // Returns the task, or one that also records its time as work of stage `p`.
  kj::Own<Task> timed(uint p, kj::Own<Task> task);
  kj::Own<BatchTask> timed(uint p, kj::Own<BatchTask> task);

  Extent extentOf(const StagedUnit& unit) const {
    return Extent(unit.node->shape, block, batch.group);
  }
  // The element of the unit's value, and of the gradient of that value.
  Element elementOf(const StagedUnit& unit) const {
    return unit.staysFloats ? Element::FLOAT32 : element;
  }
  const StagedUnit& before(const StagedUnit& unit) const { return stages.units[unit.inputs[0]]; }
  StagePlan& stageAt(uint p) { return *plan->stages[p]; }

  // Whether the unit's value is stored as plain floats.
  bool isPlain(const StagedUnit& unit) const {
    return unit.is<Input>() || storage[unit.id].rows != nullptr;
  }

  Convolution& convolutionOf(const StagedUnit& unit);
  DenseLayer& denseOf(const StagedUnit& unit);
  Norm& normOf(const StagedUnit& unit);

  // The arrays of a unit's keys in the flat ones.
  float* parameterAt(const StagedUnit& unit, uint key);
  float* gradientAt(const StagedUnit& unit, uint key);

  Buffer& batchBuffer(size_t imageValues, Element element = Element::FLOAT32);
  Buffer& scratchBuffer(uint p, size_t imageValues, Element element = Element::FLOAT32);
  // Returns a buffer for data that the readers of `unit` need. It is scratch memory if no later
  // stage reads it, including backward stages.
  Buffer& bufferFor(const StagedUnit& unit, size_t imageValues, Element element = Element::FLOAT32);
  // Returns scratch memory for the task that is added next.
  Buffer& workspace(uint p);
  // Appends a task that touches `places`.
  void add(uint p, kj::Own<Task> task, std::initializer_list<Place> places);

  // Returns the place of the value of `unit` in stage `p`, image after image without gaps. If the
  // value is not stored, adds tasks that compute it in scratch memory, once per stage.
  Place valueOf(const StagedUnit& unit, uint p, Layout layout = Layout::BLOCKED);
  // Does the same for a convolution. With AMX, plain images are floats.
  Place inputOf(const StagedUnit& unit, uint p, Layout layout);
  // Does the same, as rows of floats for a dense layer. Rows may be longer than the values in them.
  Place rowsOf(const StagedUnit& unit, uint p);
  // Returns a place with the images of `place` as floats, `values` per image. It is `place` itself
  // if that holds floats, and otherwise a copy in scratch memory.
  Place floatsOf(Place place, size_t values, uint p);
  // Computes the value of a unit at `to`. The unit is the input, a dropout on the input, a batch
  // norm, a GELU or a concat.
  void fill(const StagedUnit& unit, uint p, Place to);
  // Writes the value of any unit to `to`: computes it there, or copies the stored value.
  void fillFrom(const StagedUnit& unit, uint p, Place to);

  // Whether the blocks of `part` are also blocks of the concat, where `part` begins at `channel`.
  bool fitsBlocks(const StagedUnit& concat, const StagedUnit& part, uint channel) const;
  // The channel of a concat where its input begins.
  uint channelOf(const StagedUnit& concat, uint input) const;

private:
  Buffer* pixels;
  kj::Maybe<Profile&> profile;
  uint firstLane = 0;                   // of this program in the profile
  const StagedUnit* current = nullptr;  // whose tasks are being made
  // The values that stages have recomputed so far.
  struct Made {
    uint stage;
    UnitId unit;
    Layout layout;
    Buffer* buffer;
  };
  kj::Vector<Made> made;

  // Whether backward tasks read its value.
  bool isReadBackward(const StagedUnit& unit) const;
  // Returns the last forward stage that reads its value, or that needs it to recompute another
  // value.
  uint lastReadOf(const StagedUnit& unit) const;
  Account account(Profile& profile, uint p) const;
  kj::Maybe<Buffer&> find(uint p, UnitId unit, Layout layout, Element element);
  Place plainOf(const StagedUnit& unit, uint p, Element as);
  void fillChannels(const StagedUnit& concat, uint input, uint p, Place to);
};

}  // namespace nn::cpu
