// tests/fuzz/fuzz.h: the interface of fuzz targets, and functions for them. There is one target per
// parser.
#pragma once

#include <kj/array.h>
#include <kj/exception.h>
#include <kj/function.h>
#include <kj/string.h>

#include <cstdint>

namespace fuzz {

using kj::uint;
using Bytes = kj::ArrayPtr<const kj::byte>;

// Each target defines this function: it gives `input` to one parser. It may throw an exception with
// the reason why the input is wrong. The process must not end, whatever the input is.
void feed(Bytes input);

// Calls feed(), as refusalOf() does.
void feedOne(Bytes input);

// Calls `function`. Returns the description of the exception that it throws, or null. Ends the
// process as judge() does.
kj::Maybe<kj::String> refusalOf(kj::FunctionParam<void()> function);

// Ends the process if the exception has no sentence with the reason: a failed KJ_REQUIRE(condition)
// is a bug in the code.
void judge(const kj::Exception& exception);

// Ends the process unless `isTrue`. Targets use this for conditions that must hold for every input.
void must(bool isTrue, kj::StringPtr what);

// Returns the path of a file in memory with this content. The next call with the same `name`
// replaces it.
kj::StringPtr fileOf(kj::StringPtr name, Bytes content);
// Returns the folder of those files. It is removed at the end of the process.
kj::StringPtr folder();
// Removes a folder in it, if there is one.
void removeFolder(kj::StringPtr name);
// Returns the content of a file.
kj::Array<kj::byte> contentOf(kj::StringPtr path);

// Takes numbers from an input, for targets that turn it into calls. After its end, all are 0.
class Dice {
public:
  explicit Dice(Bytes rest): rest(rest) {}

  bool isEmpty() const { return rest.size() == 0; }
  uint8_t byte();
  // The next `bytes` bytes as a little-endian number, or the remaining bytes if they are fewer.
  uint64_t number(uint bytes);
  // A number below `count`, or occasionally any number.
  uint64_t near(uint64_t count);
  // At most this many of the next bytes.
  Bytes take(size_t bytes);
  // The remaining bytes.
  Bytes all() { return take(rest.size()); }

private:
  Bytes rest;
};

// Applies edits to `bytes`: each is a place (2 bytes), a length below 8 and as many new bytes.
void edit(kj::ArrayPtr<kj::byte> bytes, Dice& dice);

}  // namespace fuzz
