#include "runner/commands/inspect_command.h"

#include <kj/debug.h>
#include <kj/vector.h>
#include <time.h>

#include "runner/checkpoints/array_figures.h"
#include "runner/system/reason.h"
#include "runner/system/terminal.h"
#include "runner/system/version.h"
#include "runner/tables/terminal_table.h"
#include "runner/text/numbers.h"
#include "runner/text/text_table.h"

namespace runner {

namespace {

// The columns that narrow terminals show.
constexpr kj::StringPtr IMPORTANT[] = {
    "array"_kj, "shape"_kj, "min"_kj, "max"_kj, "mean"_kj, "finite"_kj};

kj::String momentText(double time_s) {
  time_t time = time_t(time_s);
  tm parts;
  char text[64];
  if (::gmtime_r(&time, &parts) == nullptr ||
      ::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &parts) == 0) {
    return kj::str("at an unknown time");
  }
  return kj::str(text);
}

// Returns the line about the best epoch so far. Empty if no epoch was validated.
kj::String bestOf(const SavedFiles& saved) {
  for (auto& file: saved.files) {
    KJ_IF_MAYBE(epoch, numberIn(file, "best.epoch")) {
      if (*epoch == 0) return nullptr;
      return kj::str("best so far      epoch ", *epoch, ", validation accuracy ",
          figureText(numberIn(file, "best.accuracy").orDefault(0), 4), "\n");
    }
  }
  return nullptr;
}

// Returns a text of the header on one line: its size if it is long, such as an experiment.
kj::String shortened(kj::StringPtr text) {
  constexpr size_t SHOWN_MAX = 100;
  kj::Vector<kj::String> lines;
  while (text.size() > 0) {
    size_t end = text.findFirst('\n').orDefault(text.size());
    lines.add(kj::heapString(text.slice(0, end)));
    text = text.slice(kj::min(end + 1, text.size()));
  }
  auto all = kj::strArray(lines, ", ");
  if (all.size() <= SHOWN_MAX) return all;
  return lines.size() > 1 ? kj::str(grouped(lines.size()), " lines")
                          : kj::str(grouped(all.size()), " characters");
}

// Returns the lines above the table.
kj::String headOf(const SavedFiles& saved) {
  uint64_t bytes = 0;
  for (auto& file: saved.files) bytes += file.bytes.size();
  auto size = bytesCell(double(bytes));
  KJ_IF_MAYBE(checkpoint, saved.checkpoint) {
    auto& point = checkpoint->point;
    return kj::str("checkpoint       ", saved.path, "\nsaved            step ", point.step,
        " of each worker, in epoch ", point.epoch, "\nmade             ",
        momentText(checkpoint->time_s), ", by ", checkpoint->version, ", ",
        fixedPoint(point.run_s, 1), " s after the run began\nexperiment       sha256 ",
        point.digest, "\ninstruction set  ", point.instructionSet, "\nsize             ", size,
        " in ", counted(saved.files.size(), "file"), "\n", bestOf(saved), "\n");
  }
  auto notes = KJ_MAP(note, notesIn(saved.files[0].bytes)) {
    return kj::str(note.name, ": ", shortened(note.text), "\n");
  };
  return kj::str(saved.path, ": ", size, " in ", counted(saved.files[0].arrays.size(), "array"),
      "\n", kj::strArray(notes, ""), "\n");
}

TextTable tableOf(const SavedFiles& saved) {
  kj::Vector<kj::Array<kj::String>> rows;
  for (auto& file: saved.files) {
    for (auto& array: file.arrays) {
      auto figures = figuresOf(array);
      auto finite =
          figures.notFinite == 0 ? kj::str("all") : kj::str("all but ", grouped(figures.notFinite));
      rows.add(kj::arr(kj::str(file.name), kj::str(array.name), kj::str(array.type),
          shapeText(array.shape), bytesCell(double(array.values.size())), kj::mv(figures.min),
          kj::mv(figures.max), kj::mv(figures.mean), kj::mv(finite)));
    }
  }
  return {kj::arr(kj::str("file"), kj::str("array"), kj::str("type"), kj::str("shape"),
              kj::str("size"), kj::str("min"), kj::str("max"), kj::str("mean"), kj::str("finite")),
      rows.releaseAsArray()};
}

}  // namespace

kj::MainFunc InspectCommand::getMain() {
  return kj::MainBuilder(commandLine, VERSION,
      "Shows what a checkpoint holds: when it was made, and each array with its type, shape, "
      "smallest, largest and mean value, and whether all values are finite. PATH is a run (its "
      "newest checkpoint, or its final weights if it has no checkpoint), a checkpoint, a file of a "
      "checkpoint, or a file of weights.\n"
      "\n"
      "  runner inspect runs/fashion_mnist_dist_sync/1\n"
      "  runner inspect runs/fashion_mnist_dist_sync/1/checkpoints/step-400\n"
      "  runner inspect runs/fashion_mnist_dist_sync/1/weights.safetensors\n"
      "\n"
      "Checks the checksums of a checkpoint. Ends with exit code 2 if PATH is not a checkpoint, or "
      "is damaged.")
      .expectArg("PATH", KJ_BIND_METHOD(*this, inspect))
      .build();
}

SavedFiles readSavedOrEnd(kj::StringPtr path, CommandLine& commandLine) {
  kj::Maybe<SavedFiles> read;
  commandLine.orWrongInput(
      [&]() { read = readSavedFiles(path, [](kj::String why) { tell(why); }); });
  return kj::mv(KJ_ASSERT_NONNULL(read));
}

Validity InspectCommand::inspect(kj::StringPtr path) {
  auto saved = readSavedOrEnd(path, commandLine);
  print(headOf(saved));
  printTable(tableOf(saved), IMPORTANT);
  return true;
}

}  // namespace runner
