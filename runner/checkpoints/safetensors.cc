#include "runner/checkpoints/safetensors.h"

#include <capnp/compat/json.h>
#include <capnp/message.h>
#include <kj/function.h>
#include <kj/vector.h>

#include <algorithm>

#include "configs/language/failure.h"
#include "runner/text/json.h"

namespace runner {

namespace {

using kj::uint;

// The size of the number in front of the header.
constexpr uint LENGTH_BYTES = 8;
// The entry of the header that holds texts.
constexpr kj::StringPtr METADATA = "__metadata__"_kj;
// Ten thousand tensors take about 1 MiB. Parsing a header takes many times its size.
constexpr uint64_t HEADER_BYTES_MAX = 4 << 20;

using Fields = capnp::List<capnp::JsonValue::Field>::Reader;

Fields fieldsOf(capnp::JsonValue::Reader value) {
  if (!value.isObject()) configs::fail("its header is not a JSON object of objects");
  return value.getObject();
}

// Converts a double from JSON to a whole number. Errors name its `field`.
uint64_t wholeNumber(capnp::JsonValue::Reader value, kj::StringPtr field) {
  constexpr double MOST = 1ull << 53;
  double number = value.isNumber() ? value.getNumber() : -1;
  if (!(number >= 0 && number <= MOST) || number != double(uint64_t(number))) {
    configs::fail("its header has a `", field, "` that does not consist of whole numbers");
  }
  return uint64_t(number);
}

FoundTensor tensorOf(kj::StringPtr name, Fields fields, kj::ArrayPtr<const kj::byte> all) {
  kj::Maybe<kj::StringPtr> type;
  kj::Maybe<uint64_t> elements;
  kj::String shape;
  kj::Maybe<kj::ArrayPtr<const kj::byte>> values;
  for (auto field: fields) {
    auto value = field.getValue();
    if (field.getName() == "dtype" && value.isString()) type = value.getString();
    if (field.getName() == "shape" && value.isArray()) {
      uint64_t product = 1;
      kj::Vector<kj::String> sides;
      for (auto side: value.getArray()) {
        auto size = wholeNumber(side, field.getName());
        if (size > 0 && product > (1ull << 53) / size) configs::fail("`", name, "` is too large");
        product *= size;
        sides.add(kj::str(size));
      }
      elements = product;
      shape = kj::strArray(sides, ",");
    }
    if (field.getName() == "data_offsets" && value.isArray() && value.getArray().size() == 2) {
      auto begin = wholeNumber(value.getArray()[0], field.getName());
      auto end = wholeNumber(value.getArray()[1], field.getName());
      if (begin > end || end > all.size()) {
        configs::fail("the values of `", name, "` lie outside of the file: it is cut short");
      }
      values = all.slice(begin, end);
    }
  }
  KJ_IF_MAYBE(t, type) {
    KJ_IF_MAYBE(n, elements) {
      KJ_IF_MAYBE(v, values) {
        if (v->size() == *n * bytesPerValue(*t)) {
          return {kj::str(name), kj::str(*t), kj::mv(shape), *v};
        }
      }
    }
  }
  configs::fail("the dtype, shape and data_offsets of `", name,
      "` in its header are missing, malformed, or do not agree");
}

// Throws unless each byte of `all` belongs to one of `tensors`, and to no other.
void requireNoGaps(kj::ArrayPtr<const FoundTensor> tensors, kj::ArrayPtr<const kj::byte> all) {
  auto places = KJ_MAP(tensor, tensors) {
    return tensor.values;
  };
  std::sort(places.begin(), places.end(), [](auto& a, auto& b) {
    return a.begin() < b.begin() || (a.begin() == b.begin() && a.end() < b.end());
  });
  auto at = all.begin();
  bool areNext = true;
  for (auto& place: places) {
    areNext = areNext && place.begin() == at;
    at = place.end();
  }
  if (!areNext || at != all.end()) {
    configs::fail("the tensors in its header overlap, or leave bytes of the file unused");
  }
}

// Calls `take` with each entry of the header and the values of the whole file. Returns these.
kj::ArrayPtr<const kj::byte> eachEntry(kj::ArrayPtr<const kj::byte> bytes,
    kj::FunctionParam<void(kj::StringPtr, Fields, kj::ArrayPtr<const kj::byte>)> take) {
  KJ_IF_MAYBE(values, valuesIn(bytes)) {
    auto header = bytes.slice(LENGTH_BYTES, values->begin() - bytes.begin()).asChars();
    if (header.size() > HEADER_BYTES_MAX) configs::fail("its header is too large");
    capnp::MallocMessageBuilder message;
    auto json = message.initRoot<capnp::JsonValue>();
    capnp::JsonCodec codec;
    auto decode = [&]() {
      decodeJson(header, [&](kj::ArrayPtr<const char> text) { codec.decodeRaw(text, json); });
    };
    if (kj::runCatchingExceptions(decode) != nullptr) configs::fail("its header is not JSON");
    for (auto field: fieldsOf(json.asReader())) {
      take(field.getName(), fieldsOf(field.getValue()), *values);
    }
    return *values;
  }
  configs::fail("it is cut short, or not in the safetensors format");
}

}  // namespace

uint64_t bytesPerValue(kj::StringPtr type) {
  if (type == "F16" || type == "BF16") return 2;
  if (type == "F32") return 4;
  if (type == "F64" || type == "U64" || type == "I64") return 8;
  configs::fail(
      "its header has the type `", type, "`; only F16, BF16, F32, F64, U64 and I64 are known");
}

kj::Array<kj::byte> safetensorsHead(
    kj::ArrayPtr<const Note> notes, kj::ArrayPtr<const Tensor> tensors) {
  kj::Vector<kj::String> entries;
  auto texts = KJ_MAP(note, notes) {
    return kj::str(inJson(note.name), ":", inJson(note.text));
  };
  entries.add(kj::str("\"__metadata__\":{", kj::strArray(texts, ","), "}"));
  uint64_t at = 0;
  for (auto& tensor: tensors) {
    entries.add(kj::str(inJson(tensor.name), ":{\"dtype\":\"", tensor.type, "\",\"shape\":[",
        tensor.shape, "],\"data_offsets\":[", at, ",", at + tensor.bytes, "]}"));
    at += tensor.bytes;
  }
  auto header = kj::str("{", kj::strArray(entries, ","), "}");
  uint64_t padded = (header.size() + 7) / 8 * 8;
  auto head = kj::heapArray<kj::byte>(LENGTH_BYTES + padded);
  for (uint i = 0; i < LENGTH_BYTES; i++) head[i] = kj::byte(padded >> (8 * i));
  auto text = head.slice(LENGTH_BYTES, head.size());
  for (auto i: kj::indices(text)) text[i] = i < header.size() ? header[i] : ' ';
  return head;
}

kj::String shapeText(kj::StringPtr shape) {
  kj::Vector<kj::String> sides;
  while (shape.size() > 0) {
    size_t end = shape.findFirst(',').orDefault(shape.size());
    sides.add(kj::heapString(shape.slice(0, end)));
    shape = shape.slice(kj::min(end + 1, shape.size()));
  }
  return kj::strArray(sides, "×");
}

kj::Maybe<kj::ArrayPtr<const kj::byte>> valuesIn(kj::ArrayPtr<const kj::byte> bytes) {
  if (bytes.size() < LENGTH_BYTES) return nullptr;
  uint64_t header_bytes = 0;
  for (uint i = 0; i < LENGTH_BYTES; i++) header_bytes |= uint64_t(bytes[i]) << (8 * i);
  if (header_bytes > bytes.size() - LENGTH_BYTES) return nullptr;
  return bytes.slice(LENGTH_BYTES + header_bytes, bytes.size());
}

FoundContents contentsOf(kj::ArrayPtr<const kj::byte> bytes) {
  kj::Vector<FoundTensor> tensors;
  kj::Vector<FoundNote> notes;
  auto values = eachEntry(bytes, [&](kj::StringPtr name, Fields fields, auto values) {
    if (name != METADATA) {
      tensors.add(tensorOf(name, fields, values));
      return;
    }
    for (auto field: fields) {
      if (!field.getValue().isString()) continue;
      notes.add(FoundNote{kj::str(field.getName()), kj::str(field.getValue().getString())});
    }
  });
  requireNoGaps(tensors, values);
  return {tensors.releaseAsArray(), notes.releaseAsArray()};
}

kj::Array<FoundTensor> tensorsIn(kj::ArrayPtr<const kj::byte> bytes) {
  return contentsOf(bytes).tensors;
}

kj::Array<FoundNote> notesIn(kj::ArrayPtr<const kj::byte> bytes) {
  return contentsOf(bytes).notes;
}

}  // namespace runner
