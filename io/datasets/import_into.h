// io/datasets/import_into.h: imports a data set into a folder, which appears when it is complete.
#pragma once

#include <kj/array.h>
#include <kj/function.h>
#include <kj/string.h>

#include "io/data_config.h"
#include "io/datasets/fetch.h"
#include "io/left_out.h"
#include "io/progress.h"

namespace io {

// Whether `folder` has a file of this name.
bool hasFile(kj::StringPtr folder, kj::StringPtr name);

// Makes the folder `path` and those above it.
void makeFolders(const DataConfig& config, kj::StringPtr path);

// Imports `records`, a name from cacheName(), into a folder beside `into`, calls `complete` with
// that folder, and then moves it to `into`. Replaces a folder at `into` in which a file was
// deleted. A process that reads that folder keeps its open files. Throws if another process does
// the same.
//
// With `keepsIfInterrupted`, the imported part of an image folder stays for the next call if
// `progress` throws or the disk is full. If the import fails, its downloads of `remote` stay,
// except for damaged archives.
void importInto(const DataConfig& config, kj::ArrayPtr<const RemoteFile> remote,
    kj::StringPtr records, kj::StringPtr into, bool keepsIfInterrupted, Progress& progress,
    Warn& warn, kj::FunctionParam<void(kj::StringPtr part)> complete);

// The ending of the file, beside a folder of the cache, whose lock an import into the folder holds.
constexpr kj::StringPtr LOCK_ENDING = ".lock"_kj;
// Whether the file `fd` is still the one at `path`.
bool isOpenedAt(int fd, kj::StringPtr path);
// Removes the file `lock`, whose lock the caller holds, if an import has left nothing else. Another
// process that waits for this lock must then open the file again: see isOpenedAt().
void removeLock(kj::StringPtr lock);

// Removes the files of killed imports from `cache`, for example downloads after Ctrl-C. Keeps the
// folders of imports that still run, whose locks their processes hold, and the folder `own`, whose
// lock the caller holds. If an import of `remote` with other settings has left downloads, their
// folder becomes that of `own`.
void removeUnfinished(
    kj::StringPtr cache, kj::StringPtr own, kj::ArrayPtr<const RemoteFile> remote);

// Whether this process is writing an import. If the process ends meanwhile, it leaves a folder,
// which the next import removes or continues. If `progress` throws instead, the folder is removed
// immediately, unless it holds a download. Signal handlers may call this function.
bool isImporting();

// Returns sentences about everything that the import into `folder` left out, as Dataset::leftOut()
// does.
kj::Array<kj::String> readLeftOut(kj::StringPtr folder);

}  // namespace io
