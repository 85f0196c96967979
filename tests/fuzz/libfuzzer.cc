// The entry of libFuzzer, for --config=fuzz.
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::feedOne(kj::arrayPtr(data, size));
  return 0;
}
