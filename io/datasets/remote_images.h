// io/datasets/remote_images.h: the images of an image folder, if they are at an address.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include "io/data_config.h"
#include "io/datasets/fetch.h"
#include "io/datasets/sources.h"
#include "io/progress.h"

namespace io {

// The files at addresses that the images of a configuration come from: none, one, or two.
using RemoteFiles = kj::Array<RemoteFile>;

// Asks the servers about the files of `config`. Throws, naming the setting, if a file does not
// exist.
RemoteFiles lookUpFiles(const DataConfig& config, Progress& progress);

// Writes the servers' information about `files` to the cache. The folder of the cache must exist.
void keepFiles(kj::ArrayPtr<const RemoteFile> files);
// Returns the information that keepFiles() has written last about the files of `config`. Null if
// one of them has none.
kj::Maybe<RemoteFiles> keptFiles(const DataConfig& config);

// Returns a line that changes when the file at `address`, which is one of `files`, changes.
kj::String identityOf(kj::ArrayPtr<const RemoteFile> files, kj::StringPtr address);

// Downloads `files` into the existing folder `into`, each into the folder downloadFolder() in it.
// Complete files are kept, and partial ones are continued. Throws if the disk has no room for all
// of them.
void downloadFiles(const DataConfig& config, kj::ArrayPtr<const RemoteFile> files,
    kj::StringPtr into, Progress& progress);
// Returns a name that depends on the address and the version.
kj::String downloadFolder(const RemoteFile& file);
// Whether `into` has at least the first byte of one of `files`.
bool hasDownload(kj::ArrayPtr<const RemoteFile> files, kj::StringPtr into);
// Removes each of `files` that was downloaded completely, but whose archive cannot be listed to its
// end. Returns whether there was such a file. Does not find a damaged image in an archive. If
// `progress` throws, the file that is being listed stays.
bool removeDamaged(kj::ArrayPtr<const RemoteFile> files, kj::StringPtr into, Progress& progress);

// If `place.images` is the address of one of `files`, replaces it by the path of the download in
// `into`.
void useDownload(ImagePlace& place, kj::ArrayPtr<const RemoteFile> files, kj::StringPtr into);
// Returns `text` with the addresses in place of the paths of the downloads in `into`, which the
// user does not know.
kj::String withAddresses(
    kj::StringPtr text, kj::ArrayPtr<const RemoteFile> files, kj::StringPtr into);

}  // namespace io
