#include "runner/export/torch_names.h"

#include <kj/encoding.h>
#include <kj/map.h>
#include <kj/vector.h>

namespace runner {

namespace {

// Names that are taken: Python's keywords, attributes of nn.Module, and names in the script itself.
constexpr kj::StringPtr TAKEN[] = {"False"_kj, "None"_kj, "True"_kj, "and"_kj, "as"_kj, "assert"_kj,
    "async"_kj, "await"_kj, "break"_kj, "class"_kj, "continue"_kj, "def"_kj, "del"_kj, "elif"_kj,
    "else"_kj, "except"_kj, "finally"_kj, "for"_kj, "from"_kj, "global"_kj, "if"_kj, "import"_kj,
    "in"_kj, "is"_kj, "lambda"_kj, "nonlocal"_kj, "not"_kj, "or"_kj, "pass"_kj, "raise"_kj,
    "return"_kj, "try"_kj, "while"_kj, "with"_kj, "yield"_kj,
    //
    "T_destination"_kj, "add_module"_kj, "apply"_kj, "bfloat16"_kj, "buffers"_kj,
    "call_super_init"_kj, "children"_kj, "compile"_kj, "cpu"_kj, "cuda"_kj, "double"_kj,
    "dump_patches"_kj, "eval"_kj, "extra_repr"_kj, "float"_kj, "forward"_kj, "get_buffer"_kj,
    "get_extra_state"_kj, "get_parameter"_kj, "get_submodule"_kj, "half"_kj, "ipu"_kj,
    "load_state_dict"_kj, "modules"_kj, "mtia"_kj, "named_buffers"_kj, "named_children"_kj,
    "named_modules"_kj, "named_parameters"_kj, "parameters"_kj, "register_backward_hook"_kj,
    "register_buffer"_kj, "register_forward_hook"_kj, "register_forward_pre_hook"_kj,
    "register_full_backward_hook"_kj, "register_full_backward_pre_hook"_kj,
    "register_load_state_dict_post_hook"_kj, "register_load_state_dict_pre_hook"_kj,
    "register_module"_kj, "register_parameter"_kj, "register_state_dict_post_hook"_kj,
    "register_state_dict_pre_hook"_kj, "requires_grad_"_kj, "set_extra_state"_kj,
    "set_submodule"_kj, "share_memory"_kj, "state_dict"_kj, "to"_kj, "to_empty"_kj, "train"_kj,
    "training"_kj, "type"_kj, "xpu"_kj, "zero_grad"_kj,
    //
    "F"_kj, "images"_kj, "nn"_kj, "self"_kj, "super"_kj, "torch"_kj, "x"_kj};

bool isLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool isDigit(char c) {
  return c >= '0' && c <= '9';
}

// Returns `name` with underscores in place of characters that an identifier cannot have.
kj::String identifierOf(kj::StringPtr name) {
  // nn.Module has attributes that begin with an underscore.
  auto result = kj::str(isLetter(name[0]) ? "" : "layer_", name);
  for (char& c: result) {
    if (!isLetter(c) && !isDigit(c)) c = '_';
  }
  return result;
}

}  // namespace

kj::Array<kj::String> torchNames(const nn::Graph& graph) {
  kj::HashSet<kj::String> taken;
  for (auto name: TAKEN) taken.insert(kj::str(name));
  return KJ_MAP(node, graph.nodes) {
    auto wanted = identifierOf(node.name);
    auto name = kj::str(wanted);
    for (kj::uint number = 2; taken.contains(name); ++number) name = kj::str(wanted, "_", number);
    taken.insert(kj::str(name));
    return name;
  };
}

kj::String pythonText(kj::StringPtr text) {
  kj::Vector<kj::String> parts;
  for (char c: text) {
    if (c == '"' || c == '\\') {
      parts.add(kj::str("\\", c));
    } else if (kj::byte(c) < ' ' || c == 0x7f) {
      kj::byte code = kj::byte(c);
      parts.add(kj::str("\\x", kj::encodeHex(kj::arrayPtr(&code, 1))));
    } else {
      parts.add(kj::str(c));
    }
  }
  return kj::str("\"", kj::strArray(parts, ""), "\"");
}

}  // namespace runner
