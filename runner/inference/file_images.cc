#include "runner/inference/file_images.h"

#include <fcntl.h>
#include <kj/io.h>
#include <kj/mutex.h>
#include <kj/thread.h>
#include <kj/vector.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "configs/language/failure.h"
#include "configs/language/warning.h"
#include "io/images/crop_reader.h"
#include "io/images/fitted_image.h"
#include "io/left_out.h"
#include "io/paths.h"
#include "nn/loops/floats.h"
#include "runner/system/reason.h"

namespace runner {

namespace {

// A photograph takes a few megabytes.
constexpr size_t FILE_BYTES_MAX = size_t(1) << 28;

// Returns the bytes that come from standard input or from a pipe.
kj::Array<kj::byte> bytesFrom(kj::FdInputStream input, kj::StringPtr name) {
  // readAllBytes() does not say that the input is too long.
  kj::Vector<kj::byte> bytes;
  kj::byte buffer[1 << 16];
  while (size_t n = input.tryRead(buffer, 1, sizeof(buffer))) {
    if (n > FILE_BYTES_MAX - bytes.size()) {
      configs::fail(
          name, " has more than ", FILE_BYTES_MAX >> 20, " MiB, which is too much for one image");
    }
    bytes.addAll(buffer, buffer + n);
  }
  return bytes.releaseAsArray();
}

kj::Array<kj::byte> bytesOf(kj::StringPtr path) {
  if (path == "-") return bytesFrom(kj::FdInputStream(STDIN_FILENO), "standard input");
  if (io::pathKind(path) == io::PathKind::FILE) return io::readFile(path, FILE_BYTES_MAX);
  int fd;
  KJ_SYSCALL(fd = ::open(path.cStr(), O_RDONLY | O_CLOEXEC), path);
  return bytesFrom(kj::FdInputStream(kj::AutoCloseFd(fd)), path);
}

// Warns of what is left out without being an error.
void warnOf(kj::ArrayPtr<const kj::String> names, kj::StringPtr folder, kj::StringPtr one,
    kj::StringPtr several) {
  if (names.size() == 0) return;
  io::LeftOut out;
  for (auto& each: names) out.add(each);
  configs::warn(kj::str(
      "left out ", io::counted(out.count(), one, several), " of ", folder, ": ", out.names()));
}

}  // namespace

kj::Array<ImageFileName> imageFilesAt(
    kj::StringPtr path, kj::FunctionParam<void(kj::StringPtr)> leftOut) {
  kj::Vector<ImageFileName> files;
  if (path == "-") {
    files.add(ImageFileName{kj::str(path)});
    return files.releaseAsArray();
  }
  switch (io::pathKind(path)) {
    case io::PathKind::FILE:
      files.add(ImageFileName{kj::str(path)});
      break;
    case io::PathKind::FOLDER: {
      auto inside = io::withoutSlash(path);
      auto below = io::allBelow(path);
      for (auto& file: below.files) files.add(ImageFileName{kj::str(inside, "/", file)});
      for (auto& each: below.notRegular) leftOut(kj::str(inside, "/", each));
      for (auto& each: below.unreadable) leftOut(kj::str(inside, "/", each));
      warnOf(below.hidden, inside, "hidden file or folder", "hidden files or folders");
      warnOf(below.empty, inside, "empty folder", "empty folders");
      if (files.empty()) configs::fail("the folder ", path, " holds no files");
      break;
    }
    case io::PathKind::NOTHING:
      KJ_IF_MAYBE(why, io::whyUnreadable(path)) {
        configs::fail("cannot read the image ", path, ": ", *why);
      }
      KJ_IF_MAYBE(what, io::whyNeither(path)) {
        // A pipe holds one image, like standard input.
        if (*what == "a pipe") {
          files.add(ImageFileName{kj::str(path)});
          break;
        }
        configs::fail(path, " is ", *what,
            ". Name an image file, a folder of image files, or - for ", "standard input");
      }
      configs::fail("cannot find the image ", path,
          ". Name an image file, a folder of image files, or - for standard input");
  }
  return files.releaseAsArray();
}

// The state of one image of a batch.
struct FileImages::Row {
  kj::Array<kj::byte> file;
  kj::Maybe<io::KeptImage> kept;  // may point to `file`
  kj::Maybe<kj::String> problem;
};

// Files of the list, as one view shows them.
struct FileImages::Batch {
  kj::ArrayPtr<const ImageFileName> files;
  kj::Array<Row> rows;
  kj::Array<float> pixels;  // N×C×H×W; 0 in rows without an image
};

// The decoder of one thread.
class FileImages::Decoder {
public:
  Decoder(const TrainedModel& model, const io::Augmenter& augmenter)
      : augmenter(augmenter),
        fitter(model.experiment().data, model.imageShape, augmenter),
        crops(augmenter) {}

