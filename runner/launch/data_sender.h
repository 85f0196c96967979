// runner/launch/data_sender.h: copies the packed records of a run to hosts that lack them.
#pragma once

#include <kj/async.h>
#include <kj/function.h>
#include <kj/timer.h>

#include "io/datasets/data_copy.h"
#include "runner/launch/host.capnp.h"

namespace runner {

// The packed records on this machine, for all hosts. For one event loop.
class SharedData {
public:
  // Opens the data set, and imports it first if necessary. `timer` must outlive the object.
  SharedData(const io::DataConfig& config, kj::Timer& timer): packed(config), timer(timer) {}

  const io::PackedData packed;
  // Returns the SHA-256 of all bytes. Reads them at the first call only.
  kj::Promise<kj::String> sum();

private:
  kj::Timer& timer;
  kj::String digits;  // the checksum; empty until it is known
  kj::Maybe<kj::ForkedPromise<void>> known;
};

// Copies the packed records to one host.
class DataSender {
public:
  // `sent` is called with the number of bytes that the host has so far. It is not called if the
  // host has all of them at the beginning. `data` must outlive this object.
  DataSender(HostAgent::Client agent, SharedData& data, kj::Function<void(uint64_t)> sent);

  // Resolves to the folder of the copy on the host, when it is complete. Rejects with the cause and
  // what to do. Call once. This object must outlive the promise.
  kj::Promise<kj::String> bring();

private:
  // Sends all bytes from `offset` on. `isAnew`: the host's earlier copy was damaged.
  kj::Promise<void> sendFrom(uint64_t offset, bool isAnew);
  // Sends one piece after another, each when the host has taken the one before.
  kj::Promise<void> sendPieces();

  HostAgent::Client agent;
  SharedData& data;
  kj::Function<void(uint64_t)> sent;
  kj::Maybe<DataCopy::Client> copy;
  kj::String folder;
  uint64_t next = 0;   // the offset of the next piece
  uint64_t taken = 0;  // how many bytes the host has
};

}  // namespace runner
