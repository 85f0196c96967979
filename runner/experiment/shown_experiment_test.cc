#include "runner/experiment/shown_experiment.h"

#include <doctest/doctest.h>

namespace runner {
namespace {

TEST_CASE("withoutSecrets: leaves out queries and passwords of addresses, and nothing else") {
  CHECK(withoutSecrets("name = \"a?b=c\"\n[data]\n"
                       "source = \"https://me:word@example.org/a.tar?sig=SECRET\\\"TAIL\"\n"
                       "validation_source = [\"http://example.org/b\", \"c\\\\\"]\n") ==
        "name = \"a?b=c\"\n[data]\n"
        "source = \"https://example.org/a.tar\"\n"
        "validation_source = [\"http://example.org/b\", \"c\\\\\"]\n");
  CHECK(withoutSecrets("") == "");
  CHECK(withoutSecrets("a = \"not closed") == "a = \"not closed");
  CHECK(withoutSecrets("a = \"\\") == "a = \"\\");
}

}  // namespace
}  // namespace runner
