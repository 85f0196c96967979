// io/datasets/fetch.h: downloads files, with progress.
#pragma once

#include <kj/common.h>
#include <kj/string.h>
#include <kj/time.h>

#include <cstdint>

#include "io/progress.h"

namespace io {

// Whether `source` is an address rather than a path.
bool isAddress(kj::StringPtr source);
// Returns `address` as messages show it: without its query and its password, which may be secrets.
kj::String shownAddress(kj::StringPtr address);
// Returns the name of the file at `address`, without the query. Empty if `address` names no file.
kj::String fileNameOf(kj::StringPtr address);

// Downloads `address` (http, https, file; by libcurl, following redirections) into the new file
// `path`. Throws, and leaves no file, if there is nothing at the address, if the server sends more
// than `bytesMax` bytes, or if it sends nothing for a minute.
void download(kj::StringPtr address, kj::StringPtr path, uint64_t bytesMax, Progress& progress);

// A server's information about the file at an address.
struct RemoteFile {
  kj::String address;
  // The file's ETag, or else the time of its last change, as the server writes it. A different text
  // means a different file. Empty if the server sends neither.
  kj::String version;
  kj::Maybe<uint64_t> size_bytes;  // null if the server does not send it
};

// Asks for the file at `address`, without downloading it. Throws if there is no file.
RemoteFile lookUp(kj::StringPtr address, Progress& progress);

// How often, and after which pauses, a download that broke off is tried again.
struct Patience {
  // The download ends after this many failed attempts in a row. If a failed attempt has brought new
  // bytes, it counts as the first one.
  kj::uint attempts = 7;
  kj::Duration pause =
      1 * kj::SECONDS;  // before the second attempt; each later one is twice as long
};

// Downloads `file` into the file `path`, with its beginning in `path`.part until it is complete. An
// existing `path`.part must be the beginning of the same version. The download continues it if the
// server can send a part of a file, and begins again otherwise. Does the same after a transfer
// broke off. Throws if that happens too often, if the server refuses, or if it has another version.
// `path`.part then stays, unless it is empty.
void download(
    const RemoteFile& file, kj::StringPtr path, Progress& progress, Patience patience = {});
// Returns how many bytes of the download into `path` have been stored.
uint64_t downloadedBytes(kj::StringPtr path);

}  // namespace io
