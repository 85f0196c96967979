// nn/network/networks.h: networks that have a name.
#pragma once

#include <kj/array.h>

#include "nn/network/layers.h"

namespace nn {

// A row of the table of networks.
struct Network {
  const char* name;
  const char* doc;
  // Its layers, ending with `classes` values. `span` is where it was named: misfits are reported
  // there.
  kj::Array<Layer> (*layers)(uint classes, configs::Span span);
  uint channels = 0;  // of the images that it is for; 0: any
};
extern const kj::ArrayPtr<const Network> NETWORKS;

}  // namespace nn
