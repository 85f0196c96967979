// `bench reader`: measures how fast records become batches, apart from training.
#include <kj/debug.h>
#include <kj/filesystem.h>
#include <kj/function.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>

#include "configs/language/failure.h"
#include "io/batches/batcher.h"
#include "io/images/crop_reader.h"
#include "io/images/pixels.h"
#include "runner/logs/verb_times.h"
#include "runner/text/numbers.h"
#include "tools/bench/benches.h"
#include "tools/bench/command.h"
#include "tools/bench/figures.h"
#include "tools/bench/process.h"

namespace tools {
namespace {

using runner::fixedPoint;

constexpr kj::StringPtr PEER_SCRIPT = "tests/peers/read_images.py"_kj;
// The limit for loading its libraries, and for one answer.
constexpr uint PEER_S = 60;

// Images per second of one measurement.
struct Rates {
  double perS;
  double perCpuS;  // per second of processor time
};

// One way to read the training records.
struct Row {
  kj::String key;   // in JSON
  kj::String name;  // in the table
  kj::Function<Rates()> measure;
  kj::Vector<double> perS{};  // by round
  kj::Vector<double> perCpuS{};
};

// Calls `work`, which handles some images and returns their number, again and again for this time.
Rates ratesOf(double seconds, kj::FunctionParam<uint()> work) {
  double cpuBefore_s = processSeconds();
  runner::Stopwatch watch;
  uint64_t images = 0;
  while (watch.elapsed_s() < seconds) images += work();
  double passed_s = watch.elapsed_s();
  return {images / passed_s, images / (processSeconds() - cpuBefore_s)};
}

// Goes over the training records on this thread, one record per call.
class Records {
public:
  // `augmenter` must outlive this object.
  Records(const io::RecordDb& db, const io::Augmenter& augmenter, uint64_t seed)
      : db(db),
        augmenter(augmenter),
        crops(augmenter),
        reader(io::RecordReader::open(db)),
        seed(seed),
        pixels(kj::heapArray<float>(augmenter.shape.size())) {}

  uint read() {
    sink = sink + next().bytes.back();
    return 1;
  }
  uint decode() {
    sink = sink + io::pixelsOf(next(), decoder).bytes.back();
    return 1;
  }
  // Decodes the rows and columns of the crop, and does nothing with them.
  uint decodeCrop() {
    auto record = next();
    auto drawn = draw(record);
    io::Region region{uint(drawn.top), uint(drawn.left), drawn.height, drawn.width};
    decoder.decodeRegion(record.bytes, record.shape, 1, region,
        [&](kj::ArrayPtr<const kj::byte> row) { sink = sink + row.back(); });
    return 1;
  }
  uint augment() {
    auto record = next();
    crops.apply(record, draw(record), pixels);
    sink = sink + pixels.back();
    return 1;
  }

private:
  io::Record next() {
    if (++number == db.count()) {
      number = 0;
      ++pass;
    }
    return reader->read(number);
  }
  io::Augmentation draw(const io::Record& record) {
    return augmenter.draw(seed, pass, number, record.shape);
  }

  const io::RecordDb& db;
  const io::Augmenter& augmenter;
  io::CropReader crops;
  kj::Own<io::RecordReader> reader;
  io::JpegDecoder decoder;
  uint64_t seed;
  uint64_t number = 0, pass = 0;
  kj::Array<float> pixels;
  volatile double sink = 0;  // so that the compiler leaves nothing out
};

// Measures the batches of a worker without others. Its threads stop when the ring of batches is
// full, so they do not disturb other measurements.
class BatchRates {
public:
  BatchRates(const io::Dataset& dataset, const io::DataConfig& config, uint64_t seed)
      : batchesAhead(config.readerThreads + 2),
        batcher(io::Batcher::training(dataset, config, seed, 1, 0, 0)) {}

  Rates measure(double seconds) {
    for (uint i = 0; i < batchesAhead; ++i) next();
    return ratesOf(seconds, [this]() { return next(); });
  }

private:
  uint next() { return KJ_ASSERT_NONNULL(batcher->next()).images; }

