#include "runner/commands/diff_command.h"

#include <kj/map.h>
#include <kj/vector.h>
#include <unistd.h>

#include "runner/checkpoints/array_figures.h"
#include "runner/commands/inspect_command.h"
#include "runner/logs/run_folder.h"
#include "runner/system/version.h"
#include "runner/tables/terminal_table.h"
#include "runner/text/numbers.h"
#include "runner/text/text_table.h"

namespace runner {

namespace {

// The columns that narrow terminals show.
constexpr kj::StringPtr IMPORTANT[] = {
    "array"_kj, "key"_kj, "values that differ"_kj, "first"_kj, "largest difference"_kj};

// The results so far of the comparison of two paths.
struct Found {
  // Sentences about what only one of them has, or what cannot be compared value by value.
  kj::Vector<kj::String> sentences;
  kj::Vector<kj::Array<kj::String>> rows;  // of arrays that differ
  uint64_t equal = 0;                      // arrays
  uint64_t measured = 0;                   // arrays of times and traffic that differ

  bool isEqual() const { return sentences.size() == 0 && rows.size() == 0; }
};

// Finds elements by their names. A file may have tens of thousands of arrays.
template <typename T>
class ByName {
public:
  // `all` must outlive this object.
  explicit ByName(kj::ArrayPtr<const T> all) {
    for (auto& each: all) elements.findOrCreate(each.name, [&]() { return entryOf(each); });
  }

  kj::Maybe<const T&> find(kj::StringPtr name) const {
    return elements.find(name).map([](const T* each) -> const T& { return *each; });
  }

private:
  using Elements = kj::HashMap<kj::StringPtr, const T*>;
  Elements elements;

