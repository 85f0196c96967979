// rpc/codec/expected_bytes.h: how many bytes payloads will have, before there are any. Pure.
#pragma once

#include "rpc/codec/encoding.h"

namespace rpc::codec {

// Of a payload of `size` floats, of which the share `nonZero` is not 0, wherever these are. Exact
// where it does not depend on the values.
double expected_bytes(const Encoding& encoding, uint64_t size, double nonZero);

}  // namespace rpc::codec
