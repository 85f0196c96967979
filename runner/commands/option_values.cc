#include "runner/commands/option_values.h"

#include <errno.h>
#include <sys/stat.h>

#include "runner/roles/trace_file.h"
#include "runner/text/numbers.h"

namespace runner {

namespace {

// Returns why no folder can be at `path`: a file is there, or at one of its parents. Null if a
// folder can.
kj::Maybe<kj::String> whyNoFolder(kj::StringPtr path) {
  struct stat about;
  bool isThere = ::stat(path.cStr(), &about) == 0;
  if (isThere ? S_ISDIR(about.st_mode) : errno != ENOTDIR) return nullptr;
  return kj::str("`", path, "` is ", isThere ? "" : "below ", "a file; name a folder");
}

}  // namespace

SetOption folderSetter(kj::String& to, kj::StringPtr advice) {
  return [&to, advice](kj::StringPtr word) -> Validity {
    // Other names are appended to this path. If it were empty, they would be below the root folder.
    if (word.size() == 0) return kj::str(advice);
    KJ_IF_MAYBE(why, whyNoFolder(word)) return kj::mv(*why);
    to = kj::str(word);
    return true;
  };
}

SetOption textSetter(kj::String& to, kj::StringPtr advice) {
  return [&to, advice](kj::StringPtr word) -> Validity {
    if (word.size() == 0) return kj::str(advice);
    to = kj::str(word);
    return true;
  };
}

kj::Function<Validity()> flagSetter(bool& to, bool value) {
  return [&to, value]() -> Validity {
    to = value;
    return true;
  };
}

SetOption countSetter(uint64_t& to, uint64_t most) {
  return [&to, most](kj::StringPtr word) -> Validity {
    uint64_t count = parseWhole(word, most).orDefault(0);
    if (count == 0) return kj::str("`", word, "` is not a whole number from 1 to ", most);
    to = count;
    return true;
  };
}

SetOption traceStepsSetter(kj::Maybe<rpc::TraceSteps>& to) {
  return [&to](kj::StringPtr word) -> Validity {
    to = parseTraceSteps(word);
    if (to == nullptr) return kj::str("write --trace-steps A-B with A ≤ B, e.g. 100-199");
    return true;
  };
}

}  // namespace runner
