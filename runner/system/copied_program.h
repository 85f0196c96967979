// runner/system/copied_program.h: this program where a launcher on another machine has copied it,
// and earlier versions of it beside it.
#pragma once

#include <kj/common.h>
#include <kj/string.h>

namespace runner {

// A folder ~/.cache/runner/programs/<sha256 of its tar>.
class CopiedProgram {
public:
  // Returns the folder of this very program. Null if no launcher has copied it.
  static kj::Maybe<CopiedProgram> find();
  explicit CopiedProgram(kj::String folder): folder(kj::mv(folder)) {}

  // Whether nobody has written to its files since they were copied.
  bool isUnchanged() const;
  // Notes that it is in use. Call it more often than UNUSED_DAYS.
  void noteUse() const;
  // Removes the other programs beside it, and copies that were cut off, if nobody has used them for
  // UNUSED_DAYS. What cannot be removed stays.
  void removeUnused() const;

  static constexpr kj::uint UNUSED_DAYS = 30;

private:
  kj::String folder;
};

}  // namespace runner
