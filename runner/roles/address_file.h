// runner/roles/address_file.h: the file `address` of a run's folder. Roles on several hosts that
// share the folder find their coordinator by it.
#pragma once

#include <kj/string.h>

#include "rpc/wire/secret.h"
#include "runner/logs/run_folder.h"

namespace runner {

// How to reach a coordinator.
struct CoordinatorPlace {
  kj::String address;
  rpc::Secret secret;  // the job's secret, if the coordinator has drawn one
};

// The file, as long as this object lives. Only its owner may read it, because it may hold the
// secret.
class AddressFile {
public:
  // Writes the file atomically. Replaces a file that a killed coordinator has left. Throws with
  // path, cause and what to do. `folder` must outlive this object.
  AddressFile(const RunFolder& folder, const CoordinatorPlace& place);
  // Removes it.
  ~AddressFile() noexcept;
  KJ_DISALLOW_COPY(AddressFile);

private:
  const RunFolder& folder;
};

// Reads the file. Null if it does not exist yet. Throws if other users may read it, or if its
// content is invalid.
kj::Maybe<CoordinatorPlace> readAddressFile(const RunFolder& folder);

}  // namespace runner
