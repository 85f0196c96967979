// A file of MXNet's parameters.
#include "runner/weights/mxnet_params.h"

#include "runner/checkpoints/float_values.h"
#include "tests/fuzz/fuzz.h"

namespace fuzz {

void feed(Bytes input) {
  for (auto& array: runner::mxnetArraysIn(input)) {
    must(array.values.begin() >= input.begin() && array.values.end() <= input.end(),
        "the values lie in the file");
    must(runner::hasFloats(array), "the values are real numbers");
    auto bytes = runner::bytesPerValue(array.type);
    must(array.values.size() > 0 && array.values.size() % bytes == 0, "the values are whole");
    auto floats = kj::heapArray<float>(array.values.size() / bytes);
    runner::writeFloats(array, floats);
  }
}

}  // namespace fuzz
