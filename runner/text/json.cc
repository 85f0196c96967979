#include "runner/text/json.h"

#include <capnp/compat/json.h>
#include <kj/encoding.h>

#include <cmath>

#include "runner/text/numbers.h"

namespace runner {

kj::String inJson(kj::StringPtr text) {
  capnp::JsonCodec codec;
  auto decoded = kj::encodeUtf32(text);
  if (!decoded.hadErrors) return codec.encode(capnp::Text::Reader(text));
  kj::String replaced = kj::decodeUtf32(decoded);
  return codec.encode(capnp::Text::Reader(replaced));
}

kj::String inJson(double value) {
  return std::isfinite(value) ? kj::str(value) : kj::str("null");
}

kj::String inJson(float value) {
  return std::isfinite(value) ? shortest(value) : kj::str("null");
}

}  // namespace runner