  const uint batchesAhead;
  kj::Own<io::Batcher> batcher;
};

// Throws unless crops of the first JPEG files equal crops of the whole decoded images, apart from
// the effect of shrinking during decoding.
void check(const io::RecordDb& db, const io::Augmenter& augmenter, uint64_t seed) {
  constexpr uint64_t IMAGES = 8;
  constexpr double GREY_LEVELS = 2;  // mean difference
  auto reader = io::RecordReader::open(db);
  io::JpegDecoder decoder;
  io::CropReader crops(augmenter);
  auto ofFile = kj::heapArray<float>(augmenter.shape.size());
  auto ofPixels = kj::heapArray<float>(augmenter.shape.size());
  double largestFactor = 0;
  for (auto factor: augmenter.factors) largestFactor = std::max(largestFactor, double(factor));
  for (uint64_t i = 0; i < kj::min(db.count(), IMAGES); ++i) {
    auto record = reader->read(i);
    auto planes = io::toPlanes(io::pixelsOf(record, decoder));
    io::Record raw{record.label, record.id, io::Encoding::RAW, record.shape, planes};
    auto drawn = augmenter.draw(seed, 0, i, record.shape);
    crops.apply(record, drawn, ofFile);
    crops.apply(raw, drawn, ofPixels);
    double sum = 0;
    for (auto k: kj::indices(ofFile)) sum += fabs(double(ofFile[k]) - double(ofPixels[k]));
    if (sum / ofFile.size() > GREY_LEVELS * largestFactor) {
      configs::fail("the crop of record ", i, " of ", db.path(), " is not that of its image");
    }
  }
}

// Writes the data with which other programs check our crops (tests/peers/compare_crops.py) into a
// new folder: the JPEG files of the first records, the images that we make of them (N.f32: float32,
// channels first; N.plain.f32: without changed colours and hidden squares), and crops.jsonl with
// one line per image.
void dump(
    const io::RecordDb& db, const io::Augmenter& augmenter, uint64_t seed, kj::StringPtr path) {
  constexpr uint64_t IMAGES = 200;
  auto files = kj::newDiskFilesystem();
  auto place = files->getCurrentPath().evalNative(path);
  auto folder =
      files->getRoot().openSubdir(place, kj::WriteMode::CREATE | kj::WriteMode::CREATE_PARENT);
  auto reader = io::RecordReader::open(db);
  io::CropReader crops(augmenter);
  auto image = kj::heapArray<float>(augmenter.shape.size());
  kj::Vector<kj::String> lines;
  for (uint64_t i = 0; i < kj::min(db.count(), IMAGES); ++i) {
    auto record = reader->read(i);
    auto drawn = augmenter.draw(seed, 0, i, record.shape);
    auto write = [&](kj::StringPtr ending, kj::ArrayPtr<const kj::byte> bytes) {
      folder->openFile(kj::Path(kj::str(i, ending)), kj::WriteMode::CREATE)->writeAll(bytes);
    };
    write(".jpg", record.bytes);
    crops.apply(record, drawn, image);
    write(".f32", image.asBytes());
    auto plain = drawn;
    plain.colours = {};
    plain.hidden = {};
    crops.apply(record, plain, image);
    write(".plain.f32", image.asBytes());
    Json json;
    json.add("record", i);
    json.add("size", augmenter.shape.height);
    json.add("top", drawn.top);
    json.add("left", drawn.left);
    json.add("height", drawn.height);
    json.add("width", drawn.width);
    json.add("mirror", drawn.mirror ? "true" : "false");
    auto& colours = drawn.colours;
    json.add("brightness", colours.brightness);
    json.add("contrast", colours.contrast);
    json.add("saturation", colours.saturation);
    json.add("light", kj::str('[', kj::strArray(colours.light, ","), ']'));
    auto& hidden = drawn.hidden;
    json.add("hidden", kj::str('[', hidden.top, ',', hidden.left, ',', hidden.side, ']'));
    json.add("means", kj::str('[', kj::strArray(augmenter.means, ","), ']'));
    json.add("factors", kj::str('[', kj::strArray(augmenter.factors, ","), ']'));
    lines.add(json.object());
  }
  folder->openFile(kj::Path("crops.jsonl"), kj::WriteMode::CREATE)
      ->writeAll(kj::str(kj::strArray(lines, "\n"), "\n"));
}

// A folder with the JPEG files of all records, for other programs. The destructor removes it.
class FilesOf {
public:
  explicit FilesOf(const io::RecordDb& db): files(kj::newDiskFilesystem()) {
    KJ_REQUIRE(::mkdtemp(name) != nullptr, "no folder in /tmp");
    KJ_ON_SCOPE_FAILURE(remove());
    auto folder = files->getRoot().openSubdir(place(), kj::WriteMode::MODIFY);
    auto reader = io::RecordReader::open(db);
    for (uint64_t i = 0; i < db.count(); ++i) {
      auto file = kj::Path(kj::str(i, ".jpg"));
      folder->openFile(file, kj::WriteMode::CREATE)->writeAll(reader->read(i).bytes);
    }
  }
  ~FilesOf() noexcept(false) { remove(); }

