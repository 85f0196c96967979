// runner/roles/address_file.h: the file `address` of a run's folder. Roles on several hosts that
// share the folder find their coordinator by it.
#pragma once

#include <kj/string.h>

#include "rpc/wire/secret.h"
#include "runner/logs/run_folder.h"

namespace runner {

// Where a coordinator is.
struct CoordinatorPlace {
  kj::String address;
  rpc::Secret secret;  // of the job, if the coordinator has drawn one
};

// The file, as long as this object lives. Only its owner may read it, because it may hold the
// secret.
class AddressFile {
public:
  // Writes the file. It appears whole, and replaces one that a killed coordinator has left. Throws
  // with path, cause and way out. `folder` must outlive this object.
  AddressFile(const RunFolder& folder, const CoordinatorPlace& place);
  // Removes it.
  ~AddressFile() noexcept;
  KJ_DISALLOW_COPY(AddressFile);

private:
  const RunFolder& folder;
};

// Returns what the file says. Null if there is none yet. Throws if other users may read it, or if
// it holds something else.
kj::Maybe<CoordinatorPlace> readAddressFile(const RunFolder& folder);

}  // namespace runner
