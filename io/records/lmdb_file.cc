// The layout, from LMDB 0.9's mdb.c, for 64-bit little-endian machines. All pages have one size.
//
//   page                                     meta page: a page header, then
//    0  u64  its own number                   16  u32  magic
//    8  u16  unused                           20  u32  version
//   10  u16  flags: what kind of page         24  u64  address        unused here
//   12  u16  end of the offsets               32  u64  size of map    unused here
//   14  u16  begin of the nodes               40  u32  size of a page
//   16  u16  offset of node 0, of node 1, …   44  44 bytes: the list of free pages, unused here
//    …                                        88  u32  unused
//                                             92  u16  flags of the database
//   overflow page: bytes 12 – 15 are a u32,   94  u16  depth of its tree
//   how many pages the value takes; the       96  4 × u64  numbers of pages and entries, unused
//   value begins at 16                       128  u64  root
//                                            136  u64  last page of the file that is in use
//   node                                     144  u64  transaction
//    0  u16  \ leaf: size of the value
//    2  u16  / branch: page below, bits 0 – 31
//    4  u16  leaf: flags; branch: page below, bits 32 – 47
//    6  u16  size of the key
//    8  key, then the value, or the number of its first overflow page

#include "io/records/lmdb_file.h"

#include <kj/debug.h>

#include <cstring>

#include "configs/language/failure.h"
#include "io/records/mapped_file.h"

namespace io {

namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && sizeof(size_t) == 8);

constexpr size_t PAGE_HEADER_BYTES = 16;
constexpr size_t META_END = 152;
constexpr size_t NODE_HEADER_BYTES = 8;
constexpr size_t KEY_BYTES = 8;

constexpr size_t PAGE_BYTES_MIN = 512;
constexpr size_t PAGE_BYTES_MAX = 32768;
// This is LMDB's own limit.
constexpr uint DEPTH_MAX = 32;

constexpr uint32_t MAGIC = 0xBEEFC0DE;
constexpr uint32_t VERSION = 1;
constexpr uint16_t META_FLAG = 0x08;
constexpr uint16_t BRANCH = 0x01;
constexpr uint16_t LEAF = 0x02;
constexpr uint16_t OVERFLOW = 0x04;
// Flags of a page that stores its keys in another form, or belongs to another kind of database.
constexpr uint16_t OTHER_KINDS = 0x60;
constexpr uint16_t KINDS = BRANCH | LEAF | OVERFLOW | META_FLAG | OTHER_KINDS;
// Flag of a leaf's node: the value is in overflow pages.
constexpr uint16_t IN_OVERFLOW = 0x01;

// In line, because a search reads many numbers.
template <typename T>
[[gnu::always_inline]] inline T numberAt(kj::ArrayPtr<const kj::byte> bytes, size_t at) {
  T number;
  KJ_ASSERT(at + sizeof(T) <= bytes.size());
  memcpy(&number, bytes.begin() + at, sizeof(T));
  return number;
}

[[noreturn]] void damaged(uint64_t page) {
  configs::fail("page ", page, " of the file is damaged");
}

uint64_t pageBelow(kj::ArrayPtr<const kj::byte> bytes, size_t node) {
  return numberAt<uint32_t>(bytes, node) | uint64_t(numberAt<uint16_t>(bytes, node + 4)) << 32;
}

// The nodes of a branch or a leaf.
class Nodes {
public:
  Nodes(kj::ArrayPtr<const kj::byte> bytes, uint64_t page): bytes(bytes), page(page) {
    size_t end = numberAt<uint16_t>(bytes, 12);
    begin = numberAt<uint16_t>(bytes, 14);
    if (end <= PAGE_HEADER_BYTES || end % 2 != 0 || end > begin || begin > bytes.size()) {
      damaged(page);
    }
    count = (end - PAGE_HEADER_BYTES) / 2;
  }

  size_t size() const { return count; }

  // Returns where node `index` begins. Its header is within the page.
  size_t at(size_t index) const {
    size_t node = numberAt<uint16_t>(bytes, PAGE_HEADER_BYTES + 2 * index);
    if (node < begin || node + NODE_HEADER_BYTES > bytes.size()) damaged(page);
    return node;
  }

  uint64_t key(size_t index) const {
    auto node = at(index);
    bool fits = numberAt<uint16_t>(bytes, node + 6) == KEY_BYTES &&
                node + NODE_HEADER_BYTES + KEY_BYTES <= bytes.size();
    if (!fits) damaged(page);
    return __builtin_bswap64(numberAt<uint64_t>(bytes, node + NODE_HEADER_BYTES));
  }

  // Returns which node has `key`. Keys of records are consecutive, so that in most leaves its place
  // follows from the first key. A search would touch a cache line per step.
  kj::Maybe<size_t> find(uint64_t key) const {
    uint64_t ahead = key - this->key(0);
    if (ahead < count && this->key(ahead) == key) return ahead;
    size_t upTo = this->upTo(key, 0);
    if (upTo == 0 || this->key(upTo - 1) != key) return nullptr;
    return upTo - 1;
  }

  // Returns how many keys, counted from node `first` on, are not above `key`.
  size_t upTo(uint64_t key, size_t first) const {
    size_t low = first;
    for (size_t high = count; low < high;) {
      size_t middle = (low + high) / 2;
      if (this->key(middle) <= key) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low - first;
  }

private:
  kj::ArrayPtr<const kj::byte> bytes;
  uint64_t page;
  size_t begin;
  size_t count;
};

// Returns the page size that the first meta page names.
size_t pageBytesIn(kj::ArrayPtr<const kj::byte> meta) {
  size_t size = numberAt<uint32_t>(meta, 40);
  bool fits = size >= PAGE_BYTES_MIN && size <= PAGE_BYTES_MAX && (size & (size - 1)) == 0;
  if (!fits) damaged(0);
  return size;
}

}  // namespace

