// io/images/kept_image.h: converts images to the form in which records store them.
#pragma once

#include <kj/array.h>
#include <kj/exception.h>
#include <kj/mutex.h>
#include <kj/string.h>
#include <kj/thread.h>
#include <kj/vector.h>

#include <deque>

#include "io/data_config.h"
#include "io/images/jpeg.h"
#include "io/images/jpeg_check.h"

namespace io {

// An image as its record will store it.
struct KeptImage {
  Encoding encoding;
  ImageShape shape;
  kj::ArrayPtr<const kj::byte> bytes;  // points to memory of the caller, or to `own`
  kj::Array<kj::byte> own;
};

// Returns `image`, resized and encoded by `config`.
KeptImage keep(const DataConfig& config, ImageView image);

// Converts image files on one thread.
struct ImageTools {
  JpegDecoder decoder;
  JpegChecker checker;
};

// Returns the image of a JPEG or PNG file. A JPEG file stays unchanged if `config` allows this and
// Exif does not say that the camera was turned. Throws if the file cannot be used or decoded; the
// text begins with a verb.
KeptImage keepFile(const DataConfig& config, kj::ArrayPtr<const kj::byte> file, ImageTools& tools);

// An image file of an import, and the result.
struct ImageFile {
  kj::String path;
  uint32_t label;
  kj::Array<kj::byte> bytes;
  kj::Maybe<kj::Exception> problem;  // why the file cannot be used; begins with a verb
  kj::Maybe<KeptImage> kept;         // may point to `bytes`
};

// Calls keepFile() on all cores, while the caller reads the next files and writes the last results.
// If the caller adds no file while isFull(), the files take at most BYTES_MAX bytes plus one file.
// The results take at most BYTES_MAX bytes plus one result per core. One thread calls all methods.
class ImageKeeper {
public:
  // `config` must outlive it.
  explicit ImageKeeper(const DataConfig& config);
  ~ImageKeeper() noexcept(false);

  // Sets `kept` or `problem` of the file in the background, unless it has a problem.
  void add(ImageFile file);
  // Whether the files that were not taken yet keep every core busy, so that no other should be
  // added.
  bool isFull() const { return count >= filesMax || bytes >= BYTES_MAX; }
  // Waits for the file that was added first, and returns it. Null if all were taken.
  kj::Maybe<ImageFile> take();

private:
  // The limit for files, and for results. The pixels of an image may take a thousand times as much
  // memory as its file.
  static constexpr size_t BYTES_MAX = size_t(1) << 25;

  struct Job {
    ImageFile file;
    bool isDone = false;
  };
  struct Jobs {
    std::deque<Job> all;   // in their order; the address of each stays
    size_t begun = 0;      // how many of them, from the first, were given to threads
    size_t keptBytes = 0;  // of their results, beside their files
    bool isOver = false;
  };

  void work();

  const DataConfig& config;
  size_t count = 0, bytes = 0;  // of the files that were not taken
  size_t filesMax;
  kj::MutexGuarded<Jobs> jobs;
  kj::Vector<kj::Own<kj::Thread>> threads;
};

}  // namespace io
