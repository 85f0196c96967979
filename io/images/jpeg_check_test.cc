#include "io/images/jpeg_check.h"

#include <doctest/doctest.h>
// jpeglib.h uses FILE and size_t, and does not include their headers.
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include "configs/language/random.h"
#include "io/images/jpeg.h"
#include "io/testing/scratch.h"

namespace io {

namespace {

struct Kind {
  const char* name;
  uint components = 3;
  uint across = 1, down = 1;  // of the first component
  uint restartRows = 0;
  bool isOptimized = false;
  bool isProgressive = false;
};

constexpr Kind COMMON[] = {
    {"4:4:4"},
    {"4:2:2", 3, 2, 1},
    {"4:4:0", 3, 1, 2},
    {"4:2:0", 3, 2, 2},
    {"grey", 1},
    {"grey, which says 2 by 2", 1, 2, 2},
    {"with restart markers", 3, 2, 2, 1},
    {"with codes of its own", 3, 2, 2, 0, true},
};

// Returns a file of noise, which has codes of all lengths.
kj::Array<kj::byte> fileOf(const Kind& kind, uint width = 75, uint height = 50) {
  jpeg_error_mgr errors;
  jpeg_compress_struct info{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_width = width;
  info.image_height = height;
  info.input_components = kind.components;
  info.in_color_space = kind.components == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 98, TRUE);
  info.comp_info[0].h_samp_factor = kind.across;
  info.comp_info[0].v_samp_factor = kind.down;
  info.restart_in_rows = kind.restartRows;
  info.optimize_coding = kind.isOptimized;
  if (kind.isProgressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  auto row = kj::heapArray<kj::byte>(size_t(width) * kind.components);
  configs::Random random(1, configs::Purpose::ORDER);
  for (uint y = 0; y < height; ++y) {
    for (auto& level: row) level = random.below(y % 2 == 0 ? 256 : 16);
    JSAMPROW rows = row.begin();
    jpeg_write_scanlines(&info, &rows, 1);
  }
  jpeg_finish_compress(&info);
  auto file = kj::heapArray<kj::byte>(bytes, size);
  jpeg_destroy_compress(&info);
  ::free(bytes);
  return file;
}

bool isDecoded(kj::ArrayPtr<const kj::byte> file) {
  JpegDecoder decoder;
  return thrownBy([&]() { decoder.decode(file, decoder.shapeOf(file)); }).size() == 0;
}

}  // namespace

TEST_CASE("JpegChecker: accepts whole files of the common kinds, but no part of a file") {
  JpegChecker checker;
  for (auto& kind: COMMON) {
    INFO(kind.name);
    for (uint width: {1, 8, 9, 16, 17, 75}) {
      auto file = fileOf(kind, width);
      CHECK(checker.isSurelyWhole(file));
      CHECK(isDecoded(file));
    }
    auto file = fileOf(kind);
    for (size_t size = 2; size < file.size(); ++size) {
      REQUIRE(!checker.isSurelyWhole(file.slice(0, size)));
    }
  }
}

TEST_CASE("JpegChecker: is not sure about files of other kinds") {
  JpegChecker checker;
  for (auto& kind: {Kind{"progressive", 3, 1, 1, 0, false, true}, Kind{"4:1:1", 3, 4, 1}}) {
    auto file = fileOf(kind);
    CHECK(isDecoded(file));
    CHECK(!checker.isSurelyWhole(file));
  }
}

TEST_CASE("JpegChecker: a file with any changed byte that it accepts can be decoded") {
  JpegChecker checker;
  JpegDecoder decoder;
  uint accepted = 0, refused = 0;
  for (auto& kind: COMMON) {
    INFO(kind.name);
    auto file = fileOf(kind, 24, 20);
    for (auto i: kj::indices(file)) {
      for (kj::byte bit = 1; bit != 0; bit <<= 1) {
        file[i] ^= bit;
        KJ_DEFER(file[i] ^= bit);
        bool hasHeader = thrownBy([&]() { decoder.shapeOf(file); }).size() == 0;
        if (!hasHeader) continue;
        bool isWhole = checker.isSurelyWhole(file);
        ++(isWhole ? accepted : refused);
        INFO(i, " ", uint(bit));
        if (isWhole) REQUIRE(isDecoded(file));
      }
    }
  }
  // The checker cannot see that a coefficient has changed.
  CHECK(accepted > 1000);
  CHECK(refused > 1000);
}

TEST_CASE("JpegChecker: refuses a file with fewer or more codes than its size needs") {
  JpegChecker checker;
  auto file = fileOf({"4:4:4"}, 24, 24);
  // The height follows the marker of the frame, its length and its precision.
  size_t frame = 2;
  while (file[frame + 1] != 0xc0) frame += 2 + file[frame + 2] * 256 + file[frame + 3];
  auto& height = file[frame + 6];
  REQUIRE(height == 24);
  CHECK(checker.isSurelyWhole(file));
  height = 17;
  CHECK(checker.isSurelyWhole(file));
  for (int other: {8, 16, 25, 32}) {
    height = other;
    CHECK(!checker.isSurelyWhole(file));
  }
}

}  // namespace io
