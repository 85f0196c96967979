// Compiled for x86-64 without extensions.
#include "rpc/codec/loops_body.h"

namespace rpc::codec {

constinit const Loops OLDEST_LOOPS = loopsCalled("x86-64");

}  // namespace rpc::codec
