// Tests imports of images from an address.
#include <doctest/doctest.h>
#include <kj/vector.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/datasets/datasets.h"
#include "io/datasets/import.h"
#include "io/paths.h"
#include "io/testing/archive_files.h"
#include "io/testing/http_server.h"
#include "io/testing/image_folder.h"
#include "tests/text.h"

namespace io {

namespace {

// A server with a tar of twelve cats and eight dogs, and an experiment that reads it.
class RemoteImages: public CacheScratch {
public:
  RemoteImages(): server(served("\"first\"")), config(sourceAt("train.tar?key=secret")) {
    config.names.skip = "give --skip-bad";
  }

  // Other versions have other images. The first dog of a damaged one ends early.
  ServedFile served(kj::StringPtr tag, bool isDamaged = false) const {
    kj::Vector<kj::String> entries;
    for (uint i = 0; i < 20; i++) {
      auto file = jpegOf(i * 10 + tag.size());
      auto content = isDamaged && i == 12 ? file.slice(0, file.size() / 2) : file.asPtr();
      entries.add(kj::str(i < 12 ? "cat" : "dog", "/", 100 + i, ".jpg=", content.asChars()));
    }
    entries.add(kj::str("notes.txt=x"));
    auto path = this->path("served.tar");
    writeTar(
        path, KJ_MAP(entry, entries) { return kj::StringPtr(entry); });
    return {.bytes = readFile(path, 1 << 24), .tag = kj::str(tag)};
  }
  DataConfig sourceAt(kj::StringPtr name) const {
    return testConfig("image_folder", server.address(name));
  }
  kj::String shown() const { return server.address("train.tar"); }

  // Imports the data set of `config`, and returns the checksum of the records.
  kj::String imported() {
    warnings.clear();
    auto warn = [&](kj::StringPtr text) { warnings.add(kj::str(text)); };
    lookForChanges(config, unheard(), warn);
    auto dataset = openDataset(config, unheard(), warn);
    return recordsSha256(dataset->training(), dataset->validation());
  }
  kj::String refusal() {
    return thrownBy([&]() { imported(); });
  }
  // Returns the folders of unfinished imports.
  kj::Vector<kj::String> unfinished() const {
    kj::Vector<kj::String> found;
    for (auto& name: namesIn(path("cache"))) {
      if (name.endsWith(".part")) found.add(path(kj::str("cache/", name)));
    }
    return found;
  }

