// nn/cpu/draft.h: a plan while it is made: its tasks so far, and where each unit's value lies.
#pragma once

#include "nn/cpu/plan.h"
#include "nn/cpu/timed.h"
#include "nn/cpu/units.h"

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

class Draft {
public:
  Draft(const Graph& graph, Phase phase, uint images, uint lanes, uint block, Element element,
      FlatArrays arrays);

  const Graph& graph;
  const Phase phase;
  const uint images;
  const uint lanes;
  const uint block;
  const Element element;  // of values
  FlatArrays arrays;
  const Units units;
  kj::Own<Plan> plan;
  kj::Array<Storage> storage;  // of each unit

  // While it lives, what is added counts as `unit`'s work in a profile.
  class Scope {
  public:
    Scope(Draft& draft, const Unit& unit): draft(draft), before(draft.current) {
      draft.current = &unit;
    }
    ~Scope() { draft.current = before; }
    KJ_DISALLOW_COPY(Scope);

  private:
    Draft& draft;
    const Unit* before;
  };
  // Notes the time of tasks made from here on.
  void setProfile(Profile& profile);
  // The task, or one that notes its time as work of phase `p`.
  kj::Own<Task> timed(uint p, kj::Own<Task> task);
  kj::Own<BatchTask> timed(uint p, kj::Own<BatchTask> task);

  NodeId nodeOf(const Unit& unit) const { return unit.node - graph.nodes.begin(); }
  Extent extentOf(const Unit& unit) const { return Extent(unit.node->shape, block); }
  // Of its value and of the gradient of that.
  Element elementOf(const Unit& unit) const { return unit.staysFloats ? Element::FLOAT : element; }
  const Unit& before(const Unit& unit) const { return units.all[unit.inputs[0]]; }
  PhasePlan& phaseAt(uint p) { return *plan->phases[p]; }

  Convolution& convolutionOf(const Unit& unit);
  DenseLayer& denseOf(const Unit& unit);
  Norm& normOf(const Unit& unit);

  // The arrays of a unit's keys in the flat ones.
  float* parameterAt(const Unit& unit, uint key);
  float* gradientAt(const Unit& unit, uint key);

  Buffer& batchBuffer(size_t imageValues, Element element = Element::FLOAT);
  Buffer& scratchBuffer(uint p, size_t imageValues, Element element = Element::FLOAT);
  // For what `unit` leaves for its users: scratch if nothing after its phase reads it, backward
  // included.
  Buffer& bufferFor(const Unit& unit, size_t imageValues, Element element = Element::FLOAT);
  // Memory for what the task that is added next needs while it runs.
  Buffer& workspace(uint p);
  // Appends a task that touches `places`.
  void add(uint p, kj::Own<Task> task, std::initializer_list<Place> places);

  // Where `unit`'s value lies in phase `p`, image after image without gaps. A value that is not
  // stored is made first, once a phase, into scratch memory.
  Place valueOf(const Unit& unit, uint p, Layout layout = Layout::BLOCKED);
  // The same as rows of floats for a dense layer, which may be longer than what is in them.
  Place rowsOf(const Unit& unit, uint p);
  // The same images as `place` has, of `values` each, as floats: there, or in scratch memory.
  Place floatsOf(Place place, size_t values, uint p);
  // Makes the value of a unit that is the input, a dropout on it, a batch norm, a GELU or a concat
  // at `to`.
  void fill(const Unit& unit, uint p, Place to);

  // Whether blocks of `part`, whose first channel is the concat's `channel`, are blocks of the
  // concat.
  bool fitsBlocks(const Unit& concat, const Unit& part, uint channel) const;
  // The channel of a concat where its input begins.
  uint channelOf(const Unit& concat, uint input) const;

private:
  Buffer* pixels;
  kj::Maybe<Profile&> profile;
  uint firstLane = 0;             // of this program in the profile
  const Unit* current = nullptr;  // whose tasks are being made
  // What phases have recomputed so far.
  struct Made {
    uint phase;
    UnitId unit;
    Layout layout;
    Buffer* buffer;
  };
  kj::Vector<Made> made;

  // Whether backward tasks read its value.
  bool isReadBackward(const Unit& unit) const;
  // The last forward phase that reads its value, itself or to make that of a recomputed one.
  uint lastReadOf(const Unit& unit) const;
  Account account(Profile& profile, uint p) const;
  kj::Maybe<Buffer&> find(uint p, UnitId unit, Layout layout, Element element);
  Place plainOf(const Unit& unit, uint p, Element as);
  void fillChannels(const Unit& concat, uint input, uint p, Place to);
};

}  // namespace nn::cpu