  void read(kj::StringPtr path, Row& row) {
    row.problem = nullptr;
    auto attempt = [&]() { row.file = bytesOf(path); };
    KJ_IF_MAYBE(e, kj::runCatchingExceptions(attempt)) {
      row.problem = reasonOf(*e);
      return;
    }
    KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { row.kept = fitter.fit(row.file); })) {
      row.problem = kj::str(path == "-" ? "standard input"_kj : path, " ", reasonOf(*e));
      row.kept = nullptr;
    }
    KJ_IF_MAYBE(kept, row.kept) {
      if (kept->own.size() == 0) return;
    }
    // The files of a batch need not fit into memory together.
    row.file = nullptr;
  }

  void show(Row& row, const io::View& view, kj::StringPtr path, kj::ArrayPtr<float> to) {
    if (row.problem == nullptr) {
      auto& kept = KJ_ASSERT_NONNULL(row.kept);
      io::Record record{0, 0, kept.encoding, kept.shape, kept.bytes};
      auto apply = [&]() { crops.apply(record, augmenter.view(view, kept.shape), to); };
      KJ_IF_MAYBE(e, kj::runCatchingExceptions(apply)) {
        row.problem = kj::str(path, " ", reasonOf(*e));
      }
    }
    if (row.problem == nullptr) return;
    for (auto& x: to) x = 0;
  }

private:
  const io::Augmenter& augmenter;
  io::ImageFitter fitter;
  io::CropReader crops;
};

FileImages::FileImages(TrainedModel& model, uint batchSize)
    : model(model), augmenter(model.augmenter()), views(model.experiment().data.views(true)) {
  auto& experiment = KJ_ASSERT_NONNULL(model.loaded.experiment);
  uint threads = kj::max(1u, std::thread::hardware_concurrency());
  experiment.cluster.threadsPerWorker = threads;
  // Devices share the rows of a batch equally.
  uint devices = experiment.cluster.devices.size();
  batchSize = (batchSize + devices - 1) / devices * devices;
  experiment.data.batchSize = batchSize;
  program = model.newProgram();
  for (auto& batch: batches) {
    batch = kj::heap<Batch>();
    batch->rows = kj::heapArray<Row>(batchSize);
    batch->pixels = nn::zeros(batchSize * model.graph.inputShape().size());
  }
  means = nn::zeros(batchSize * size_t(model.graph.classes));
  // A program may skip rows without a label.
  labels = kj::heapArray<int32_t>(batchSize);
  for (auto& label: labels) label = 0;
  for (uint i = 0; i < threads; i++) decoders.add(kj::heap<Decoder>(model, augmenter));
}

FileImages::~FileImages() noexcept(false) {}

void FileImages::run(
    kj::ArrayPtr<const ImageFileName> files, kj::FunctionParam<void(const FileAnswer&)> take) {
  size_t batchSize = labels.size();
  auto batchAt = [&](size_t first) {
    return files.slice(first, kj::min(first + batchSize, files.size()));
  };
  Batch *present = batches[0], *next = batches[1];
  read(*present, batchAt(0));
  for (size_t first = 0; first < files.size(); first += batchSize) {
    kj::Own<kj::Thread> ahead;
    bool isLast = first + batchSize >= files.size();
    // Computing the other views of the present batch needs the decoders.
    bool readsAhead = !isLast && views.size() == 1;
    if (readsAhead) {
      ahead = kj::heap<kj::Thread>([&]() { read(*next, batchAt(first + batchSize)); });
    }
    compute(*present);
    size_t classes = model.graph.classes;
    for (auto row: kj::indices(present->files)) {
      FileAnswer answer{first + row, kj::mv(present->rows[row].problem)};
      if (answer.problem == nullptr) {
        answer.logits = means.slice(row * classes, (row + 1) * classes);
      }
      take(answer);
    }
    ahead = nullptr;
    if (!isLast && !readsAhead) read(*next, batchAt(first + batchSize));
    std::swap(present, next);
  }
}

void FileImages::read(Batch& batch, kj::ArrayPtr<const ImageFileName> files) {
  batch.files = files;
  onAllThreads(files.size(),
      [&](Decoder& decoder, size_t row) { decoder.read(files[row].path, batch.rows[row]); });
  show(batch, views[0]);
  size_t size = batch.pixels.size() / batch.rows.size();
  for (auto& x: batch.pixels.slice(files.size() * size, batch.pixels.size())) x = 0;
}

void FileImages::show(Batch& batch, const io::View& view) {
  size_t size = batch.pixels.size() / batch.rows.size();
  onAllThreads(batch.files.size(), [&](Decoder& decoder, size_t row) {
    decoder.show(batch.rows[row], view, batch.files[row].path,
        batch.pixels.slice(row * size, (row + 1) * size));
  });
}

void FileImages::compute(Batch& batch) {
  for (auto& x: means) x = 0;
  for (auto i: kj::indices(views)) {
    if (i > 0) show(batch, views[i]);
    program->setBatch(batch.pixels, labels, nullptr);
    for (uint s = 0; s < model.graph.segments.size(); s++) {
      program->forward(nn::Phase::VALIDATE, s);
    }
    auto logits = program->logits();
    for (auto k: kj::indices(means)) means[k] += views[i].weight * logits[k];
  }
}

void FileImages::onAllThreads(
    size_t count, kj::FunctionParam<void(Decoder& decoder, size_t row)> work) {
  std::atomic<size_t> next{0};
  auto workOn = [&](Decoder& decoder) {
    for (size_t row = next++; row < count; row = next++) work(decoder, row);
  };
  kj::Vector<kj::Own<kj::Thread>> threads;
  for (size_t i = 1; i < kj::min(decoders.size(), count); i++) {
    threads.add(kj::heap<kj::Thread>([&, i]() { workOn(*decoders[i]); }));
  }
  workOn(*decoders[0]);
}

}  // namespace runner
