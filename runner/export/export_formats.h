// runner/export/export_formats.h: the table of formats that networks are exported to, and writing
// their files.
#pragma once

#include "runner/export/exported_network.h"
#include "runner/export/onnx_model.h"
#include "runner/export/preprocessing.h"

namespace runner {

// A file that an export writes.
struct ExportedFile {
  kj::String path;
  kj::Array<kj::byte> bytes;
};

// A row of the table of formats.
struct ExportFormat {
  const char* name;
  const char* doc;
  bool hasOnnxOptions;  // whether OnnxOptions other than the default make sense
  // Returns why the file cannot be at `output`, as a sentence. Null if it can.
  kj::Maybe<kj::String> (*misfit)(kj::StringPtr output);
  // Returns all files. The last one is at `output`.
  kj::Array<ExportedFile> (*write)(const ExportedNetwork& network,
      const Preprocessing& preprocessing, OnnxOptions options, kj::StringPtr output);
};
extern const kj::ArrayPtr<const ExportFormat> EXPORT_FORMATS;

// Writes all files, and replaces existing ones. If a file cannot be written, replaces nothing and
// leaves nothing behind. Old and new files never coexist: at any moment, all are old, or the last
// ones are missing, or all are new. Throws with path, cause and what to do.
void writeExported(kj::ArrayPtr<const ExportedFile> files);

}  // namespace runner
