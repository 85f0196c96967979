// runner/text/yaml_text.h: texts as values of YAML.
#pragma once

#include <kj/string.h>

namespace runner {

// Returns `text` as a YAML value on one line that every version of YAML reads as a string with just
// these characters.
kj::String yamlText(kj::StringPtr text);

// Returns `text`, whose last line has a newline, as a block that keeps its lines (`|`), each
// indented by `indent` spaces. It must follow `key: `. Throws if a YAML block cannot have a
// character of the text, or if the text begins with a space.
kj::String yamlBlock(kj::StringPtr text, kj::uint indent);

}  // namespace runner
