#include "io/images/jpeg_check.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace io {

namespace {

using kj::byte;
using kj::uint;
using Bytes = kj::ArrayPtr<const byte>;

// Markers (ITU-T T.81, table B.1). Each follows a byte 0xff.
enum Marker : byte {
  BASELINE_FRAME = 0xc0,
  EXTENDED_FRAME = 0xc1,
  HUFFMAN_TABLES = 0xc4,
  FIRST_RESTART = 0xd0,
  END_OF_IMAGE = 0xd9,
  SCAN = 0xda,
  QUANTIZATION_TABLES = 0xdb,
  RESTART_INTERVAL = 0xdd,
  FIRST_APPLICATION = 0xe0,
  LAST_APPLICATION = 0xef,
  COMMENT = 0xfe,
};

constexpr uint TABLES_MAX = 4;  // of each kind
constexpr uint COMPONENTS_MAX = 3;
constexpr uint CODE_BITS_MAX = 16;
constexpr uint SYMBOLS_MAX = 256;  // of one code
constexpr uint COEFFICIENTS = 64;  // per block; the first is "DC", the others are "AC"
// More bits than a baseline file may use. A sum of larger numbers over many blocks might overflow.
constexpr uint DC_BITS_MAX = 11;
constexpr uint64_t BLOCKS_MAX = 1000000;  // per component

// Codes of at most this many bits are looked up, together with the bits after them. With more bits,
// the tables would not stay in the first cache.
constexpr uint LOOKUP_BITS = 10;

// The meaning of one code, or of several consecutive ones.
struct Step {
  uint8_t bits = 0;      // of the codes and of the numbers that they announce; 0: there is no code
  uint8_t advance = 0;   // how many coefficients the codes cover
  bool ends = false;     // the rest of the block is zero
  uint8_t codeBits = 0;  // of the first code
};

struct HuffmanCode {
  bool isKnown = false;  // in this file
  // The meaning of the next bits, by their value. For AC coefficients, it covers all codes in these
  // bits.
  Step steps[1 << LOOKUP_BITS];
  // The codes of each length are consecutive numbers, and so are the places of their symbols.
  uint first[CODE_BITS_MAX + 1];
  uint count[CODE_BITS_MAX + 1];
  uint place[CODE_BITS_MAX + 1];
  kj::Array<byte> definition;

