#include "runner/weights/weights_file.h"

#include "configs/language/failure.h"
#include "io/records/mapped_file.h"
#include "runner/experiment/start_weights.h"
#include "runner/system/reason.h"

namespace runner {

kj::Maybe<kj::StringPtr> WeightsFile::note(kj::StringPtr name) const {
  for (auto& note: notes) {
    if (note.name == name) return note.text.asPtr();
  }
  return nullptr;
}

WeightsFile openWeights(kj::StringPtr path) {
  WeightsFile file{.path = weightsPathOf(path)};
  auto lost = kj::str(file.path, " can no longer be read: it was cut short, or its disk fails");
  auto read = [&]() {
    file.bytes = io::mapFile(file.path, lost);
    file.arrays = tensorsIn(file.bytes);
    file.notes = notesIn(file.bytes);
  };
  KJ_IF_MAYBE(e, kj::runCatchingExceptions(read)) {
    configs::fail(file.path, " is not a file of weights: ", reasonOf(*e));
  }
  return file;
}

}  // namespace runner