  kj::StringPtr path() const { return name; }

private:
  kj::Path place() const { return kj::Path::parse(path().slice(1)); }
  void remove() { files->getRoot().remove(place()); }

  kj::Own<kj::Filesystem> files;
  char name[32] = "/tmp/bench-reader-XXXXXX";
};

// Another program that reads the same files.
class Peer {
public:
  Peer(kj::StringPtr python, kj::StringPtr name, const io::AugmentConfig& augment,
      kj::StringPtr files, double seconds)
      : name(kj::str(name)),
        program(kj::arr(kj::str(python), kj::str(PEER_SCRIPT), kj::str(name), kj::str(files),
            kj::str("--asked"), kj::str("--size=", augment.crop), kj::str("--seconds=", seconds),
            kj::str("--area"), kj::str(augment.areaMin), kj::str(augment.areaMax),
            kj::str("--aspect"), kj::str(augment.aspectMin), kj::str(augment.aspectMax))) {}

  Rates measure() {
    auto answer = program.ask(PEER_S);
    KJ_IF_MAYBE(perS, numberIn(answer.output, "images_per_s")) {
      KJ_IF_MAYBE(perCpuS, numberIn(answer.output, "cpu_images_per_s")) return {*perS, *perCpuS};
    }
    configs::fail("the peer ", name, " gives no figure: ", answer.reason());
  }

private:
  kj::String name;
  AskedProgram program;
};

kj::String textOf(kj::ArrayPtr<const Row> rows, double reference) {
  auto lines = KJ_MAP(row, rows) {
    auto& rates = row.perCpuS;
    double median = medianOf(rates);
    auto spread = kj::str(fixedPoint(*std::min_element(rates.begin(), rates.end()), 0), " – ",
        fixedPoint(*std::max_element(rates.begin(), rates.end()), 0));
    return cells(row.name, fixedPoint(medianOf(row.perS), 0), fixedPoint(median, 0), spread,
        fixedPoint(median / reference, 2));
  };
  auto header = cells("", "images/s", "per CPU second", "spread", "of batches");
  return inColumns({kj::mv(header), kj::mv(lines), nullptr}, 1);
}

kj::String jsonOf(kj::ArrayPtr<const Row> rows) {
  Json json;
  for (auto& row: rows) {
    json.add(kj::str(row.key, "_per_s"), fixedPoint(medianOf(row.perS), 1));
    json.add(kj::str(row.key, "_per_cpu_s"), fixedPoint(medianOf(row.perCpuS), 1));
  }
  return kj::str(json.object(), "\n");
}

class BenchReader: private ExperimentCommand {
public:
  explicit BenchReader(runner::CommandLine& commandLine): ExperimentCommand(commandLine, 1) {}

  kj::MainFunc getMain();

private:
  Validity run();