  Bytes symbols() const { return definition.slice(CODE_BITS_MAX, definition.size()); }
};

// The step of a code of `length` bits. A symbol of an AC coefficient has a number of zeros before
// it and the number of its bits.
Step stepOf(bool isDc, uint length, uint8_t symbol) {
  auto codeBits = uint8_t(length);
  if (isDc) return {uint8_t(length + symbol), 1, false, codeBits};
  uint zeros = symbol >> 4, bits = symbol & 15;
  if (bits > 0) return {uint8_t(length + bits), uint8_t(zeros + 1), false, codeBits};
  bool isRun = zeros == 15;
  return {uint8_t(length), uint8_t(isRun ? 16 : 0), !isRun, codeBits};
}

// Returns the step of the code that `window` begins with. Its highest bit comes first.
Step stepAt(const HuffmanCode& code, bool isDc, uint64_t window) {
  for (uint length = 1; length <= CODE_BITS_MAX; ++length) {
    uint bits = window >> (64 - length);
    uint index = bits - code.first[length];
    if (bits >= code.first[length] && index < code.count[length]) {
      return stepOf(isDc, length, code.symbols()[code.place[length] + index]);
    }
  }
  return {};
}

void fillSteps(HuffmanCode& code, bool isDc) {
  constexpr uint STEPS = 1 << LOOKUP_BITS;
  Step first[STEPS];
  for (uint length = 1; length <= LOOKUP_BITS; ++length) {
    uint copies = STEPS >> length;
    for (uint i = 0; i < code.count[length]; ++i) {
      auto step = stepOf(isDc, length, code.symbols()[code.place[length] + i]);
      std::fill_n(first + (code.first[length] + i) * copies, copies, step);
    }
  }
  for (uint i = 0; i < STEPS; ++i) {
    auto all = first[i];
    while (!isDc && all.bits > 0 && !all.ends && all.bits < LOOKUP_BITS) {
      auto& next = first[(i << all.bits) % STEPS];
      bool isHeld = next.bits > 0 && next.codeBits <= LOOKUP_BITS - all.bits;
      if (!isHeld || all.advance + next.advance >= COEFFICIENTS) break;
      all.bits += next.bits;
      all.advance += next.advance;
      all.ends = next.ends;
    }
    code.steps[i] = all;
  }
}

// Fills `code` from its definition: the number of codes of each length, and their symbols. Returns
// whether libjpeg accepts it.
bool fill(HuffmanCode& code, bool isDc, Bytes definition) {
  // Most files have the same codes.
  if (code.definition == definition) return true;
  for (auto symbol: definition.slice(CODE_BITS_MAX, definition.size())) {
    if (isDc && symbol > DC_BITS_MAX) return false;
  }
  code.definition = nullptr;
  uint next = 0, place = 0;
  for (uint length = 1; length <= CODE_BITS_MAX; ++length) {
    code.first[length] = next;
    code.count[length] = definition[length - 1];
    code.place[length] = place;
    next += code.count[length];
    place += code.count[length];
    if (next >= 1u << length) return false;  // a code of ones alone is not allowed
    next <<= 1;
  }
  code.definition = kj::heapArray(definition);
  fillSteps(code, isDc);
  return true;
}

uint bigEndian16(const byte* bytes) {
  return bytes[0] << 8 | bytes[1];
}

uint64_t bigEndian64(const byte* bytes) {
  uint64_t number;
  memcpy(&number, bytes, sizeof(number));
  return __builtin_bswap64(number);
}

}  // namespace

struct JpegChecker::Tables {
  HuffmanCode dc[TABLES_MAX], ac[TABLES_MAX];
  kj::Array<byte> bits;  // of the file's codes between two markers
};

namespace {

class Check {
public:
  Check(Bytes file, HuffmanCode* dc, HuffmanCode* ac, kj::Array<byte>& bits)
      : file(file), dc(dc), ac(ac), bits(bits) {
    for (uint i = 0; i < TABLES_MAX; ++i) dc[i].isKnown = ac[i].isKnown = false;
    if (bits.size() < file.size() + READ_AHEAD_BYTES) {
      bits = kj::heapArray<byte>(file.size() + READ_AHEAD_BYTES);
    }
  }

  bool run() { return readHeader() && followScan(); }

private:
  // This many bytes can be read beyond the last bit.
  static constexpr size_t READ_AHEAD_BYTES = 16;

  struct Component {
    byte id;
    uint across, down;  // blocks in one MCU, the smallest unit of a scan
    uint quantization;
    const HuffmanCode* dc;
    const HuffmanCode* ac;
  };

  // Reads everything up to the codes of the scan.
  bool readHeader() {
    at = 2;  // the start of the image
    for (;;) {
      if (at + 4 > file.size() || file[at] != 0xff) return false;
      auto marker = file[at + 1];
      size_t length = bigEndian16(&file[at + 2]);
      if (length < 2 || length > file.size() - at - 2) return false;
      auto content = file.slice(at + 4, at + 2 + length);
      at += 2 + length;
      if (marker == SCAN) return readScan(content);
      if (!readSegment(marker, content)) return false;
    }
  }

  bool readSegment(byte marker, Bytes content) {
    switch (marker) {
      case BASELINE_FRAME:
      case EXTENDED_FRAME:
        return readFrame(content);
      case HUFFMAN_TABLES:
        return readCodes(content);
      case QUANTIZATION_TABLES:
        return readQuantization(content);
      case RESTART_INTERVAL:
        if (content.size() != 2) return false;
        restartInterval = bigEndian16(content.begin());
        return true;
      default:
        return marker == COMMENT || (marker >= FIRST_APPLICATION && marker <= LAST_APPLICATION);
    }
  }

