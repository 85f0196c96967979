// runner/system/copied_program.h: the copy of this program that a launcher on another machine has
// made here, and copies of other versions beside it.
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

  // Whether the files of the copy are unchanged since they were copied.
  bool isUnchanged() const;
  // Marks the copy as in use. Call it again before UNUSED_DAYS have passed.
  void noteUse() const;
  // Removes other and incomplete copies beside it that nobody has used for UNUSED_DAYS. Ignores
  // files that cannot be removed.
  void removeUnused() const;

  static constexpr kj::uint UNUSED_DAYS = 30;

private:
  kj::String folder;
};

}  // namespace runner