  double seconds = 1;
  uint threads = 2;
  uint rounds = 5;
  bool json = false;
  kj::Vector<kj::StringPtr> peers;
  kj::StringPtr python = "python3";
  kj::StringPtr folder;  // of --dump; empty: nothing is written
};

kj::MainFunc BenchReader::getMain() {
  kj::MainBuilder builder(commandLine, "bench",
      "Times how fast the training records of CONFIG become batches, without training. The rows "
      "take turns, in several rounds: records that are only read and checked; whole images "
      "decoded; the parts decoded that crops need; images augmented; and the batches that a worker "
      "gets from its reader threads. Other programs (--peer) read the same JPEG files, draw crops "
      "in the same way, and also resize, mirror and normalise them, on one thread. The figures are "
      "medians. Run it from the project's folder.\n"
      "\n"
      "  bench reader configs/cifar10_local.toml\n"
      "  bench reader configs/imagenet_resized_crop.toml --peer opencv --peer pillow");
  addArguments(builder, nullptr);
  return builder
      .addOptionWithArg({"rounds"}, numberSetter(rounds), "N", "number of rounds (default: 5)")
      .addOptionWithArg({"seconds"}, amountSetter(seconds, 30, "seconds"), "S",
          "time per row and round (default: 1)")
      .addOptionWithArg(
          {"threads"}, numberSetter(threads), "N", "reader threads of the last row (default: 2)")
      .addOptionWithArg(
          {"peer"},
          [this](kj::StringPtr word) {
            peers.add(word);
            return true;
          },
          "NAME",
          "also measures pillow (or pillow-simd), opencv, simplejpeg, torchvision, mxnet, dali, "
          "ffcv or spdl; may be repeated; needs data.augment.crop_area. NAME=PATH: with this "
          "Python")
      .addOptionWithArg({"python"}, wordSetter(python), "PATH",
          "the Python that has the other libraries (default: python3)")
      .addOptionWithArg({"dump"}, wordSetter(folder), "FOLDER",
          "writes the first crops and their JPEG files into a new folder, and measures nothing")
      .addOption({"json"}, flagSetter(json), "prints one line of JSON instead of a table")
      .callAfterParsing(KJ_BIND_METHOD(*this, run))
      .build();
}

Validity BenchReader::run() {
  auto loaded = load();
  auto& experiment = KJ_ASSERT_NONNULL(loaded.experiment);
  auto& config = experiment.data;
  bool resizes = config.augment.resizes();
  if (!resizes && (peers.size() > 0 || folder.size() > 0)) {
    return kj::str("--peer and --dump need data.augment.crop_area, such as [0.08, 1]");
  }
  auto dataset = io::openDataset(config, io::unheard());
  uint64_t seed = experiment.train.seed;
  auto augmenter = io::augmenterOf(*dataset, config);
  auto reader = io::RecordReader::open(dataset->training());
  bool isJpeg = reader->read(0).encoding == io::Encoding::JPEG;
  if (!isJpeg && (peers.size() > 0 || folder.size() > 0)) {
    return kj::str("--peer and --dump are for records that are JPEG files: set data.encoding");
  }
  if (folder.size() > 0) {
    dump(dataset->training(), augmenter, seed, folder);
    return true;
  }
  check(dataset->training(), augmenter, seed);
  Records records(dataset->training(), augmenter, seed);
  kj::Vector<Row> rows;
  auto addHere = [&](kj::StringPtr key, kj::StringPtr name, uint (Records::*work)()) {
    rows.add(Row{kj::str(key), kj::str(name), [this, &records, work]() {
                   return ratesOf(seconds, [&]() { return (records.*work)(); });
                 }});
  };
  addHere("records", "records read", &Records::read);
  if (isJpeg) addHere("decoded", "whole images decoded", &Records::decode);
  if (isJpeg && resizes) addHere("crops", "crops decoded", &Records::decodeCrop);
  addHere("augmented", "images augmented", &Records::augment);
  kj::Vector<kj::Own<BatchRates>> batches;
  uint counts[] = {1, threads};
  for (uint count: kj::arrayPtr(counts, threads > 1 ? 2 : 1)) {
    config.readerThreads = count;
    auto& rates = *batches.add(kj::heap<BatchRates>(*dataset, config, seed));
    rows.add(
        Row{kj::str("batches_", count), kj::str("batches of ", runner::counted(count, "thread")),
            [this, &rates]() { return rates.measure(seconds); }});
  }
  kj::Maybe<FilesOf> files;
  kj::Vector<kj::Own<Peer>> others;
  for (auto word: peers) {
    auto name = kj::str(word), itsPython = kj::str(python);
    KJ_IF_MAYBE(end, word.findFirst('=')) {
      name = kj::heapString(word.slice(0, *end));
      itsPython = kj::str(word.slice(*end + 1));
    }
    if (files == nullptr) files.emplace(dataset->training());
    auto& peer = *others.add(
        kj::heap<Peer>(itsPython, name, config.augment, KJ_ASSERT_NONNULL(files).path(), seconds));
    rows.add(Row{kj::str(name), kj::str(name), [&peer]() { return peer.measure(); }});
  }
  // A peer that has answered keeps the files in memory, so that an interrupt leaves nothing behind.
  for (auto& peer: others) peer->measure();
  files = nullptr;
  for (uint round = 0; round < rounds; ++round) {
    for (auto& row: rows) {
      auto rates = row.measure();
      row.perS.add(rates.perS);
      row.perCpuS.add(rates.perCpuS);
    }
  }
  double reference = 0;
  for (auto& row: rows) {
    if (row.key == "batches_1") reference = medianOf(row.perCpuS);
  }
  runner::print(json ? jsonOf(rows) : textOf(rows, reference));
  return true;
}

}  // namespace

kj::MainFunc benchReader(runner::CommandLine& commandLine) {
  return mainOf<BenchReader>(commandLine);
}

}  // namespace tools
