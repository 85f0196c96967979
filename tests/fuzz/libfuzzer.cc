// The entry of libFuzzer, for --config=fuzz.
#include "tests/fuzz/fuzz.h"

namespace {

// Stack traces take most of the time of an input that is refused. An exception still says where it
// was thrown.
class NoTraces final: public kj::ExceptionCallback {
public:
  StackTraceMode stackTraceMode() override { return StackTraceMode::NONE; }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  NoTraces noTraces;
  fuzz::feedOne(kj::arrayPtr(data, size));
  return 0;
}