  static typename Elements::Entry entryOf(const T& each) { return {each.name, &each}; }
};

void compareArrays(kj::StringPtr file, const FoundTensor& a, const FoundTensor& b,
    const SavedFiles& keys, Found& found) {
  if (a.type != b.type || a.shape != b.shape) {
    found.sentences.add(kj::str(file, ": ", a.name, " is ", a.type, " of shape ", a.shape,
        " in A, and ", b.type, " of shape ", b.shape, " in B"));
  } else if (a.values == b.values) {
    found.equal++;
  } else if (isMeasured(a)) {
    found.measured++;
  } else {
    auto pieces = piecesByKey(a, keys);
    size_t at = 0;
    for (auto& piece: pieces) {
      size_t end = at + piece.values.size();
      FoundTensor other{nullptr, kj::str(b.type), nullptr, b.values.slice(at, end)};
      at = end;
      auto difference = differenceOf(piece, other);
      if (difference.values == 0) continue;
      uint64_t values = piece.values.size() / bytesPerValue(a.type);
      auto largest = difference.notFinite == difference.values ? kj::str("not finite")
                                                               : sixDigits(difference.largest);
      found.rows.add(kj::arr(kj::str(file), kj::str(a.name), kj::mv(piece.name),
          kj::str(grouped(difference.values), " of ", grouped(values)), kj::str(difference.first),
          kj::mv(largest), grouped(difference.notFinite)));
    }
  }
}

void compareFiles(const SavedFile& a, const SavedFile& b, const SavedFiles& keys, Found& found) {
  ByName<FoundTensor> inA(a.arrays), inB(b.arrays);
  for (auto& array: a.arrays) {
    KJ_IF_MAYBE(other, inB.find(array.name)) {
      compareArrays(a.name, array, *other, keys, found);
    } else {
      found.sentences.add(kj::str(a.name, ": only A has ", array.name));
    }
  }
  for (auto& array: b.arrays) {
    if (inA.find(array.name) == nullptr) {
      found.sentences.add(kj::str(b.name, ": only B has ", array.name));
    }
  }
}

template <typename T>
void compareFacts(kj::StringPtr what, const T& a, const T& b, Found& found) {
  if (!(a == b)) found.sentences.add(kj::str(what, ": ", a, " in A, and ", b, " in B"));
}

Found compareSaved(const SavedFiles& a, const SavedFiles& b) {
  Found found;
  if (a.checkpoint == nullptr && b.checkpoint == nullptr) {
    compareFiles(a.files[0], b.files[0], a, found);
    return found;
  }
  KJ_IF_MAYBE(first, a.checkpoint) {
    KJ_IF_MAYBE(second, b.checkpoint) {
      compareFacts("experiment", first->point.digest, second->point.digest, found);
      compareFacts(
          "instruction set", first->point.instructionSet, second->point.instructionSet, found);
      compareFacts("epoch", first->point.epoch, second->point.epoch, found);
      compareFacts("step", first->point.step, second->point.step, found);
    }
  }
  ByName<SavedFile> inA(a.files), inB(b.files);
  for (auto& file: a.files) {
    KJ_IF_MAYBE(other, inB.find(file.name)) {
      compareFiles(file, *other, a, found);
    } else if (b.checkpoint != nullptr) {
      found.sentences.add(kj::str("only A has ", file.name));
    }
  }
  for (auto& file: b.files) {
    if (a.checkpoint != nullptr && inA.find(file.name) == nullptr) {
      found.sentences.add(kj::str("only B has ", file.name));
    }
  }
  return found;
}

}  // namespace

kj::MainFunc DiffCommand::getMain() {
  return kj::MainBuilder(commandLine, VERSION,
      "Shows where A and B differ: which arrays, how many of their values, the index of the first "
      "different value, and the largest difference. A and B are runs (their newest checkpoints, or "
      "the final weights of both if one has no checkpoint), checkpoints, files of checkpoints, or "
      "files of "
      "weights. If one is a checkpoint and the other a file, the file is compared with that of the "
      "same name in the checkpoint. Arrays of parameters and of statistics are compared key by key "
      "if their folder also holds a file of weights.\n"
      "\n"
      "  runner diff runs/a/1 runs/a/2\n"
      "  runner diff runs/a/1/checkpoints/step-400 runs/a/1/checkpoints/step-800\n"
      "  runner diff runs/a/1/weights.safetensors runs/a/2/weights.safetensors\n"
      "\n"
      "Values count as different if one bit differs. Times and traffic, which vary between runs, "
      "do not count. Ends with exit code 0 if nothing differs, 3 if something does, and 2 if A or "
      "B is not a checkpoint, or is damaged.")
      .expectArg("A",
          [this](kj::StringPtr path) -> Validity {
            a = kj::str(path);
            return true;
          })
      .expectArg("B",
          [this](kj::StringPtr path) -> Validity {
            b = kj::str(path);
            return true;
          })
      .callAfterParsing(KJ_BIND_METHOD(*this, compare))
      .build();
}

void DiffCommand::matchWeights(
    const SavedFiles& one, kj::StringPtr ofOne, SavedFiles& other, kj::StringPtr ofOther) const {
  bool areRuns = one.path != ofOne && other.path != ofOther;
  if (!areRuns || one.checkpoint != nullptr || other.checkpoint == nullptr) return;
  auto weights = RunFolder{kj::str(ofOther)}.weights();
  if (::access(weights.cStr(), F_OK) == 0) other = readSavedOrEnd(weights, commandLine);
}

Validity DiffCommand::compare() {
  auto first = readSavedOrEnd(a, commandLine), second = readSavedOrEnd(b, commandLine);
  matchWeights(first, a, second, b);
  matchWeights(second, b, first, a);
  auto found = compareSaved(first, second);
  print(kj::str("A: ", first.path, "\nB: ", second.path, "\n\n"));
  for (auto& sentence: found.sentences) print(kj::str(sentence, "\n"));
  if (found.sentences.size() > 0 && found.rows.size() > 0) print("\n");
  bool isEqual = found.isEqual();
  if (found.rows.size() > 0) {
    TextTable table{
        kj::arr(kj::str("file"), kj::str("array"), kj::str("key"), kj::str("values that differ"),
            kj::str("first"), kj::str("largest difference"), kj::str("not finite")),
        found.rows.releaseAsArray()};
    printTable(table, IMPORTANT);
  }
  if (!isEqual) print("\n");
  print(kj::str(counted(found.equal, "array"),
      isEqual            ? " compared: nothing differs"
      : found.equal == 1 ? " is equal"
                         : " are equal",
      "\n"));
  if (found.measured > 0) {
    print(kj::str(counted(found.measured, "array"),
        " of times and traffic not counted: they differ from run to run\n"));
  }
  commandLine.endWith(isEqual ? OK : MISSED);
}

}  // namespace runner
