// Checks that docs/formats/events.md documents everything that job.capnp declares.
#include <capnp/schema.h>
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <string.h>

#include "runner/logs/job.capnp.h"
#include "runner/system/files.h"

namespace runner {

namespace {

// The number of $Json.name in capnp/compat/json.capnp.
constexpr uint64_t JSON_NAME = 0xfa5b1fd61c2e7c3d;

kj::StringPtr jsonName(capnp::StructSchema::Field field) {
  for (auto annotation: field.getProto().getAnnotations()) {
    if (annotation.getId() == JSON_NAME) return annotation.getValue().getText();
  }
  return field.getProto().getName();
}

// Adds the names of all fields of `schema`, including those inside structs and lists of structs.
void addNames(capnp::StructSchema schema, kj::Vector<kj::StringPtr>& names) {
  for (auto field: schema.getFields()) {
    names.add(jsonName(field));
    auto type = field.getType();
    while (type.isList()) type = type.asList().getElementType();
    if (type.isStruct()) addNames(type.asStruct(), names);
  }
}

}  // namespace

TEST_CASE("events.md: names every event and every field that job.capnp declares") {
  auto page = readWhole("docs/formats/events.md", 1 << 20);
  kj::Vector<kj::StringPtr> names;
  addNames(capnp::Schema::from<Event>(), names);
  CHECK(names.size() > 80);
  for (auto name: names) {
    INFO(name.cStr());
    CHECK(strstr(page.cStr(), kj::str('`', name, '`').cStr()) != nullptr);
  }
}

}  // namespace runner
