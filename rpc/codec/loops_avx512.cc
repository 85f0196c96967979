// Compiled for AVX-512 (F, BW, DQ, VL).
#include "rpc/codec/loops_body.h"

namespace rpc::codec {

constinit const Loops AVX512_LOOPS = loopsCalled("avx512");

}  // namespace rpc::codec
