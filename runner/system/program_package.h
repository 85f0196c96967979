// runner/system/program_package.h: this program with its libraries, as a file for another machine.
#pragma once

#include <kj/array.h>
#include <kj/function.h>
#include <kj/string.h>

namespace runner {

// The files that this program needs on a machine that has only glibc, as a tar: `runner`, and each
// shared library in `lib/`, where the program looks first. Leaves out the libraries of glibc, which
// must be those of the machine, and of NVIDIA, which are opened at run time. See tools/dist.sh.
class ProgramPackage {
public:
  // Finds the files. Throws if one cannot be read.
  ProgramPackage();
  KJ_DISALLOW_COPY(ProgramPackage);

  // Returns the sha256 of the tar, in hexadecimal. The same files give the same tar.
  kj::String sha256() const;
  // Returns the tar.
  kj::Array<kj::byte> bytes() const;
  // Whether `folder` has the files as tar has unpacked them, unchanged since. Takes less than a
  // millisecond, because it looks at the times of the files only.
  bool isUnchangedIn(kj::StringPtr folder) const;

private:
  struct File {
    kj::String name;  // in the tar
    kj::String path;  // on this machine
  };
  // Writes the tar to `take`, in pieces.
  void write(kj::Function<void(kj::ArrayPtr<const kj::byte>)> take) const;

  kj::Array<File> files;
};

}  // namespace runner
