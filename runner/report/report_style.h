// runner/report/report_style.h: the style sheet of report.html.
#pragma once

#include <kj/string.h>

namespace runner {

// Eight colours of series (c0 …) and five of verbs (p0 …), each for a light and a dark page. Text
// on p<n> has class on<n>.
constexpr kj::StringPtr REPORT_STYLE = R"(:root {
  color-scheme: light dark;
  --page: #fff; --ink: #1b1f24; --quiet: #59636e; --line: #d5dae0; --band: #f5f7f9;
  --good: #1a7f37; --bad: #b3261e;
  --c0: #0b5cad; --c1: #b5470b; --c2: #1a7f37; --c3: #8a2be2;
  --c4: #0e7c86; --c5: #b3245f; --c6: #7a6200; --c7: #4c566a;
  --p0: #9fb8d0; --p1: #0b5cad; --p2: #17375e; --p3: #e0a458; --p4: #8c5a12;
  --on0: #14202c; --on1: #fff; --on2: #fff; --on3: #2a1a00; --on4: #fff;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171b; --ink: #e4e7eb; --quiet: #9aa4af; --line: #333a42; --band: #1b1f25;
    --good: #56d364; --bad: #ff8b82;
    --c0: #6cb2ff; --c1: #ff9f5a; --c2: #62d27a; --c3: #c9a0ff;
    --c4: #4fd1d9; --c5: #ff8fb8; --c6: #e3c84a; --c7: #b4bfcc;
    --p0: #41556b; --p1: #3b82c4; --p2: #9cc9f5; --p3: #8a5f1e; --p4: #e0a458;
    --on0: #fff; --on1: #fff; --on2: #0c1b2b; --on3: #fff; --on4: #2a1a00;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 20px 16px 40px; max-width: 1340px; background: var(--page);
  color: var(--ink); font: 14px/1.45 system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif;
}
h1 { margin: 0; font-size: 21px; line-height: 1.25; overflow-wrap: anywhere; }
h2 {
  margin: 26px 0 8px; padding-bottom: 3px; border-bottom: 1px solid var(--line);
  font-size: 15px;
}
p { margin: 6px 0; max-width: 90ch; overflow-wrap: anywhere; }
.verdict { max-width: none; font-size: 15px; }
.quiet, figcaption, .legend { color: var(--quiet); }
.good { color: var(--good); font-weight: 600; }
.bad { color: var(--bad); font-weight: 600; }
.box { overflow-x: auto; margin: 6px 0 10px; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 12px 3px 0; text-align: left; white-space: nowrap; }
th { color: var(--quiet); font-weight: 600; font-size: 12.5px; }
thead tr { border-bottom: 1px solid var(--line); }
tbody tr + tr { border-top: 1px solid var(--band); }
.n { text-align: right; }
ul { margin: 6px 0; padding-left: 18px; }
.charts {
  display: grid; gap: 18px 26px;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 350px), 1fr));
}
figure { margin: 0; max-width: 620px; min-width: 0; }
figcaption { margin-bottom: 4px; font-weight: 600; }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--quiet); font-size: 12px; font-variant-numeric: tabular-nums; }
.bars { max-width: 540px; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 16px; margin: 4px 0; padding: 0; }
.legend { list-style: none; font-size: 12.5px; }
.legend li { display: flex; align-items: center; gap: 6px; overflow-wrap: anywhere; }
.legend svg { flex: none; width: 34px; }
.grid { stroke: var(--line); stroke-width: 0.7; fill: none; }
.axis { stroke: var(--quiet); stroke-width: 0.9; fill: none; }
.line { stroke: currentColor; stroke-width: 1.7; fill: none; stroke-linejoin: round; }
.mark { fill: currentColor; }
.hollow { fill: var(--page); stroke: currentColor; stroke-width: 1.5; }
.c0 { color: var(--c0); } .c1 { color: var(--c1); } .c2 { color: var(--c2); }
.c3 { color: var(--c3); } .c4 { color: var(--c4); } .c5 { color: var(--c5); }
.c6 { color: var(--c6); } .c7 { color: var(--c7); }
.p0 { fill: var(--p0); } .p1 { fill: var(--p1); } .p2 { fill: var(--p2); }
.p3 { fill: var(--p3); } .p4 { fill: var(--p4); }
.right { fill: var(--c0); } .wrong { fill: var(--c1); }
svg .weak { fill: var(--ink); } svg .strong { fill: var(--page); }
.bars .on0 { fill: var(--on0); } .bars .on1 { fill: var(--on1); } .bars .on2 { fill: var(--on2); }
.bars .on3 { fill: var(--on3); } .bars .on4 { fill: var(--on4); }
details { margin: 6px 0; }
summary { cursor: pointer; overflow-wrap: anywhere; }
pre {
  margin: 6px 0; padding: 10px 12px; overflow-x: auto; background: var(--band);
  font: 12.5px/1.4 ui-monospace, "SF Mono", Menlo, Consolas, monospace;
}
@media print { .box, pre { overflow: visible; } }
)"_kj;

}  // namespace runner
