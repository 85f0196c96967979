#include "runner/text/html.h"

#include <doctest/doctest.h>

namespace runner {
namespace {

TEST_CASE(
    "escaped: characters with a meaning in HTML become entities, and control characters are left "
    "out") {
  CHECK(escaped("<a href=\"x\">&'"_kj) == "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
  CHECK(escaped("a\x01\x1b[1m\tb\n\x7f"_kj) == "a[1m\tb\n");
  CHECK(escaped("2 × 2"_kj) == "2 × 2");
}

TEST_CASE("htmlOf: escapes texts, and marks columns of numbers") {
  TextTable table{kj::arr(kj::str("run"), kj::str("accuracy"), kj::str("said")),
      kj::arr(kj::arr(kj::str("a|b"), kj::str("0.5"), kj::str("")),
          kj::arr(kj::str("\"x\""), kj::str(""), kj::str("<none>"))),
      nullptr};
  CHECK(htmlOf(table) ==
        "<div class=\"box\"><table>\n"
        "<thead><tr><th>run</th><th class=\"n\">accuracy</th><th>said</th></tr>\n</thead>\n"
        "<tbody>\n"
        "<tr><td>a|b</td><td class=\"n\">0.5</td><td></td></tr>\n"
        "<tr><td>&quot;x&quot;</td><td class=\"n\"></td><td>&lt;none&gt;</td></tr>\n"
        "</tbody>\n</table></div>\n");
}

}  // namespace
}  // namespace runner
