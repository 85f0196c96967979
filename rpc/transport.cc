#include "rpc/transport.h"

namespace rpc {

namespace {

constexpr Transport ROWS[] = {
    {"auto",
        "The best that both ends have: shared memory on one machine, otherwise TCP. Never changes "
        "a result.",
        true, true, false},
    {"tcp", "Messages over TCP, on one machine too.", false, false, true},
    {"unix", "Messages over a Unix socket. All roles are on one machine.", true, false, true},
    {"shared_memory",
        "Gradients and values are read where they lie; messages, over a Unix socket, only begin "
        "and end the work, unless `wire` or `compression` make what travels. All roles are on one "
        "machine.",
        true, true, true},
};

}  // namespace

constinit const kj::ArrayPtr<const Transport> TRANSPORTS(ROWS);
constinit const Transport& TCP = ROWS[1];

}  // namespace rpc