  bool readQuantization(Bytes content) {
    while (content.size() > 0) {
      uint index = content[0] & 15, bytes = (content[0] >> 4) + 1;
      size_t size = 1 + COEFFICIENTS * bytes;
      if (index >= TABLES_MAX || bytes > 2 || size > content.size()) return false;
      hasQuantization[index] = true;
      content = content.slice(size, content.size());
    }
    return true;
  }

  bool readCodes(Bytes content) {
    constexpr size_t HEAD_BYTES = 1 + CODE_BITS_MAX;
    while (content.size() > 0) {
      if (content.size() < HEAD_BYTES) return false;
      uint kind = content[0] >> 4, index = content[0] & 15;
      size_t size = HEAD_BYTES;
      for (auto count: content.slice(1, HEAD_BYTES)) size += count;
      if (kind > 1 || index >= TABLES_MAX || size > content.size() ||
          size > HEAD_BYTES + SYMBOLS_MAX) {
        return false;
      }
      auto& code = kind == 0 ? dc[index] : ac[index];
      if (!fill(code, kind == 0, content.slice(1, size))) return false;
      code.isKnown = true;
      content = content.slice(size, content.size());
    }
    return true;
  }

  bool readFrame(Bytes content) {
    if (components.size() > 0 || content.size() < 6 || content[0] != 8) return false;
    height = bigEndian16(&content[1]);
    width = bigEndian16(&content[3]);
    uint count = content[5];
    if ((count != 1 && count != COMPONENTS_MAX) || content.size() != 6 + 3 * count) return false;
    if (height == 0 || width == 0) return false;
    for (uint i = 0; i < count; ++i) {
      auto each = &content[6 + 3 * i];
      all[i] = {each[0], uint(each[1] >> 4), uint(each[1] & 15), each[2], nullptr, nullptr};
      if (each[2] >= TABLES_MAX) return false;
    }
    components = kj::arrayPtr(all, count);
    // The blocks of a single component follow each other one by one.
    if (count == 1) all[0].across = all[0].down = 1;
    auto isOne = [](const Component& each) { return each.across == 1 && each.down == 1; };
    auto isOneOrTwo = [](uint number) { return number == 1 || number == 2; };
    return isOneOrTwo(all[0].across) && isOneOrTwo(all[0].down) &&
           (count == 1 || (isOne(all[1]) && isOne(all[2])));
  }

  bool readScan(Bytes content) {
    auto count = components.size();
    if (count == 0 || content.size() != 4 + 2 * count || content[0] != count) return false;
    for (auto i: kj::indices(components)) {
      auto& component = components[i];
      uint dcIndex = content[2 + 2 * i] >> 4, acIndex = content[2 + 2 * i] & 15;
      if (content[1 + 2 * i] != component.id || !hasQuantization[component.quantization] ||
          dcIndex >= TABLES_MAX || acIndex >= TABLES_MAX || !dc[dcIndex].isKnown ||
          !ac[acIndex].isKnown) {
        return false;
      }
      component.dc = &dc[dcIndex];
      component.ac = &ac[acIndex];
    }
    // All coefficients at once, with all of their bits.
    auto end = &content[1 + 2 * count];
    return end[0] == 0 && end[1] == COEFFICIENTS - 1 && end[2] == 0;
  }

  bool followScan() {
    uint across = 8 * components[0].across, down = 8 * components[0].down;
    uint64_t mcus = uint64_t((width + across - 1) / across) * uint64_t((height + down - 1) / down);
    if (mcus * components[0].across * components[0].down > BLOCKS_MAX) return false;
    for (byte restart = 0;; restart = (restart + 1) % 8) {
      uint64_t here = restartInterval == 0 ? mcus : kj::min(mcus, restartInterval);
      size_t bytes;
      if (!takeBits(bytes) || !followMcus(here, 8 * bytes)) return false;
      mcus -= here;
      auto marker = file[at + 1];
      if (mcus == 0) return marker == END_OF_IMAGE;
      if (marker != FIRST_RESTART + restart) return false;
      at += 2;
    }
  }

