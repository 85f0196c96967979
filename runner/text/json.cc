#include "runner/text/json.h"

#include <capnp/compat/json.h>
#include <kj/encoding.h>

namespace runner {

namespace {

// Whether JSON has this text as it is, between two quotes.
bool isPlain(kj::StringPtr text) {
  for (char c: text) {
    bool isItself = c >= ' ' && c <= '~' && c != '"' && c != '\\';
    if (!isItself) return false;
  }
  return true;
}

}  // namespace

kj::String inJson(kj::StringPtr text) {
  // Names of tensors are plain. For each text, the codec allocates and clears 8 KiB.
  if (isPlain(text)) return kj::str('"', text, '"');
  capnp::JsonCodec codec;
  auto decoded = kj::encodeUtf32(text);
  if (!decoded.hadErrors) return codec.encode(capnp::Text::Reader(text));
  kj::String replaced = kj::decodeUtf32(decoded);
  return codec.encode(capnp::Text::Reader(replaced));
}

}  // namespace runner