  HttpServer server;
  DataConfig config;
  kj::Vector<kj::String> warnings;
};

// Packs in a child process, which is killed when the progress of `what` reaches `least`. The server
// is a thread, and ThreadSanitizer allows no new thread after such a fork. So `what` must come
// before the decoding of images.
void packAndKill(const DataConfig& config, kj::StringPtr into, kj::StringPtr what, uint64_t least) {
  auto pid = ::fork();
  if (pid == 0) {
    kj::runCatchingExceptions([&]() {
      packDataset(config, into, [&](kj::StringPtr now, uint64_t done, uint64_t) {
        if (now.startsWith(what) && done >= least) ::raise(SIGKILL);
      });
    });
    ::_exit(0);
  }
  int status;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  REQUIRE(WIFSIGNALED(status));
}

}  // namespace

TEST_CASE("openDataset: imports an archive from an address once, and removes the download") {
  RemoteImages remote;
  auto sum = remote.imported();
  CHECK(remote.server.requests() == "HEAD, HEAD, GET");
  auto dataset = openDataset(remote.config, unheard());
  CHECK(dataset->training().count() == 18);
  CHECK(kj::strArray(dataset->classNames(), " ") == "cat dog");
  CHECK(
      kj::strArray(namesIn(dataset->folder()), " ") == "left_out.txt training.mdb validation.mdb");
  // The file's name, without the query.
  CHECK(tests::contains(dataset->training().origin(), "source: train.tar\n"));
  auto warning = kj::str("left out 1 file of ", remote.shown(),
      " whose name does not end in .jpeg, .jpg or .png: notes.txt");
  CHECK(kj::strArray(remote.warnings, "\n") == warning);
  CHECK(kj::strArray(dataset->leftOut(), "\n") == warning);
  // Roles of a run do not ask the server.
  CHECK(remote.server.requests() == "HEAD, HEAD, GET");
  CHECK(remote.imported() == sum);
  CHECK(remote.server.requests() == "HEAD, HEAD, GET, HEAD");
}

TEST_CASE("openDataset: imports a changed file at an address again") {
  RemoteImages remote;
  auto sum = remote.imported();
  remote.server.change(remote.served("\"second\""));
  CHECK(remote.imported() != sum);
  remote.server.change(remote.served("\"first\""));
  CHECK(remote.imported() == sum);
}

TEST_CASE("openDataset: the same images at an address and in a file give the same bytes") {
  RemoteImages remote;
  packDataset(remote.config, remote.path("remote"), unheard(), [](kj::StringPtr) {});
  auto file = remote.served("\"first\"");
  remote.config.source = remote.write("train.tar", file.bytes);
  packDataset(remote.config, remote.path("local"), unheard(), [](kj::StringPtr) {});
  for (auto name: {TRAINING_FILE, VALIDATION_FILE}) {
    CHECK(readFile(remote.path(kj::str("remote/", name)), 1 << 24) ==
          readFile(remote.path(kj::str("local/", name)), 1 << 24));
  }
}

TEST_CASE("lookForChanges: without an answer, an earlier import of the address is used") {
  RemoteImages remote;
  CHECK(remote.imported() != "");
  remote.server.stop();
  CHECK(remote.imported() != "");
  CHECK(kj::strArray(remote.warnings, "\n") ==
        kj::str("cannot download ", remote.shown(),
            ": Couldn't connect to server. Check data.source. The records that were imported from "
            "there are used"));
  // Nothing was imported with other settings.
  remote.config.resizeShortSide = 8;
  CHECK(remote.refusal() == kj::str("cannot download ", remote.shown(),
                                ": Couldn't connect to server. Check data.source"));
}

TEST_CASE("lookForChanges: does not use an import of a file that is known to have changed") {
  RemoteImages remote;
  CHECK(remote.imported() != "");
  remote.server.change(remote.served("\"second\""));
  lookForChanges(remote.config, unheard());
  remote.server.change({.status = 503});
  CHECK(remote.refusal() == kj::str("cannot download ", remote.shown(),
                                ": the server answered with HTTP status 503. Check data.source"));
}

TEST_CASE("openDataset: training and validation images may each lie at an address") {
  RemoteImages remote;
  remote.config.validationSource = remote.server.address("val/train.tar");
  auto sum = remote.imported();
  CHECK(remote.server.requests() == "HEAD, HEAD, HEAD, HEAD, GET, GET");
  auto dataset = openDataset(remote.config, unheard());
  CHECK(dataset->training().count() == 20);
  CHECK(dataset->validation().count() == 20);
  CHECK(remote.unfinished().size() == 0);
  // Lists divide the images of one address, which is downloaded once.
  auto list = [&](kj::StringPtr name, kj::StringPtr text) {
    return remote.write(name, text.asBytes());
  };
  remote.config.validationSource = nullptr;
  remote.config.labels = list("train.txt", "cat/100.jpg 0\ndog/112.jpg 1\n");
  remote.config.validationLabels = list("val.txt", "cat/101.jpg 0\n");
  CHECK(remote.imported() != sum);
  CHECK(remote.server.requests().endsWith("GET, GET, HEAD, HEAD, GET"));
  dataset = openDataset(remote.config, unheard());
  CHECK(dataset->training().count() == 2);
  CHECK(dataset->validation().count() == 1);
}

TEST_CASE("packDataset: continues the download of a killed process") {
  RemoteImages remote;
  auto whole = remote.path("whole"), killed = remote.path("killed");
  packDataset(remote.config, whole, unheard(), [](kj::StringPtr) {});
  remote.server.stallAfter(5000);
  packAndKill(remote.config, killed, "downloading", 5000);
  // Complete downloads.
  packAndKill(remote.config, killed, "listing", 0);
  packDataset(remote.config, killed, unheard(), [](kj::StringPtr) {});
  CHECK(remote.server.requests() == "HEAD, GET, HEAD, GET, HEAD, GET from 5000, HEAD");
  for (auto name: {TRAINING_FILE, VALIDATION_FILE}) {
    CHECK(readFile(kj::str(whole, "/", name), 1 << 24) ==
          readFile(kj::str(killed, "/", name), 1 << 24));
  }
  CHECK(pathKind(kj::str(killed, ".part")) == PathKind::NOTHING);
}

TEST_CASE("packDataset: does not continue the download of another version") {
  RemoteImages remote;
  auto killed = remote.path("killed");
  remote.server.stallAfter(5000);
  packAndKill(remote.config, killed, "downloading", 5000);
  remote.server.change(remote.served("\"second\""));
  packDataset(remote.config, killed, unheard(), [](kj::StringPtr) {});
  CHECK(remote.server.requests() == "HEAD, GET, HEAD, GET");
}

TEST_CASE("openDataset: a failed import keeps its download for the next import of the same file") {
  RemoteImages remote;
  remote.server.change(remote.served("\"damaged\"", true));
  auto message = remote.refusal();
  CHECK(message.startsWith(kj::str("cannot import dog/112.jpg of ", remote.shown(), ": it ")));
  REQUIRE(remote.unfinished().size() == 1);
  CHECK(message.endsWith(
      kj::str(". Repair or remove it, or give --skip-bad. What was downloaded stays in ",
          remote.unfinished()[0],
          " for the next import of the same file. Remove that folder to download the file again")));
  // An import of something else comes between.
  remote.config.onBadRecord = BadRecordPolicy::SKIP;
  CHECK(remote.imported() != "");
  auto requests = remote.server.requests();
  CHECK(requests == "HEAD, HEAD, GET, HEAD, HEAD");
  CHECK(remote.unfinished().size() == 0);
}

TEST_CASE("openDataset: an interrupted check of a download keeps the download") {
  RemoteImages remote;
  remote.server.change(remote.served("\"damaged\"", true));
  uint checks = 0;
  auto interrupt = [&](kj::StringPtr what, uint64_t done, uint64_t total) {
    if (!what.startsWith("checking train.tar")) return;
    CHECK(done <= total);
    ++checks;
    configs::fail("interrupted");
  };
  CHECK(thrownBy([&]() {
    openDataset(remote.config, interrupt);
  }).startsWith(kj::str("cannot import dog/112.jpg of ", remote.shown(), ": it ")));
  CHECK(checks == 1);
  REQUIRE(remote.unfinished().size() == 1);
  remote.config.onBadRecord = BadRecordPolicy::SKIP;
  CHECK(remote.imported() != "");
  CHECK(remote.server.requests() == "HEAD, GET, HEAD, HEAD");
}

TEST_CASE("openDataset: downloads a file again if its archive was damaged") {
  RemoteImages remote;
  auto file = remote.served("\"first\"");
  auto whole = kj::heapArray(file.bytes.asPtr());
  memset(file.bytes.begin() + file.bytes.size() / 2, 0xff, 2048);
  remote.server.change(kj::mv(file));
  auto message = remote.refusal();
  CHECK(message.startsWith(kj::str("cannot read ", remote.shown(), ": ")));
  CHECK(message.endsWith(
      ". The damaged download was removed, so that the next import downloads the file again"));
  CHECK(remote.unfinished().size() == 0);
  // The same version, this time as the server has it.
  remote.server.change({.bytes = kj::mv(whole), .tag = kj::str("\"first\"")});
  CHECK(remote.imported() != "");
  CHECK(remote.server.requests() == "HEAD, HEAD, GET, HEAD, HEAD, GET");
}

TEST_CASE("openDataset: an interrupted download stays, and the import of another file removes it") {
  RemoteImages remote;
  auto interrupt = [](kj::StringPtr what, uint64_t done, uint64_t) {
    if (what.startsWith("downloading") && done >= 5000) configs::fail("interrupted");
  };
  remote.server.stallAfter(5000);
  CHECK(
      tests::contains(thrownBy([&]() { openDataset(remote.config, interrupt); }), ": interrupted"));
  REQUIRE(remote.unfinished().size() == 1);
  auto other = remote.sourceAt("other.tar");
  openDataset(other, unheard(), [](kj::StringPtr) {});
  CHECK(remote.unfinished().size() == 0);
  CHECK(remote.server.requests() == "HEAD, GET, HEAD, GET");
}

TEST_CASE("openDataset: does not begin a download that the disk has no room for") {
  RemoteImages remote;
  auto file = remote.served("\"first\"");
  file.size_bytes = uint64_t(1) << 62;
  remote.server.change(kj::mv(file));
  auto message = remote.refusal();
  CHECK(message.startsWith(
      kj::str("cannot download ", remote.shown(), ": this needs 4611686018.4 GB, but only ")));
  CHECK(tests::contains(message, kj::str(" GB are free on the disk of ", remote.path("cache/"))));
  CHECK(message.endsWith(". Set RUNNER_CACHE to a folder on a larger disk, or make room"));
  CHECK(remote.server.requests() == "HEAD, HEAD");
  CHECK(remote.unfinished().size() == 0);
}

TEST_CASE("openDataset: a file that is not an archive is named by its address") {
  RemoteImages remote;
  remote.server.change({.bytes = kj::heapArray("not an archive"_kj.asBytes())});
  auto message = remote.refusal();
  CHECK(message.startsWith(kj::str("cannot open ", remote.shown(), ": ")));
}

}  // namespace io
