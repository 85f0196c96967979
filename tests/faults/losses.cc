#include "tests/faults/losses.h"

#include <dirent.h>
#include <kj/debug.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <string_view>

#include "tests/text.h"

namespace tests {

namespace {

constexpr kj::StringPtr AGAIN = "All roles are started again"_kj;
constexpr kj::StringPtr COMPRESSED[] = {"kvstore.compression={kind='2bit',threshold=0.01}"_kj};
constexpr kj::ArrayPtr<const kj::StringPtr> VARIANTS[] = {nullptr, nullptr, COMPRESSED};

constexpr int PAUSE_MS = 5;

// Returns the number after the last `mark` in `text`. 0 if there is none.
double numberAfterLast(std::string_view text, std::string_view mark) {
  auto at = text.rfind(mark);
  return at == text.npos ? 0 : ::atof(text.data() + at + mark.size());
}

// Whether a checkpoint of the run is being written: its folder has no manifest yet.
bool isSaving(kj::StringPtr folder) {
  auto path = kj::str(folder, "/checkpoints");
  DIR* all = ::opendir(path.cStr());
  if (all == nullptr) return false;
  KJ_DEFER(::closedir(all));
  while (dirent* each = ::readdir(all)) {
    if (!kj::StringPtr(each->d_name).startsWith("step-")) continue;
    auto manifest = kj::str(path, "/", each->d_name, "/manifest.json");
    if (::access(manifest.cStr(), F_OK) != 0) return true;
  }
  return false;
}

LossPhase phaseOf(kj::StringPtr folder, kj::StringPtr events) {
  if (!contains(events, "\"begun\"")) return START_UP;
  if (contains(events, "\"finished\"")) return END;
  if (contains(events, "\"ended\"")) return VALIDATION;
  return isSaving(folder) ? CHECKPOINT : TRAINING;
}

void printTimes(
    const char* name, kj::ArrayPtr<const LossCost> costs, double (*of)(const LossCost&)) {
  if (costs.size() == 0) return;
  auto seconds = KJ_MAP(cost, costs) {
    return of(cost);
  };
  std::sort(seconds.begin(), seconds.end());
  ::printf("%s: median %.2f s, worst %.2f s\n", name, seconds[seconds.size() / 2], seconds.back());
}

}  // namespace

kj::String SmallJob::difference(const Ended& ended, kj::StringPtr folder) const {
  kj::Vector<kj::String> found;
  if (ended.exitCode != 0) found.add(kj::str("exit code ", ended.exitCode));
  if (!contains(ended.output, weightsSha256)) found.add(kj::str("other weights"));
  auto lines = countOf(readFile(kj::str(folder, "/log.txt")), "\n");
  if (lines != logLines) found.add(kj::str(lines, " lines in log.txt, not ", logLines));
  for (auto& left: processesWith(folder)) found.add(kj::str("still runs: ", left.commandLine));
  if (found.empty()) return kj::str();
  return kj::str(kj::strArray(found, "; "), "\n", ended.errors);
}

kj::Array<SmallJob> trainSmallJobs() {
  return KJ_MAP(settings, VARIANTS) {
    auto begin = std::chrono::steady_clock::now();
    auto trained = train(SMALL_JOB, settings);
    std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    auto lines = countOf(readFile(kj::str(trained.folder, "/log.txt")), "\n");
    return SmallJob{settings, kj::mv(trained.weightsSha256), lines, taken.count()};
  };
}

uint runsOr(uint otherwise) {
  auto wanted = ::getenv("RUNS");
  return wanted == nullptr ? otherwise : kj::StringPtr(wanted).parseAs<uint>();
}

kj::Array<double> momentsWithin(double seconds, uint count, std::mt19937& dice) {
  auto moments = kj::heapArray<double>(count);
  for (auto& moment: moments) moment = seconds * (dice() % 10000) / 10000;
  std::sort(moments.begin(), moments.end());
  return moments;
}

uint LossFigures::count() const {
  return std::accumulate(std::begin(losses), std::end(losses), 0u);
}

void LossFigures::add(const LossFigures& other) {
  for (uint phase = 0; phase < LOSS_PHASES; phase++) losses[phase] += other.losses[phase];
  tooLate += other.tooLate;
  costs.addAll(other.costs);
}

void LossFigures::print() const {
  constexpr const char* NAMES[] = {"start-up", "training", "checkpoint", "validation", "end"};
  ::printf("losses:");
  for (uint phase = 0; phase < LOSS_PHASES; phase++) {
    ::printf(" %s %u,", NAMES[phase], losses[phase]);
  }
  ::printf(" no role ran %u\nof %zu of them:\n", tooLate, costs.size());
  printTimes("detect", costs, [](const LossCost& cost) { return cost.detect_s; });
  printTimes("restart", costs, [](const LossCost& cost) { return cost.restart_s; });
  printTimes("replay", costs, [](const LossCost& cost) { return cost.replay_s; });
  printTimes("in all", costs, [](const LossCost& cost) { return cost.total_s(); });
}

double LossWatch::now_s() {
  std::chrono::duration<double> since = std::chrono::system_clock::now().time_since_epoch();
  return since.count();
}

kj::String LossWatch::events() const {
  kj::String text;
  // The run may not have the file yet.
  kj::runCatchingExceptions([&]() { text = readFile(kj::str(folder, "/events.jsonl")); });
  return text;
}

void LossWatch::lose() {
  figures.losses[phaseOf(folder, events())]++;
  waiting = FOR_NOTICE;
  lost_s = now_s();
}

void LossWatch::notice() {
  if (waiting != FOR_NOTICE) return;
  waiting = FOR_CHECKPOINT;
  noticed_s = now_s();
  // Lines that the roles wrote before the loss may arrive after it.
  stepLost = step;
}

void LossWatch::look(Command& command) {
  // Reads the available output.
  command.waitForOutput("\n\n\n", 0);
  auto output = command.output();
  std::string_view lines(output.begin(), output.size());
  step = kj::max(step, uint64_t(numberAfterLast(lines, "Node[0] Epoch[0] Batch [")));
  auto said = countOf(command.errors(), AGAIN);
  if (said > notices) notice();
  notices = said;
  if (waiting == FOR_CHECKPOINT) {
    auto text = events();
    std::string_view all(text.begin(), text.size());
    // A run without a checkpoint begins again.
    auto at = all.rfind("\"continued\"");
    if (at == all.npos) at = all.rfind("\"started\"");
    if (at == all.npos) return;
    restarted_s = numberAfterLast(all.substr(0, at), "\"time_s\":");
    if (restarted_s > noticed_s) waiting = FOR_STEP;
  }
  if (waiting == FOR_STEP && step > stepLost) {
    figures.costs.add(LossCost{noticed_s - lost_s, restarted_s - noticed_s, now_s() - restarted_s});
    waiting = FOR_NOTHING;
  }
}

bool LossWatch::lookFor(Command& command, double seconds) {
  for (double end_s = now_s() + seconds; now_s() < end_s;) {
    look(command);
    if (command.hasEnded()) return false;
    ::poll(nullptr, 0, PAUSE_MS);
  }
  return !command.hasEnded();
}

}  // namespace tests
