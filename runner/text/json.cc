#include "runner/text/json.h"

#include <capnp/compat/json.h>

namespace runner {

kj::String inJson(kj::StringPtr text) {
  capnp::JsonCodec codec;
  return codec.encode(capnp::Text::Reader(text));
}

}  // namespace runner
