// confusion.csv, and the part of a report about it.
#include "runner/logs/confusion_file.h"
#include "runner/report/class_report.h"
#include "tests/fuzz/fuzz.h"

namespace fuzz {

void feed(Bytes input) {
  auto cells = runner::parseConfusion(kj::str(input.asChars()), "confusion.csv");
  auto text = runner::confusionText(cells);
  must(runner::confusionText(runner::parseConfusion(text, "confusion.csv")) == text,
      "cells are read back as they are written");
  runner::classReport(cells);
}

}  // namespace fuzz
