#include "runner/experiment/shown_experiment.h"

#include <kj/vector.h>

#include "io/datasets/fetch.h"

namespace runner {

kj::String withoutSecrets(kj::StringPtr resolved) {
  kj::Vector<char> shown;
  for (size_t at = 0; at < resolved.size();) {
    shown.add(resolved[at]);
    if (resolved[at++] != '"') continue;
    size_t end = at;
    while (end < resolved.size() && resolved[end] != '"') end += resolved[end] == '\\' ? 2 : 1;
    end = kj::min(end, resolved.size());
    auto text = kj::heapString(resolved.slice(at, end));
    shown.addAll(io::isAddress(text) ? io::shownAddress(text) : kj::mv(text));
    // The quote that ends the string.
    if (end < resolved.size()) shown.add(resolved[end++]);
    at = end;
  }
  return kj::heapString(shown);
}

kj::String withoutSecretsOfValue(kj::StringPtr value) {
  return io::isAddress(value) ? io::shownAddress(value) : withoutSecrets(value);
}

}  // namespace runner