  // Copies the codes up to the next marker to `bits`. In the file, a zero follows each byte 0xff of
  // them.
  bool takeBits(size_t& bytes) {
    auto to = bits.begin();
    for (;;) {
      auto from = file.begin() + at;
      auto found = static_cast<const byte*>(memchr(from, 0xff, file.end() - from));
      if (found == nullptr || found + 1 == file.end()) return false;
      memcpy(to, from, found - from);
      to += found - from;
      at = found - file.begin();
      if (found[1] != 0) break;
      *to++ = 0xff;
      at += 2;
    }
    memset(to, 0, READ_AHEAD_BYTES);
    bytes = to - bits.begin();
    return true;
  }

  // Whether the codes of the given number of MCUs take `end` bits, rounded up to bytes.
  bool followMcus(uint64_t mcus, size_t end) const {
    size_t bit = 0;
    for (uint64_t i = 0; i < mcus; ++i) {
      for (auto& component: components) {
        for (uint block = 0; block < component.across * component.down; ++block) {
          bit = afterBlock(component, bit, end);
          if (bit > end) return false;
        }
      }
    }
    return end - bit < 8;
  }

  // Returns the place after the codes of the block that begins at `bit`. It is beyond `end` if they
  // are not valid.
  size_t afterBlock(const Component& component, size_t bit, size_t end) const {
    // The longest code and the longest number.
    constexpr uint STEP_BITS_MAX = CODE_BITS_MAX + 15;
    const size_t invalid = end + 1;
    uint64_t window = 0;
    uint known = 0;  // bits in `window`
    auto refill = [&]() {
      window = bigEndian64(bits.begin() + bit / 8) << (bit % 8);
      known = 64 - 7;
    };
    auto take = [&](Step step) {
      bit += step.bits;
      window <<= step.bits;
      known -= step.bits;
    };
    refill();
    auto step = component.dc->steps[window >> (64 - LOOKUP_BITS)];
    if (step.bits == 0) step = stepAt(*component.dc, true, window);
    if (step.bits == 0) return invalid;
    take(step);
    for (uint coefficient = 1; coefficient < COEFFICIENTS;) {
      if (known < STEP_BITS_MAX) {
        if (bit > end) return invalid;
        refill();
      }
      step = component.ac->steps[window >> (64 - LOOKUP_BITS)];
      if (step.bits == 0 || coefficient + step.advance >= COEFFICIENTS) [[unlikely]] {
        // This code does not fit into the window, or the codes after the last coefficient belong to
        // the next block.
        step = stepAt(*component.ac, false, window);
        if (step.bits == 0 || coefficient + step.advance > COEFFICIENTS) return invalid;
      }
      take(step);
      if (step.ends) break;
      coefficient += step.advance;
    }
    return bit;
  }

  Bytes file;
  HuffmanCode* dc;
  HuffmanCode* ac;
  kj::Array<byte>& bits;
  size_t at = 0;  // in `file`
  uint height = 0, width = 0;
  uint64_t restartInterval = 0;  // in MCUs; 0: none
  bool hasQuantization[TABLES_MAX] = {};
  Component all[COMPONENTS_MAX];
  kj::ArrayPtr<Component> components;
};

}  // namespace

JpegChecker::JpegChecker(): tables(kj::heap<Tables>()) {}
JpegChecker::~JpegChecker() noexcept(false) {}

bool JpegChecker::isSurelyWhole(kj::ArrayPtr<const kj::byte> file) {
  return Check(file, tables->dc, tables->ac, tables->bits).run();
}

}  // namespace io