LmdbFile::LmdbFile(kj::StringPtr path, kj::StringPtr lost): file(mapFile(path, lost)) {
  auto meta = slice(0, META_END);
  if (numberAt<uint32_t>(meta, 16) != MAGIC) {
    configs::fail(
        "it is not an LMDB file. If it is a file of your own, name a database or a folder ",
        "of packed records instead. Otherwise it is damaged");
  }
  if (numberAt<uint32_t>(meta, 20) != VERSION) {
    configs::fail("it is an LMDB file of another version");
  }
  page_bytes = pageBytesIn(meta);
  // Commits write the two meta pages in turn.
  auto first = readMeta(0);
  auto second = readMeta(1);
  tree = second.transaction > first.transaction ? second : first;
}

LmdbFile::Tree LmdbFile::readMeta(uint number) const {
  auto meta = slice(number * page_bytes, META_END);
  Tree found = {numberAt<uint64_t>(meta, 128), numberAt<uint64_t>(meta, 136),
      numberAt<uint64_t>(meta, 144), numberAt<uint16_t>(meta, 94)};
  bool same = numberAt<uint64_t>(meta, 0) == number &&
              (numberAt<uint16_t>(meta, 10) & KINDS) == META_FLAG &&
              numberAt<uint32_t>(meta, 16) == MAGIC && numberAt<uint32_t>(meta, 20) == VERSION &&
              numberAt<uint32_t>(meta, 40) == page_bytes;
  if (!same || numberAt<uint16_t>(meta, 92) != 0 || found.depth > DEPTH_MAX) damaged(number);
  if (found.lastPage >= file.size() / page_bytes) configs::fail("the file is cut short");
  return found;
}

kj::ArrayPtr<const kj::byte> LmdbFile::slice(uint64_t offset, size_t size) const {
  if (offset > file.size() || size > file.size() - offset) configs::fail("the file is cut short");
  return file.slice(offset, offset + size);
}

kj::Maybe<kj::ArrayPtr<const kj::byte>> LmdbFile::find(uint64_t key) const {
  return placeOf(key).map([this](const Place& place) { return valueAt(place); });
}

kj::Maybe<LmdbFile::Place> LmdbFile::placeOf(uint64_t key) const {
  if (tree.depth == 0) return nullptr;
  uint64_t number = tree.root;
  for (uint level = 1; level < tree.depth; ++level) {
    auto page = pageOf(BRANCH, number);
    Nodes nodes(page, number);
    // The first key of a branch stands for all lower keys.
    number = pageBelow(page, nodes.at(nodes.upTo(key, 1)));
  }
  auto page = pageOf(LEAF, number);
  Nodes nodes(page, number);
  size_t node;
  KJ_IF_MAYBE(index, nodes.find(key)) {
    node = nodes.at(*index);
  } else {
    return nullptr;
  }
  size_t size = numberAt<uint32_t>(page, node);
  size_t value = node + NODE_HEADER_BYTES + KEY_BYTES;
  switch (numberAt<uint16_t>(page, node + 4)) {
    case 0:
      if (size > page.size() - value) damaged(number);
      return Place{true, page.slice(value, value + size)};
    case IN_OVERFLOW:
      if (sizeof(uint64_t) > page.size() - value) damaged(number);
      return Place{false, nullptr, numberAt<uint64_t>(page, value), size};
    default:
      damaged(number);
  }
}

kj::ArrayPtr<const kj::byte> LmdbFile::valueAt(const Place& place) const {
  if (place.isInLeaf) return place.inLeaf;
  return overflowOf(place.overflowPage, place.size);
}

void LmdbFile::prefetch(const Place& place) const {
  // The size of a small image. The processor fetches the rest of a large one by itself.
  constexpr size_t BYTES = 4096;
  constexpr size_t LINE_BYTES = 64;
  if (place.isInLeaf || place.overflowPage > tree.lastPage) return;
  size_t begin = place.overflowPage * page_bytes;
  size_t end = kj::min(file.size(), begin + kj::min(place.size + PAGE_HEADER_BYTES, BYTES));
  for (size_t at = begin; at < end; at += LINE_BYTES) __builtin_prefetch(file.begin() + at);
}

kj::ArrayPtr<const kj::byte> LmdbFile::pageOf(uint16_t kind, uint64_t number) const {
  if (number < 2 || number > tree.lastPage) {
    configs::fail("a page number in the file is wrong: ", number);
  }
  auto page = slice(number * page_bytes, page_bytes);
  bool fits =
      numberAt<uint64_t>(page, 0) == number && (numberAt<uint16_t>(page, 10) & KINDS) == kind;
  if (!fits) damaged(number);
  return page;
}

kj::ArrayPtr<const kj::byte> LmdbFile::overflowOf(uint64_t number, size_t size) const {
  auto first = pageOf(OVERFLOW, number);
  size_t pages = (PAGE_HEADER_BYTES + size + page_bytes - 1) / page_bytes;
  bool fits = numberAt<uint32_t>(first, 12) == pages && pages <= tree.lastPage - number + 1;
  if (!fits) damaged(number);
  return slice(number * page_bytes + PAGE_HEADER_BYTES, size);
}

}  // namespace io
