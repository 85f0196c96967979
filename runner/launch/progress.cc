#include "runner/launch/progress.h"

#include <kj/vector.h>

#include <cmath>

#include "configs/language/printable.h"
#include "runner/logs/verb_times.h"
#include "runner/system/output.h"
#include "runner/system/terminal.h"
#include "runner/text/fitted_text.h"
#include "runner/text/numbers.h"

namespace runner {
namespace {

// Fast enough to look alive, and slow enough to cost nothing even over a slow ssh connection.
constexpr kj::Duration REDRAW_INTERVAL = 50 * kj::MILLISECONDS;
constexpr kj::Duration PLAIN_INTERVAL = 10 * kj::SECONDS;

// Clear to the end of the line, and of the screen.
constexpr kj::StringPtr CLEAR_LINE = "\x1b[K"_kj;
constexpr kj::StringPtr CLEAR_BELOW = "\x1b[J"_kj;

// Moves the cursor from the last of `lines` lines to the start of the first.
kj::String toFirst(uint lines) {
  return lines > 1 ? kj::str("\r\x1b[", lines - 1, "A") : kj::str("\r");
}

void addEta(kj::Vector<kj::String>& parts, kj::Maybe<double> eta_s) {
  KJ_IF_MAYBE(eta, eta_s) {
    // Otherwise the speed is 0, or the estimate is a meaningless number of months.
    if (*eta >= 0 && *eta < 1e7) parts.add(kj::str("ETA ", durationText(*eta)));
  }
}

// Adds the run's position and its speed.
void addPlace(kj::Vector<kj::String>& parts, const Progress& progress) {
  if (progress.step == 0) {
    parts.add(kj::str("starting"));
    return;
  }
  parts.add(kj::str("epoch ", progress.epoch));
  if (progress.epochs > 0) parts.back() = kj::str(parts.back(), '/', progress.epochs);
  if (progress.validating) {
    parts.add(kj::str("validating"));
    return;
  }
  parts.add(kj::str("step ", progress.step, '/', progress.steps));
  auto speed = progress.stuck_s > 0 ? nullptr : progress.imagesPerS;
  KJ_IF_MAYBE(images_per_s, speed) {
    parts.add(kj::str(rateText(*images_per_s), " images/s"));
    if (progress.readShare >= READER_BOUND_MIN) {
      parts.back() =
          kj::str(parts.back(), " (reader-bound: ", figureText(100 * progress.readShare, 0), " %)");
    }
  }
}

}  // namespace

kj::String progressText(const Progress& progress) {
  kj::Vector<kj::String> parts;
  addPlace(parts, progress);
  if (progress.stuck_s > 0) {
    parts.add(
        kj::str("worker ", progress.stuckWorker, ": no progress for ", progress.stuck_s, " s"));
  }
  KJ_IF_MAYBE(loss, progress.loss) {
    parts.add(kj::str("loss ", figureText(*loss, 3)));
  }
  KJ_IF_MAYBE(accuracy, progress.accuracy) {
    parts.add(kj::str("accuracy ", figureText(*accuracy, 3)));
  }
  addEta(parts, progress.eta_s);
  return kj::strArray(parts, "  ");
}

kj::String progressText(kj::StringPtr what, uint64_t done, uint64_t total) {
  if (total == 0 && done == 0) return kj::str(what);
  if (total == 0) return kj::str(what, ": ", grouped(done));
  return kj::str(
      what, ": ", grouped(done), " of ", grouped(total), " (", done * 100 / total, " %)");
}

kj::String WorkProgress::text(kj::StringPtr what, uint64_t done, uint64_t total) {
  // A speed measured over a shorter time is unreliable.
  constexpr kj::Duration LEAST = 3 * kj::SECONDS;
  auto now = clock.now();
  if (part != what || done < first) {
    part = kj::str(what);
    begun = now;
    first = done;
  }
  kj::Vector<kj::String> parts;
  parts.add(progressText(what, done, total));
  if (now - begun >= LEAST && done > first && done < total) {
    double spent_s = double((now - begun) / kj::MILLISECONDS) / 1000;
    addEta(parts, spent_s * double(total - done) / double(done - first));
  }
  return kj::strArray(parts, "  ");
}

kj::String progressText(uint done, uint runs, uint failed, kj::Maybe<double> eta_s) {
  kj::Vector<kj::String> parts;
  parts.add(kj::str("sweep ", done, '/', runs, " done"));
  if (failed > 0) parts.add(kj::str(failed, " failed"));
  addEta(parts, eta_s);
  return kj::strArray(parts, "  ");
}

ProgressLine::ProgressLine(int fd, const kj::MonotonicClock& clock)
    : fd(fd), clock(clock), inPlace(canMoveCursor(fd)) {}

ProgressLine::~ProgressLine() noexcept(false) {
  clear();
}

void ProgressLine::show(kj::StringPtr text) {
  auto one = kj::str(text);
  show(kj::arrayPtr(&one, 1));
}

void ProgressLine::show(kj::ArrayPtr<const kj::String> texts) {
  auto now = clock.now();
  KJ_IF_MAYBE(last, written) {
    auto interval = inPlace ? REDRAW_INTERVAL : PLAIN_INTERVAL;
    if ((visible > 0 || !inPlace) && now - *last < interval) return;
  }
  if (isOutputBehind()) return;
  written = now;
  if (!inPlace) return writeLineQuietly(fd, texts.back());

  auto size = terminalSize(fd).orDefault(TerminalSize());
  size_t room = kj::min(texts.size(), size_t(size.rows));
  kj::Vector<kj::String> lines;
  for (auto& text: texts) {
    bool last = &text == &texts.back();
    if (!last && lines.size() + 1 == room) continue;
    // A control character would move the cursor off the line. One column stays free. After a full
    // line, some terminals clear the last character, and others wrap.
    lines.add(kj::str(CLEAR_LINE, fitted(configs::withoutControls(text, ' '), size.columns - 1)));
  }
  // All in one write, so that nobody sees the cleared lines.
  writeQuietly(fd, kj::str(toFirst(visible), kj::strArray(lines, "\r\n"),
                       visible > lines.size() ? CLEAR_BELOW : ""_kj));
  visible = lines.size();
}

void ProgressLine::clear() {
  if (visible == 0) return;
  writeQuietly(fd, kj::str(toFirst(visible), visible > 1 ? CLEAR_BELOW : CLEAR_LINE));
  visible = 0;
}

}  // namespace runner
