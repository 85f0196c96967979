// Disks that fill up, databases and images that are damaged: the run ends and names the file, or
// continues without the bad record if the experiment asks for that.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstring>

#include "io/images/jpeg.h"
#include "io/records/record_db.h"
#include "tests/faults/failure.h"
#include "tests/skip.h"
#include "tests/text.h"

namespace tests {
namespace {

// -------------------------------------------------------------------------------------------------
// Disks and data.

// Runs `file` with its runs on a file system of `size` that only this run sees. Once it trains,
// another process uses `filler` of that space.
Ended runOnDisk(kj::StringPtr size, kj::StringPtr file, kj::ArrayPtr<const kj::StringPtr> settings,
    kj::StringPtr filler = "0") {
  auto folder = newFolder();
  auto cache = cacheSetting();
  kj::StringPtr environment[] = {cache};
  constexpr kj::StringPtr SCRIPT =
      "set -o pipefail; folder=$1 filler=$2; mount -t tmpfs -o size=\"$3\" none \"$folder\" && "
      "\"${@:4}\" | { read line; echo \"$line\"; head -c \"$filler\" /dev/zero "
      ">\"$folder/filler\"; "
      "cat; }"_kj;
  kj::Vector<kj::StringPtr> words;
  words.addAll(kj::ArrayPtr<const kj::StringPtr>(
      {"unshare"_kj, "--user"_kj, "--map-root-user"_kj, "--mount"_kj, "bash"_kj, "-c"_kj, SCRIPT,
          "bash"_kj, folder, filler, size, RUNNER, "run"_kj, file, "--runs"_kj, folder}));
  for (auto setting: settings)
    words.addAll(kj::ArrayPtr<const kj::StringPtr>({"--set"_kj, setting}));
  Command command(words, {.environment = environment});
  return command.wait();
}

bool canMount() {
  auto folder = newFolder();
  Command command(
      {"unshare", "--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "none", folder});
  return command.wait().exitCode == 0;
}

TEST_CASE("a disk that fills up while training ends the run, which names the file") {
  if (!canMount()) SKIP_CASE("this machine lets no user mount a file system");
  auto ended = runOnDisk("8M", ENDLESS, {"log.every=1"}, "8M");
  checkFailed(ended, {"coordinator", "cannot write", "/endless/1/", "No space left on device",
                         "free some space", "--runs"});
}

TEST_CASE("a disk that has no room for the weights is refused before any role starts") {
  if (!canMount()) SKIP_CASE("this machine lets no user mount a file system");
  auto ended = runOnDisk("256k", "tests/faults/short.toml", nullptr);
  checkFailed(ended, {"coordinator", "not enough room on the disk of ",
                         "/short/1: ", " are free, but the weights need ",
                         "free some space, or choose another folder with --runs."});
  CHECK_FALSE(contains(ended.output, "Speed:"));
}

TEST_CASE("a run whose disk has no room for a second checkpoint warns once and trains on") {
  if (!canMount()) SKIP_CASE("this machine lets no user mount a file system");
  // With the momentum, a checkpoint is larger than the weights.
  auto ended = runOnDisk("1700k", "tests/faults/short.toml",
      {"checkpoint.every_steps=100", "train.optimizer.momentum=0.1"});
  INFO(ended.output, ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(contains(ended.output, "weights sha256="));
  CHECK(countOf(ended.errors, "warning: ") == 1);
  CHECK(contains(ended.errors, "warning: saving failed at step 200: cannot write "));
  CHECK(contains(ended.errors,
      ": No space left on device; free some space, or choose another folder with --runs. The run "
      "continues, and will try again later\n"));
  CHECK(contains(ended.output, " times. The last time: saving failed at step "));
}

TEST_CASE("a disk that loses the room for the weights ends the run at the end of the epoch") {
  if (!canMount()) SKIP_CASE("this machine lets no user mount a file system");
  auto ended = runOnDisk("1M", "tests/faults/short.toml", {"train.epochs=1000000"}, "700k");
  checkFailed(ended, {"coordinator", "not enough room on the disk of ", "/short/1: ",
                         " are free, but the weights need ", "free some space", "--runs"});
  CHECK(contains(ended.output, "Epoch[0] Batch"));
  CHECK_FALSE(contains(ended.output, "Epoch[1]"));
}

TEST_CASE("a run whose trace does not fit on the disk still writes its table and its report") {
  if (!canMount()) SKIP_CASE("this machine lets no user mount a file system");
  auto small = newFolder(), runs = newFolder();
  auto cache = cacheSetting();
  kj::StringPtr environment[] = {cache};
  constexpr kj::StringPtr SCRIPT =
      "mount -t tmpfs -o size=16k none \"$1\" && \"$2\" run \"$3\" --runs \"$4\" "
      "--set train.epochs=1 --set train.steps=20 --trace \"$1/trace.json\"; code=$?; "
      "ls -A \"$1\" >&2; exit $code"_kj;
  Command command({"unshare", "--user", "--map-root-user", "--mount", "sh", "-c", SCRIPT, "sh",
                      small, RUNNER, ENDLESS, runs},
      {.environment = environment});
  auto ended = command.wait();
  checkFailed(ended, {"the run is complete; its trace could not be written: cannot write ",
                         "/trace.json: No space left on device; free some space, or choose "
                         "another file with --trace; the roles' files are in ",
                         "/endless/1"});
  // Nothing is left of the trace.
  CHECK(ended.errors.endsWith("/endless/1\n"));
  CHECK(contains(ended.output, "weights sha256="));
  for (auto name: {"report.html", "worker-1.trace.json", "server-0.trace.json"}) {
    CHECK(readFile(kj::str(runs, "/endless/1/", name)).size() > 0);
  }
}

// The folder of fashion_mnist's databases in `cache`.
kj::String importedIn(kj::StringPtr cache) {
  auto found = Command({"sh", "-c", kj::str("echo ", cache, "/fashion_mnist-raw-*/")}).wait();
  return kj::heapString(found.output.slice(0, found.output.size() - 1));
}

// A copy of the imported data that `script` damages ($1 is the file, $2 its size).
class DamagedData {
public:
  explicit DamagedData(kj::StringPtr script) {
    startedRun(ENDLESS);  // imports the data unless that was done before
    auto setting = cacheSetting();
    auto imported = setting.slice(setting.findFirst('=').orDefault(0) + 1);
    auto folder = newFolder();
    REQUIRE(Command({"cp", "-r", imported, folder}).wait().exitCode == 0);
    cache = kj::str(folder, "/cache");
    file = kj::str(importedIn(cache), "training.mdb");
    auto size = kj::str(readFile(file).size());
    REQUIRE(Command({"sh", "-c", script, "sh", file, size}).wait().exitCode == 0);
  }

  // A run must fail on it with one line that holds `words`, the file, and what to do.
  void checkFails(Words words) {
    INFO(file);
    auto ended = run("train.epochs=1000000");
    checkFailed(ended, words);
    checkFailed(ended, {file, ". Delete this file"});
  }

  // Does the same. Then follows the advice in the message, after which a run must succeed.
  void checkMessageHelps(Words words) {
    checkFails(words);
    REQUIRE(Command({"rm", file}).wait().exitCode == 0);
    auto again = run("train.epochs=1");
    INFO(again.errors);
    CHECK(again.exitCode == 0);
  }

  // A run on it must fail in the same way if `script` damages it while the run trains.
  void checkFailsWhenChanged(kj::StringPtr script, Words words) {
    auto runs = newFolder();
    auto command = start(runs, "train.epochs=1000000");
    REQUIRE(command->waitForOutput("Speed: "));
    REQUIRE(Command({"sh", "-c", script, "sh", file}).wait().exitCode == 0);
    auto ended = command->wait(FAILS_WITHIN_S);
    checkFailed(ended, words);
    checkFailed(ended, {file, ". Delete this file"});
    CHECK(processesWith(runs).size() == 0);
    auto events = readFile(kj::str(runs, "/endless/1/events.jsonl"));
    CHECK(contains(events, kj::str("the record database ", file, " can no longer be read: ")));
  }

private:
  kj::Own<Command> start(kj::StringPtr runs, kj::StringPtr epochs) {
    auto setting = kj::str("RUNNER_CACHE=", cache);
    kj::StringPtr environment[] = {setting};
    kj::StringPtr words[] = {
        RUNNER, "run", ENDLESS, "--runs", runs, "--set", "data.batch_size=250", "--set", epochs};
    return kj::heap<Command>(words, Command::Surroundings{.environment = environment});
  }

  Ended run(kj::StringPtr epochs) {
    auto runs = newFolder();
    auto ended = start(runs, epochs)->wait();
    CHECK(processesWith(runs).size() == 0);
    return ended;
  }

  kj::String cache;
  kj::String file;
};

TEST_CASE("a database that was cut short is refused before anything starts") {
  DamagedData data("truncate -s $(($2 / 2)) \"$1\"");
  data.checkMessageHelps({"cannot open the record database", "is cut short"});
}

TEST_CASE("a database that is cut short while a run reads it ends the run, which names the file") {
  DamagedData("true").checkFailsWhenChanged(
      "truncate -s 8192 \"$1\"", {"worker ", " can no longer be read: it was cut short"});
}

TEST_CASE("a database with a hole ends the run, which names the record and the file") {
  DamagedData data("dd if=/dev/zero of=\"$1\" bs=4096 seek=$(($2 / 8192)) count=256 conv=notrunc");
  data.checkMessageHelps({"worker ", "record ", "data.on_bad_record"});
}

TEST_CASE("a database with changed pixels ends the run, which names the record and the file") {
  // The last 100 bytes of a page in the middle: pixels of a record.
  DamagedData data(
      "printf %0100d 7 | dd of=\"$1\" bs=1 seek=$(($2 / 8192 * 4096 + 3996)) conv=notrunc");
  data.checkMessageHelps({"worker ", "record ", " (image ", "checksum", "data.on_bad_record"});
}

TEST_CASE(
    "a database with changed bytes ends the run, which names the file, and never by a signal") {
  struct Change {
    kj::StringPtr script;
    kj::StringPtr cause;
  };
  // The changes are in the size of pages, in that of the second meta page, in the root in both meta
  // pages, and in the end of a page's offsets.
  const Change changes[] = {
      {"printf '\\000' | dd of=\"$1\" bs=1 seek=41 conv=notrunc", "page 0 of the file is damaged"},
      {"printf '\\377' | dd of=\"$1\" bs=1 seek=4138 conv=notrunc",
          "page 1 of the file is damaged"},
      {"for root in 128 4224; do printf '%b' '\\0000\\0000\\0000\\0000' | "
       "dd of=\"$1\" bs=1 seek=$root conv=notrunc; done",
          "a page number in the file is wrong: 0"},
      {"printf '\\000' | dd of=\"$1\" bs=1 seek=8204 conv=notrunc",
          "page 2 of the file is damaged"},
  };
  for (auto& change: changes) DamagedData(change.script).checkFails({change.cause});
}

// -------------------------------------------------------------------------------------------------
// Images.

constexpr io::ImageShape IMAGES = {3, 16, 16};

// The `i`-th of 20 images, as a JPEG file.
kj::Array<kj::byte> jpegOf(uint i) {
  auto pixels = kj::heapArray<kj::byte>(IMAGES.size());
  for (size_t k: kj::indices(pixels)) pixels[k] = (k * (i + 3) * 37) % 251;
  return io::encodeJpeg({IMAGES, io::Layout::PIXELS, pixels});
}

kj::String nameOf(uint i) {
  return kj::str(i % 2 == 0 ? "cat" : "dog", "/", i / 10, i % 10, ".jpeg");
}

// A folder with `count` JPEG files in two classes.
kj::String imageFolder(uint count = 20) {
  auto folder = newFolder();
  for (auto name: {"cat", "dog"}) {
    REQUIRE(Command({"mkdir", kj::str(folder, "/", name)}).wait().exitCode == 0);
  }
  for (uint i = 0; i < count; ++i) {
    writeFile(kj::str(folder, "/", nameOf(i)), kj::heapString(jpegOf(i).asChars()));
  }
  return folder;
}

// A folder of packed records of these images. The 8th was cut short, which an import would have
// refused.
kj::String packedFolder() {
  auto folder = newFolder();
  auto training = io::RecordWriter::create(kj::str(folder, "/training.mdb"));
  auto validation = io::RecordWriter::create(kj::str(folder, "/validation.mdb"));
  for (uint i = 0; i < 20; ++i) {
    auto jpeg = jpegOf(i);
    auto bytes = jpeg.slice(0, i == 7 ? jpeg.size() * 2 / 3 : jpeg.size());
    auto& writer = i % 10 == 9 ? validation : training;
    writer->add(i % 2, i, io::Encoding::JPEG, IMAGES, bytes, nameOf(i));
  }
  training->finish();
  validation->finish();
  return folder;
}

TEST_CASE("a JPEG file that was cut short ends the run, which names the record") {
  auto source = kj::str("data.source=", packedFolder());
  Run run("tests/faults/images.toml", {source});
  checkFailed(run.command.wait(), {"worker ", "record 7 (dog/07.jpeg) of ", "training.mdb",
                                      "Repair or remove that image", "data.on_bad_record"});
  checkNothingLeft(run);
}

TEST_CASE(
    "a JPEG file that was cut short is counted, named and skipped if the experiment asks for it") {
  auto source = kj::str("data.source=", packedFolder());
  Run run("tests/faults/images.toml", {source, "data.on_bad_record=skip"});
  auto ended = run.command.wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  auto events = run.read("events.jsonl");
  INFO(events);
  CHECK(contains(events, "\"bad_records\":1"));
  CHECK(contains(events, "\"bad_record\":{\"reason\":\"record "));
}

// How often `part` occurs in `text`.
uint countOf(kj::StringPtr text, kj::StringPtr part) {
  uint count = 0;
  for (auto at = text.cStr(); (at = strstr(at, part.cStr())) != nullptr; ++at) ++count;
  return count;
}

TEST_CASE("a bad record is named once in a run, and counted in each epoch") {
  auto source = kj::str("data.source=", packedFolder());
  // Three steps read all 18 records.
  Run run("tests/faults/images.toml", {source, "data.on_bad_record=skip", "cluster.workers=1",
                                          "data.batch_size=6", "train.epochs=3"});
  auto ended = run.command.wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(countOf(ended.errors, "warning: worker 0: record 7 ") == 1);
  auto events = run.read("events.jsonl");
  CHECK(countOf(events, "\"bad_record\":") == 1);
  CHECK(countOf(events, "\"bad_records\":1") == 3);
  // Reported at its step and not at the end of the epoch, so that a resumed run does not lose it.
  CHECK(strstr(events.cStr(), "\"bad_record\":") < strstr(events.cStr(), "\"trained\":"));
}

TEST_CASE("a run says that fewer than ten images give no validation records") {
  for (uint count: {9, 10}) {
    auto source = kj::str("data.source=", imageFolder(count));
    Run run("tests/faults/images.toml", {source, "checkpoint.keep_best=true"_kj});
    auto ended = run.command.wait();
    INFO(ended.errors);
    CHECK(ended.exitCode == 0);
    CHECK(contains(ended.errors, "warning: checkpoint.keep_best has no effect") == (count < 10));
    bool hasBest = ::access(kj::str(run.folder, "/best.safetensors").cStr(), F_OK) == 0;
    CHECK(hasBest == (count == 10));
    bool hasConfusion = ::access(kj::str(run.folder, "/confusion.csv").cStr(), F_OK) == 0;
    CHECK(hasConfusion == (count == 10));
    CHECK(
        contains(ended.errors, "warning: the data set has no validation records") == (count < 10));
    // Without validation records, there are no validation figures.
    CHECK(contains(run.read("log.txt"), "Validation-") == (count == 10));
    CHECK(contains(run.read("events.jsonl"), "\"validates\":true") == (count == 10));
    for (auto name: {"table.md", "table.csv"}) CHECK(!contains(run.read(name), "nan"));
    CHECK(!contains(run.read("report.html"), "nan<"));
    CHECK(!contains(run.read("events.jsonl"), "NaN"));
    CHECK(!contains(ended.output, "nan |"));
  }
}

TEST_CASE("a run says what its import left out, also when an earlier run imported the data") {
  auto folder = imageFolder();
  writeFile(kj::str(folder, "/cat/04.gif"), "text");
  auto source = kj::str("data.source=", folder);
  for (uint i = 0; i < 2; ++i) {
    Run run("tests/faults/images.toml", {source});
    auto ended = run.command.wait();
    INFO(ended.errors);
    CHECK(ended.exitCode == 0);
    auto sentence = kj::str("left out 1 file of ", folder,
        " whose name does not end in .jpeg, .jpg or .png: cat/04.gif");
    // Once: its workers do not repeat it.
    CHECK(countOf(ended.errors, kj::str("warning: ", sentence, "\n")) == 1);
    // The files of the run contain it too.
    CHECK(contains(run.read("events.jsonl"), kj::str("\"left_out\":[\"", sentence, "\"]")));
    CHECK(contains(
        run.read("table.md"), kj::str("\nThe import of the data set:\n\n- ", sentence, "\n")));
  }
}

TEST_CASE("a sweep says once what the import of its data set left out") {
  auto folder = imageFolder();
  writeFile(kj::str(folder, "/cat/04.gif"), "text");
  auto cache = cacheSetting();
  kj::StringPtr environment[] = {cache};
  auto runs = newFolder(), source = kj::str("data.source=", folder);
  Command command({RUNNER, "run", "tests/faults/images.toml", "--runs", runs, "--set", source,
                      "--sweep", "data.batch_size=2,4"},
      {.environment = environment});
  auto ended = command.wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(countOf(ended.errors, "warning: left out 1 file of ") == 1);
}

TEST_CASE("a sweep over data sets of which one is missing runs the others") {
  auto good = imageFolder(), bad = kj::str(newFolder(), "/none");
  auto runs = newFolder();
  auto cache = cacheSetting();
  kj::StringPtr environment[] = {cache};
  auto sweep = [&](kj::StringPtr sources) {
    auto key = kj::str("data.source=", sources);
    return Command({RUNNER, "run", "tests/faults/images.toml", "--runs", runs, "--sweep", key},
        {.environment = environment})
        .wait();
  };
  auto ended = sweep(kj::str(good, ",", bad));
  INFO(ended.errors);
  CHECK(ended.exitCode == 1);
  auto sentence = kj::str("there is nothing at ", bad);
  CHECK(contains(ended.errors, kj::str(": failed: ", sentence)));
  CHECK(contains(ended.errors, "error: 1 of 2 runs failed. The table says why"));
  CHECK(countOf(ended.output, " finished |") == 1);
  CHECK(countOf(ended.output, "weights sha256=") == 1);
  CHECK(contains(ended.output, sentence));
  // Once the data exist, the same command makes the missing runs.
  CHECK(Command({"mv", imageFolder(), bad}).wait().exitCode == 0);
  auto again = sweep(kj::str(good, ",", bad));
  INFO(again.errors);
  CHECK(again.exitCode == 0);
  CHECK(countOf(again.errors, "skipped, it has finished before") == 1);
  auto none = sweep(kj::str(bad, "x,", bad, "y"));
  checkFailed(none, {"there is nothing at ", "x. Set data.source"});
}

TEST_CASE("a file that is not a JPEG file is named without internals, and left out where asked") {
  auto folder = imageFolder();
  writeFile(kj::str(folder, "/cat/04.jpeg"), "text");
  auto source = kj::str("data.source=", folder);
  checkFailed(Run("tests/faults/images.toml", {source}).command.wait(),
      {kj::str("error: cannot import cat/04.jpeg of ", folder,
          ": it is neither a JPEG nor a PNG file. Repair or remove it, or set data.on_bad_record = "
          "\"skip\"")});
  Run run("tests/faults/images.toml", {source, "data.on_bad_record=skip"});
  auto ended = run.command.wait();
  INFO(ended.errors);
  CHECK(ended.exitCode == 0);
  CHECK(contains(kj::str("\n", ended.errors),
      "\nwarning: cat/04.jpeg is neither a JPEG nor a PNG file; left out (on_bad_record = "
      "\"skip\")\n"));
  CHECK(!contains(ended.errors, "import"));
}

TEST_CASE("pack_records advises its own flags, and names what it leaves out") {
  auto folder = imageFolder();
  writeFile(kj::str(folder, "/cat/04.jpeg"), "text");
  auto out = kj::str(newFolder(), "/packed");
  kj::StringPtr words[] = {
      "tools/pack_records", "--dataset", "image_folder", "--source", folder, out, "--skip-bad"};
  auto refused = Command(kj::arrayPtr(words, 6)).wait();
  checkFailed(refused, {"cannot import cat/04.jpeg of ", ", or give --skip-bad"});
  CHECK(!contains(refused.errors, "data."));
  kj::StringPtr more[] = {
      "tools/pack_records", "--skip-bad", "--dataset", "image_folder", "--source", folder, out};
  auto packed = Command(more).wait();
  INFO(packed.errors);
  CHECK(packed.exitCode == 0);
  CHECK(contains(packed.errors,
      "warning: cat/04.jpeg is neither a JPEG nor a PNG file; left out (--skip-bad)\n"));
}

TEST_CASE("pack_records refuses wrong options and paths with exit code 2") {
  auto folder = imageFolder();
  auto errorOf = [](kj::ArrayPtr<const kj::StringPtr> more) {
    kj::Vector<kj::StringPtr> words;
    words.addAll(kj::ArrayPtr<const kj::StringPtr>({"tools/pack_records", "--dataset", "mnist"}));
    words.addAll(more);
    auto ended = Command(words).wait();
    CHECK(ended.exitCode == 2);
    return kj::mv(ended.errors);
  };
  CHECK(contains(errorOf({"--source", "/nowhere", "out"}), "there is nothing at `/nowhere`"));
  CHECK(
      contains(errorOf({"--resize", "2.5", "out"}), "`2.5` is not a whole number from 1 to 8192"));
  CHECK(contains(errorOf({folder}), "exists already. Name a new folder"));
  CHECK(contains(errorOf({"--skip-bad", "out"}), "--skip-bad needs --dataset image_folder"));
}

TEST_CASE("pack_records names the limit on the size of files if a file would exceed it") {
  auto out = kj::str(newFolder(), "/packed");
  // The thread sanitizer writes a file to TMPDIR if it can. The limit would cut that file, too.
  constexpr kj::StringPtr SCRIPT =
      "ulimit -f 8; TMPDIR=/nowhere exec tools/pack_records --dataset image_folder "
      "--source \"$1\" \"$2\""_kj;
  auto ended = Command({"bash", "-c", SCRIPT, "bash", imageFolder(), out}).wait();
  checkFailed(ended, {"training.mdb",
                         "This process may write files of at most 8192 bytes: raise "
                         "that limit (`ulimit -f`)"});
  CHECK(!contains(ended.errors, "RUNNER_CACHE"));
}

TEST_CASE("pack_records on a disk that is too small fails, or has packed everything") {
  if (!canMount()) SKIP_CASE("this machine lets no user mount a file system");
  auto images = imageFolder();
  auto place = newFolder();
  constexpr kj::StringPtr SCRIPT =
      "for kib in $(seq 24 4 200); do mount -t tmpfs -o size=${kib}k none \"$1\" && "
      "if tools/pack_records --dataset image_folder --source \"$2\" \"$1/out\"; "
      "then ls \"$1/out\"; break; fi; umount \"$1\"; done"_kj;
  auto ended = Command(
      {"unshare", "--user", "--map-root-user", "--mount", "sh", "-c", SCRIPT, "sh", place, images})
                   .wait();
  INFO(ended.errors);
  CHECK(ended.output.endsWith("mean.f32\ntraining.mdb\nvalidation.mdb\n"));
  CHECK(contains(ended.errors, "error: the mean image was not stored: "));
  CHECK(contains(ended.errors, "/out/mean.f32 cannot be written: No space left on device. Free "));
  CHECK(contains(ended.errors, "What is packed so far is kept, and the same command continues "));
}

}  // namespace
}  // namespace tests
