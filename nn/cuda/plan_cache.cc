#include "nn/cuda/plan_cache.h"

#include <errno.h>
#include <kj/debug.h>
#include <kj/vector.h>
#include <sys/file.h>

#include "configs/language/warning.h"

namespace nn::cuda {

namespace {

constexpr auto FILE_NAME = "cuda_plans.txt"_kj;
// The first line of a file in this format. A file that begins otherwise is not read.
constexpr auto FIRST_LINE = "runner's fastest CUDA plans, 1\n"_kj;

kj::StringPtr nameOf(Element element) {
  switch (element) {
    case Element::FLOAT32:
      return "fp32"_kj;
    case Element::BFLOAT16:
      return "bf16"_kj;
    case Element::FLOAT16:
      return "fp16"_kj;
  }
  KJ_UNREACHABLE;
}

kj::StringPtr nameOf(Direction direction) {
  switch (direction) {
    case Direction::FORWARD:
      return "forward"_kj;
    case Direction::BACKWARD_DATA:
      return "data"_kj;
    case Direction::BACKWARD_FILTERS:
      return "filters"_kj;
  }
  KJ_UNREACHABLE;
}

kj::String textOf(const BatchLayout& extent) {
  auto apart = extent.stride == extent.channels ? kj::String() : kj::str("/", extent.stride);
  return kj::str(extent.channels, apart, "x", extent.height, "x", extent.width);
}

struct KeyAndName {
  kj::String key, name;
};

// Parses lines of a key, a tab and a name. Null if `text` is in another format.
kj::Maybe<kj::Array<KeyAndName>> entriesOf(kj::StringPtr text) {
  if (!text.startsWith(FIRST_LINE)) return nullptr;
  kj::Vector<KeyAndName> entries;
  for (auto rest = text.slice(FIRST_LINE.size()); rest.size() > 0;) {
    auto tab = rest.findFirst('\t').orDefault(rest.size());
    auto end = rest.findFirst('\n').orDefault(rest.size());
    if (tab >= end || end == rest.size()) return nullptr;
    entries.add(
        KeyAndName{kj::heapString(rest.slice(0, tab)), kj::heapString(rest.slice(tab + 1, end))});
    rest = rest.slice(end + 1);
  }
  return entries.releaseAsArray();
}

}  // namespace

kj::String textOf(const ConvolutionProblem& s, Direction direction) {
  bool widens = direction == Direction::FORWARD && s.output != s.element;
  return kj::str(nameOf(direction), " ", nameOf(s.element),
      widens ? kj::str(" to ", nameOf(s.output)) : kj::String(), " ", s.images, " ", textOf(s.x),
      " to ", textOf(s.y), ", ", s.kernelHeight, "x", s.kernelWidth, " stride ", s.stride, " pad ",
      s.pad, s.tensorFloats ? ", tf32" : "", s.deterministic ? ", deterministic" : "");
}

PlanCache::PlanCache(kj::Own<const kj::Directory> folder): folder(kj::mv(folder)) {
  read();
}

kj::Maybe<kj::StringPtr> PlanCache::find(kj::StringPtr key) {
  if (names.find(key) == nullptr) read();
  return names.find(key).map([](const kj::String& name) -> kj::StringPtr { return name; });
}

void PlanCache::remember(kj::StringPtr key, kj::StringPtr name) {
  read();  // other processes may have written meanwhile
  put(kj::str(key), kj::str(name));
  auto thrown = kj::runCatchingExceptions([&]() { write(); });
  KJ_IF_MAYBE(cause, thrown) {
    configs::warn(kj::str("cannot write ", FILE_NAME, ": ", cause->getDescription(),
        "; the next run measures the CUDA plans again"));
  }
}

kj::Own<void> PlanCache::lockForMeasuring() const {
  class Lock {
  public:
    explicit Lock(int fd): fd(fd) {
      while (::flock(fd, LOCK_EX) != 0 && errno == EINTR) {
      }
    }
    ~Lock() noexcept(false) { ::flock(fd, LOCK_UN); }
    KJ_DISALLOW_COPY(Lock);

  private:
    const int fd;
  };
  KJ_IF_MAYBE(fd, folder->getFd()) return kj::heap<Lock>(*fd);
  return {};
}

void PlanCache::put(kj::String key, kj::String name) {
  names.upsert(kj::mv(key), kj::mv(name),
      [](kj::String& present, kj::String&& newer) { present = kj::mv(newer); });
}

void PlanCache::read() {
  KJ_IF_MAYBE(file, folder->tryOpenFile(kj::Path(FILE_NAME))) {
    KJ_IF_MAYBE(entries, entriesOf((*file)->readAllText())) {
      for (auto& entry: *entries) put(kj::mv(entry.key), kj::mv(entry.name));
    } else if (!wasDamaged) {
      wasDamaged = true;
      configs::warn(kj::str(FILE_NAME, " is damaged, so it is written again"));
    }
  }
}

void PlanCache::write() const {
  kj::Vector<kj::String> lines;
  for (auto& entry: names) lines.add(kj::str(entry.key, "\t", entry.value, "\n"));
  auto replacer =
      folder->replaceFile(kj::Path(FILE_NAME), kj::WriteMode::CREATE | kj::WriteMode::MODIFY);
  replacer->get().writeAll(kj::str(FIRST_LINE, kj::strArray(lines, "")));
  replacer->commit();
}

kj::Maybe<kj::Own<LibraryPlan>> fastest(kj::Array<kj::Own<LibraryPlan>> plans, Measure measure) {
  kj::Maybe<kj::Own<LibraryPlan>> best;
  double best_s = kj::inf();
  for (auto& plan: plans) {
    KJ_IF_MAYBE(took_s, measure(*plan)) {
      if (*took_s >= best_s) continue;
      best_s = *took_s;
      best = kj::mv(plan);
    }
  }
  return best;
}

}  // namespace nn::cuda
