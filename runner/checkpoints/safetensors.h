// runner/checkpoints/safetensors.h: the file format of weights and checkpoints, which other
// programs read.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include <cstdint>

namespace runner {

// The format (huggingface/safetensors, README): the length of a JSON header in 8 little-endian
// bytes, the header, then the values of all tensors, one after the other. The header names type,
// shape and place of each tensor.

// A tensor to be written.
struct Tensor {
  kj::String name;
  kj::StringPtr type;  // F32, F64, U64
  kj::String shape;    // "64,3,5,5"
  uint64_t bytes;
};

// A text in the header, for people and other programs.
struct Note {
  kj::StringPtr name;
  kj::String text;
};

// Returns the bytes that precede the values in a file. They are padded, so that the values begin at
// a multiple of 8 bytes. The values of the tensors must follow in the given order.
kj::Array<kj::byte> safetensorsHead(
    kj::ArrayPtr<const Note> notes, kj::ArrayPtr<const Tensor> tensors);

// A tensor in a file that was read.
struct FoundTensor {
  kj::String name;
  kj::String type;   // as in Tensor; F16, BF16 and I64 in files of other programs
  kj::String shape;  // as in Tensor
  kj::ArrayPtr<const kj::byte> values;
};

// Returns the tensors of the file with these bytes, in the order of the header. Throws with the
// cause if the bytes are not such a file, or are cut short. The result refers to `bytes`.
kj::Array<FoundTensor> tensorsIn(kj::ArrayPtr<const kj::byte> bytes);

// Returns how many bytes a value of this type has. Throws for a type that tensorsIn() refuses.
uint64_t bytesPerValue(kj::StringPtr type);

// Returns the shape "64,3" as "64×3". With a comma it would look like a number.
kj::String shapeText(kj::StringPtr shape);

// A text in the header of a file that was read.
struct FoundNote {
  kj::String name, text;
};
// Returns the texts in the header of such a file. Throws as tensorsIn() does.
kj::Array<FoundNote> notesIn(kj::ArrayPtr<const kj::byte> bytes);

struct FoundContents {
  kj::Array<FoundTensor> tensors;
  kj::Array<FoundNote> notes;
};
// Returns what tensorsIn() and notesIn() return, and parses the header only once.
FoundContents contentsOf(kj::ArrayPtr<const kj::byte> bytes);

// Returns the values of all tensors together, or null if `bytes` is cut short.
kj::Maybe<kj::ArrayPtr<const kj::byte>> valuesIn(kj::ArrayPtr<const kj::byte> bytes);

}  // namespace runner
