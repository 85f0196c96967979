// Compiled for AVX2.
#include "rpc/codec/loops_body.h"

namespace rpc::codec {

constinit const Loops AVX2_LOOPS = loopsCalled("avx2");

}  // namespace rpc::codec
