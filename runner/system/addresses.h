// runner/system/addresses.h: the addresses at which other machines reach this one.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

namespace runner {

// Whether `text` is an IPv6 address, without brackets.
bool isIpv6(kj::StringPtr text);

// Returns why no other machine can connect to `address`, which has no brackets, in a sentence that
// quotes it. Null if it is a numeric address to which others may be able to connect.
kj::Maybe<kj::String> whyNotCallable(kj::StringPtr address);

// Returns why `word` can be neither the name of a network interface nor an address to which other
// machines connect. Null if it can be one of them. Does not check whether this machine has it.
kj::Maybe<kj::String> whyNoInterface(kj::StringPtr word);

// Returns a numeric address of this machine, with brackets if it is IPv6: `word` itself, or the
// first address of the network interface that `word` names, IPv4 first. Throws if this machine has
// no such interface, or if the interface has no address to which others can connect.
kj::String addressOfInterface(kj::StringPtr word);

// Returns why this machine cannot listen at `address`, which has brackets if it is IPv6: no active
// network interface has it. Null if one has it, or if it is a loopback address.
kj::Maybe<kj::String> whyNotOwn(kj::StringPtr address);

// Returns the address at which a role of this machine must listen so that roles that connect to
// `host` reach it. It has brackets if it is IPv6. Some distributions give a machine's own name the
// address 127.0.1.1, which no other host reaches. The role then listens at the machine's only
// address that is not a loopback address. A loopback address is enough with `isOneHost`, or if
// `host` is localhost or a loopback address. Throws if this machine cannot resolve `host`. Also
// throws if a loopback address is not enough, and this machine does not have exactly one other.
kj::String ownAddressOf(kj::StringPtr host, bool isOneHost);

// Does the same with given facts: the addresses of `host`, and those of this machine's network
// interfaces, numeric and without brackets.
kj::String chooseAddress(kj::StringPtr host, bool isOneHost,
    kj::ArrayPtr<const kj::String> resolved, kj::ArrayPtr<const kj::String> interfaces);

// Returns the address of this machine, with brackets if it is IPv6, from which it sends to all
// `hosts`. It is 127.0.0.1 if all of them are this machine. Ignores names that only ssh knows,
// unless no other host is left. Looks up names, which may take seconds. Throws if it finds no
// address, or if this machine reaches two hosts from different addresses.
kj::String addressTowards(kj::ArrayPtr<const kj::StringPtr> hosts);

}  // namespace runner
