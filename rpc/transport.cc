#include "rpc/transport.h"

namespace rpc {

namespace {

constexpr Transport ROWS[] = {
    {"auto", "The best transport that both ends have: shared memory on one machine, otherwise TCP.",
        true, true, false},
    {"tcp", "Messages over TCP, even on one machine.", false, false, true},
    {"unix", "Messages over a Unix socket. All roles must be on one machine.", true, false, true},
    {"shared_memory",
        "Gradients and parameters are read directly from shared memory. A connection over a Unix "
        "socket starts and ends the exchange. It also carries the data if `wire` or `compression` "
        "encodes it. All roles must be on one machine.",
        true, true, true},
};

}  // namespace

constinit const kj::ArrayPtr<const Transport> TRANSPORTS(ROWS);
constinit const Transport& TCP = ROWS[1];

}  // namespace rpc
