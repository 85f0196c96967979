#include "tools/bench/torch_python.h"

#include <ctype.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "configs/language/failure.h"
#include "tools/bench/process.h"

namespace tools {
namespace {

constexpr kj::StringPtr DEBIANS_FOLDER = "/usr/bin"_kj;
constexpr int NO_TORCH = 77;
constexpr int CANNOT_START = 127;

// Prints the version of PyTorch.
constexpr kj::StringPtr PROBE = R"(
try:
    import torch
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise SystemExit(77)
print(torch.__version__)
)"_kj;

// Accepts `python3` and `python3.12`, but not `python3-config`.
bool isPython(kj::StringPtr name) {
  constexpr kj::StringPtr HEAD = "python3"_kj;
  if (!name.startsWith(HEAD)) return false;
  auto rest = name.slice(HEAD.size());
  if (rest.size() == 0) return true;
  if (rest[0] != '.' || rest.size() == 1) return false;
  return std::all_of(rest.begin() + 1, rest.end(), [](char c) { return ::isdigit(c); });
}

kj::String lastLine(kj::StringPtr text) {
  auto lines = linesOf(text);
  return lines.size() == 0 ? kj::String() : kj::mv(lines.back());
}

// `2.15.0+cpu` → 2, 15, 0.
kj::Vector<unsigned long> numbersOf(kj::StringPtr version) {
  kj::Vector<unsigned long> numbers;
  const char* at = version.cStr();
  while (::isdigit(*at)) {
    char* end;
    numbers.add(::strtoul(at, &end, 10));
    at = *end == '.' ? end + 1 : end;
  }
  return numbers;
}

bool isOlder(kj::StringPtr a, kj::StringPtr b) {
  auto left = numbersOf(a), right = numbersOf(b);
  return std::lexicographical_compare(left.begin(), left.end(), right.begin(), right.end());
}

Ended probe(kj::StringPtr program) {
  return runProgram(kj::arr(kj::str(program), kj::str("-c"), kj::str(PROBE)));
}

kj::StringPtr variable(const char* name) {
  auto value = ::getenv(name);
  return value == nullptr ? ""_kj : kj::StringPtr(value);
}

TorchPython torchOf(kj::StringPtr chosen) {
  struct stat status;
  bool isFolder = ::stat(chosen.cStr(), &status) == 0 && S_ISDIR(status.st_mode);
  auto program = kj::str(chosen, isFolder ? "/bin/python3" : "");
  auto ended = probe(program);
  if (ended.exitCode == 0) return {kj::mv(program), lastLine(ended.output)};
  constexpr kj::StringPtr WAY_OUT =
      "Name another Python with --python or RUNNER_PYTHON, or none to search the path"_kj;
  if (ended.exitCode == CANNOT_START) configs::fail("cannot start ", program, ". ", WAY_OUT);
  if (ended.exitCode == NO_TORCH) configs::fail(program, " has no PyTorch. ", WAY_OUT);
  configs::fail("PyTorch of ", program, " does not load: ", ended.reason(), ". ", WAY_OUT);
}

}  // namespace

kj::String TorchSearch::whyNone() const {
  if (notes.size() == 0) return kj::str("no Python with PyTorch");
  return kj::strArray(notes, "; ");
}

TorchSearch findTorch(kj::StringPtr chosen) {
  if (chosen.size() == 0) chosen = variable("RUNNER_PYTHON");
  if (chosen.size() > 0) return {torchOf(chosen), {}};
  auto path = kj::str(variable("PATH"), ':', DEBIANS_FOLDER);
  return newestTorch(pythonsOn(path, variable("VIRTUAL_ENV")));
}

kj::Vector<kj::String> pythonsOn(kj::StringPtr path, kj::StringPtr virtualEnvironment) {
  auto folders = kj::str(virtualEnvironment, virtualEnvironment == "" ? "" : "/bin:", path);
  kj::Vector<kj::String> programs;
  kj::Vector<std::filesystem::path> files;  // real folder and link target of each file
  for (auto& folder: split(folders, ':')) {
    std::error_code ignored;
    kj::Vector<kj::String> names;
    for (auto& entry: std::filesystem::directory_iterator(folder.cStr(), ignored)) {
      auto name = kj::str(entry.path().filename().c_str());
      if (isPython(name)) names.add(kj::mv(name));
    }
    std::sort(names.begin(), names.end());
    auto place = std::filesystem::canonical(folder.cStr(), ignored);
    for (auto& name: names) {
      auto program = kj::str(folder, '/', name);
      auto target = std::filesystem::canonical(program.cStr(), ignored);
      // The Python of a virtual environment links to another folder's, but is not the same.
      auto file = place / "->" / target.relative_path();
      if (std::find(files.begin(), files.end(), file) != files.end()) continue;
      files.add(kj::mv(file));
      programs.add(kj::mv(program));
    }
  }
  return programs;
}

TorchSearch newestTorch(kj::ArrayPtr<const kj::String> programs) {
  TorchSearch search;
  for (auto& program: programs) {
    auto ended = probe(program);
    // A broken link, or a shim of a Python that is not installed.
    if (ended.exitCode == NO_TORCH || ended.exitCode == CANNOT_START) continue;
    if (ended.exitCode != 0) {
      search.notes.add(kj::str("PyTorch of ", program, " does not load: ", ended.reason()));
      continue;
    }
    auto version = lastLine(ended.output);
    KJ_IF_MAYBE(best, search.newest) {
      if (!isOlder(best->version, version)) continue;
    }
    search.newest = TorchPython{kj::str(program), kj::mv(version)};
  }
  return search;
}

}  // namespace tools
