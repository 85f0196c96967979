#include "runner/weights/weights_notes.h"

#include "runner/system/files.h"
#include "runner/system/reason.h"
#include "tests/command.h"
#include "tests/text.h"

namespace runner {
namespace {

using tests::contains;

constexpr kj::StringPtr EXPERIMENT = R"(name = "x"
[data]
dataset = "image_folder"
source = "https://user:password@example.org/photos.tar?token=secret"
[[model.layers]]
kind = "dense"
units = 2
)"_kj;

LoadedExperiment loaded() {
  configs::Diagnostics diagnostics;
  auto result = readExperiment(configs::parse("x.toml", EXPERIMENT, diagnostics), diagnostics);
  REQUIRE(diagnostics.format("x.toml") == "");
  return result;
}

// Returns a file of weights with these notes and one value.
WeightsFile fileWith(kj::ArrayPtr<const Note> notes) {
  auto path = kj::str(tests::newFolder(), "/w.safetensors");
  Tensor tensors[] = {{kj::str("a"), "F32"_kj, kj::str("1"), 4}};
  auto head = safetensorsHead(notes, tensors);
  float one = 1;
  kj::ArrayPtr<const kj::byte> pieces[] = {head, kj::arrayPtr(&one, 1).asBytes()};
  writeWhole(path, pieces);
  return openWeights(path);
}

kj::String complaintAbout(kj::ArrayPtr<const Note> notes) {
  auto file = fileWith(notes);
  KJ_IF_MAYBE(e, kj::runCatchingExceptions([&]() { readNotes(file); })) return reasonOf(*e);
  return kj::str();
}

TEST_CASE("Notes: are read back as written, but without the secrets of an address") {
  auto experiment = loaded();
  io::DatasetFacts data{{3, 12, 16}, 2, 100, 10};
  ModelFacts facts(KJ_ASSERT_NONNULL(experiment.experiment), kj::mv(data));
  auto notes = notesOf(experiment.resolved, KJ_ASSERT_NONNULL(experiment.experiment), facts);
  auto file = fileWith(notes);
  auto found = readNotes(file);
  auto& read = KJ_ASSERT_NONNULL(found);
  CHECK(read.facts.shape == io::ImageShape{3, 12, 16});
  CHECK(read.facts.classes == 2);
  CHECK(read.meanImage.size() == 0);
  CHECK(contains(read.resolved, "example.org/photos.tar"));
  CHECK_FALSE(contains(read.resolved, "password"));
  CHECK_FALSE(contains(read.resolved, "secret"));
  configs::Diagnostics diagnostics;
  readExperiment(configs::parse("w", read.resolved, diagnostics), diagnostics);
  CHECK(diagnostics.count() == 0);
}

TEST_CASE("Notes: have the run's mean image, without reading the data set again") {
  auto experiment = loaded();
  auto& described = KJ_ASSERT_NONNULL(experiment.experiment);
  described.data.augment.meanImage = true;
  // This folder no longer exists.
  described.data.source = kj::str("/none/photos");
  io::DatasetFacts data{{1, 1, 2}, 2, 100, 10};
  data.meanImage = kj::arr(1.0f, 2.0f);
  ModelFacts facts(described, kj::mv(data));
  auto file = fileWith(notesOf(experiment.resolved, described, facts));
  auto found = readNotes(file);
  auto& mean = KJ_ASSERT_NONNULL(found).meanImage;
  REQUIRE(mean.size() == 2);
  CHECK(mean[0] == 1);
  CHECK(mean[1] == 2);
}

TEST_CASE("Notes: a file of another program has no notes, and wrong notes are named") {
  Note other[] = {{"format"_kj, kj::str("pt")}};
  CHECK(readNotes(fileWith(other)) == nullptr);
  auto with = [](kj::StringPtr shape, kj::StringPtr classes) {
    return kj::arr(Note{"experiment"_kj, kj::str("name = 'x'")},
        Note{"image_shape"_kj, kj::str(shape)}, Note{"classes"_kj, kj::str(classes)});
  };
  CHECK(complaintAbout(with("1,2,3", "2")) == "");
  for (auto shape: {"", "1,2", "1,2,3,4", "0,2,3", "-1,2,3", "1,2,3 ", "99999999,9,9",
           "16777216,16777216,16777216"}) {
    CHECK(contains(complaintAbout(with(shape, "2")), "an entry `image_shape` in its header"));
  }
  CHECK(contains(complaintAbout(with("1,2,3", "many")), "an entry `classes` in its header"));
}

TEST_CASE("Notes: a network has one name per class, even if its data or its notes have others") {
  auto experiment = loaded();
  auto namesIn = [&](kj::Array<kj::String> names) {
    io::DatasetFacts data{{3, 12, 16}, 2, 100, 10, nullptr, kj::mv(names)};
    auto graph = graphOf(KJ_ASSERT_NONNULL(experiment.experiment), data);
    return kj::strArray(graph.classNames, "|");
  };
  CHECK(namesIn(kj::arr(kj::str("cat"), kj::str("dog"))) == "cat|dog");
  CHECK(namesIn(kj::arr(kj::str("cat"), kj::str("dog"), kj::str("eel"))) == "cat|dog");
  CHECK(namesIn(kj::arr(kj::str("cat"))) == "cat|");
  CHECK(namesIn(nullptr) == "");
  // An older version wrote all names that the data had.
  Note notes[] = {{"experiment"_kj, kj::str("name = 'x'")}, {"image_shape"_kj, kj::str("3,12,16")},
      {"classes"_kj, kj::str("2")}, {"class_names"_kj, kj::str("cat\ndog\neel")}};
  auto file = fileWith(notes);
  auto found = readNotes(file);
  CHECK(namesIn(kj::mv(KJ_ASSERT_NONNULL(found).facts.classNames)) == "cat|dog");
}

TEST_CASE("Notes: a mean image of another size is refused") {
  auto with = [](kj::StringPtr mean) {
    return kj::arr(Note{"experiment"_kj, kj::str("name = 'x'")},
        Note{"image_shape"_kj, kj::str("1,1,2")}, Note{"classes"_kj, kj::str("2")},
        Note{"mean_image"_kj, kj::str(mean)});
  };
  // 8 bytes: 1 and 2.
  auto file = fileWith(with("AACAPwAAAEA="));
  auto found = readNotes(file);
  auto& read = KJ_ASSERT_NONNULL(found);
  REQUIRE(read.meanImage.size() == 2);
  CHECK(read.meanImage[0] == 1);
  CHECK(read.meanImage[1] == 2);
  CHECK(contains(complaintAbout(with("AACAPw==")), "an entry `mean_image` in its header"));
  CHECK(contains(complaintAbout(with("?")), "an entry `mean_image` in its header"));
}

}  // namespace
}  // namespace runner
