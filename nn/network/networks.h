// nn/network/networks.h: networks that have a name.
#pragma once

#include <kj/array.h>

#include "nn/network/layers.h"

namespace nn {

// A row of the table of networks.
struct Network {
  const char* name;
  const char* doc;
  // Returns its layers, which end with `classes` values. Misfits are reported at `span`, where the
  // file names the network.
  kj::Array<Layer> (*layers)(uint classes, configs::Span span);
  uint channels = 0;  // of the images that it accepts; 0: any
};
extern const kj::ArrayPtr<const Network> NETWORKS;

}  // namespace nn
