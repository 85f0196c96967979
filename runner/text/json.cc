#include "runner/text/json.h"

#include <capnp/compat/json.h>
#include <kj/encoding.h>

namespace runner {

kj::String inJson(kj::StringPtr text) {
  capnp::JsonCodec codec;
  auto decoded = kj::encodeUtf32(text);
  if (!decoded.hadErrors) return codec.encode(capnp::Text::Reader(text));
  kj::String replaced = kj::decodeUtf32(decoded);
  return codec.encode(capnp::Text::Reader(replaced));
}

}  // namespace runner
