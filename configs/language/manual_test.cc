#include "configs/language/manual.h"

#include <doctest/doctest.h>

#include "configs/language/test_experiment.h"

namespace configs {
namespace {

TEST_CASE("printReference: one heading per section, one row per key, a recursive table once") {
  CHECK(shown(printReference("Reference", "How to write it.", readExperiment)) == R"(# Reference

How to write it.

| key | type | default | meaning |
| --- | --- | --- | --- |
| `name` | string | required | What the run is called. |

## `[data]`

The records.

| key | type | default | meaning |
| --- | --- | --- | --- |
| `dataset` | word | required | Which records.<br>`raw`: Pixels as they are.<br>`jpeg`: Compressed. |
| `encoding` | word | `"jpeg"` | How pixels are kept.<br>`raw`: Pixels as they are.<br>`jpeg`: Compressed. |
| `batch_size` | integer ≥ 1 | `128` | Images per step. |
| `source` | string | none | Where they lie. |
| `mean` | list, each number 0 … 255 | `[]` | Subtracted, per channel. |

## `[model]`

The network.

| key | type | default | meaning |
| --- | --- | --- | --- |
| `layers` | list of tables, see `[[model.layers]]` | `[]` | From input to output. |

### `[[model.layers]]`

`kind` is one of `dense`, `relu`, `repeat`, `branches`.

#### `kind = "dense"`

A weighted sum.

| key | type | default | meaning |
| --- | --- | --- | --- |
| `units` | integer ≥ 1 | required | Outputs. |

#### `kind = "relu"`

Negative values become 0.

#### `kind = "repeat"`

The layers, several times.

| key | type | default | meaning |
| --- | --- | --- | --- |
| `times` | integer 1 … 9 | `2` | How often. |
| `layers` | list of tables, see `[[model.layers]]` | `[]` | What is repeated. |

#### `kind = "branches"`

Lists of layers side by side.

| key | type | default | meaning |
| --- | --- | --- | --- |
| `branches` | list of lists of tables, see `[[model.layers]]` | `[]` | One list per branch. |

## `[train]`

How it learns.

| key | type | default | meaning |
| --- | --- | --- | --- |
| `optimizer` | table, see `[train.optimizer]` | `{ kind = "free" }` | The update rule. |
| `other` | table, see `[train.optimizer]` | none | A second one. |

### `[train.optimizer]`

`kind` is one of `sgd`, `free`.

#### `kind = "sgd"`

Plain descent.

| key | type | default | meaning |
| --- | --- | --- | --- |
| `learning_rate` | number > 0 | required | Length of a step. |
| `momentum` | number ≥ 0 and < 1 | `0.9` | Of the last step. |

#### `kind = "free"`

No rate | at all.

## `[log]`

What is printed.

| key | type | default | meaning |
| --- | --- | --- | --- |
| `every` | list, each integer ≥ 1 | `[]` | Steps. |
| `hosts` | list of strings | `["localhost"]` | Who prints. |
| `on` | boolean | `true` | Whether anything is. |
)");
}

TEST_CASE(
    "printReference: its reader gives defaults, and the lowest number or first row without one") {
  bool wasRead = false;
  printReference("x", "", [&](Reader& reader) {
    CHECK(reader.isManual());
    CHECK(!reader.has("a"));
    CHECK(reader.integer("a", "", {.atLeast = 3}) == 3);
    CHECK(reader.real("b", "", {.atLeast = -1}) == -1);
    CHECK(reader.real("c", "", {.above = 0, .atMost = 1}) == 0.5);
    CHECK(reader.text("d", "") == "");
    CHECK(&reader.choose("e", "", ENCODINGS) == &ENCODINGS[0]);
    CHECK(&reader.choose("e", "", ENCODINGS, "jpeg") == &ENCODINGS[1]);
    CHECK(reader.kind("f", "", RATES)->momentum == 0.9);
    CHECK(reader.kinds("g", "", LAYERS).size() == 0);
    CHECK(reader.maybeKind("h", "", RATES) == nullptr);
    CHECK(reader.maybeSection("i", "", readData) == nullptr);
    CHECK(reader.section("j", "", readData).batchSize == 128);
    reader.error("a", "nobody hears this");
    wasRead = true;
    return 0;
  });
  CHECK(wasRead);
}

}  // namespace
}  // namespace configs
