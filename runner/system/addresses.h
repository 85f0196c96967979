// runner/system/addresses.h: the addresses at which other machines reach this one.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

namespace runner {

// Whether `text` is an IPv6 address, without brackets.
bool isIpv6(kj::StringPtr text);

// Returns why no other machine can call `address`, which has no brackets, in a sentence that quotes
// it. Null if it is an address in numbers that others may be able to call.
kj::Maybe<kj::String> whyNotCallable(kj::StringPtr address);

// Returns why `word` can be neither the name of a network interface nor an address that other
// machines call. Null if it may be. Does not ask whether this machine has it.
kj::Maybe<kj::String> whyNoInterface(kj::StringPtr word);

// Returns an address of this machine in numbers, with brackets if it is IPv6: the one that `word`
// is, or the first of the network interface that `word` names, IPv4 first. Throws if this machine
// has no such interface, or if it has no address that others can call.
kj::String addressOfInterface(kj::StringPtr word);

// Returns why this machine cannot listen at `address`, which has brackets if it is IPv6: no network
// interface that is up has it. Null if one has it, or if it is the loopback's.
kj::Maybe<kj::String> whyNotOwn(kj::StringPtr address);

// Returns the address at which a role of this machine listens, so that those who call `host` reach
// it, with brackets if it is IPv6. The systems of some distributions give their own name the
// address 127.0.1.1, which no other host reaches. The role then listens at the only address that is
// not the loopback's. With `isOneHost`, the loopback will do. Throws if this machine does not know
// `host`, or if it has several such addresses or none.
kj::String ownAddressOf(kj::StringPtr host, bool isOneHost);

// The same, from what the system says: the addresses of `host`, and those of this machine's network
// interfaces, in numbers and without brackets.
kj::String chooseAddress(kj::StringPtr host, bool isOneHost,
    kj::ArrayPtr<const kj::String> resolved, kj::ArrayPtr<const kj::String> interfaces);

// Returns the address of this machine, with brackets if it is IPv6, from which it sends to all
// `hosts`. It is 127.0.0.1 if they all are this machine. Hosts that ssh knows under a name of its
// own do not count. Looks up names, which may take seconds. Throws if no name is known, or if this
// machine has another address towards another host.
kj::String addressTowards(kj::ArrayPtr<const kj::StringPtr> hosts);

}  // namespace runner
