// rpc/testing/test_network.h: a network of links with given bandwidth and latency, under a virtual
// clock.
#pragma once

#include <kj/function.h>

#include <cstdint>
#include <deque>
#include <map>

namespace rpc {

using kj::uint;

// A virtual clock in seconds, with the events to come.
class VirtualClock {
public:
  double now() const { return time; }

  void after(double seconds, kj::Function<void()> what) {
    events.emplace(time + seconds, kj::mv(what));
  }

  // Runs until no event is left. Events at the same time happen in the order in which they were
  // added.
  void run() {
    while (!events.empty()) {
      auto first = events.begin();
      time = first->first;
      auto what = kj::mv(first->second);
      events.erase(first);
      what();
    }
  }

private:
  double time = 0;
  std::multimap<double, kj::Function<void()>> events;
};

// One direction of a host's network interface. Flows share it packet by packet, in turns.
class HalfLink {
public:
  // `left` is called with the flow of each packet that was sent.
  HalfLink(
      VirtualClock& clock, double bytes_per_s, uint flows,
      kj::Function<void(uint flow)> left = [](uint) {})
      : clock(clock), bytes_per_s(bytes_per_s), left(kj::mv(left)), flows(flows) {}
  KJ_DISALLOW_COPY(HalfLink);

  // Calls `sent` when this packet was sent.
  void send(uint flow, uint64_t bytes, kj::Function<void()> sent) {
    flows[flow].bytes += bytes;
    flows[flow].packets.push_back(Packet{bytes, kj::mv(sent)});
    if (!busy) sendNext();
  }

  uint64_t waiting_bytes(uint flow) const { return flows[flow].bytes; }

private:
  struct Packet {
    uint64_t bytes;
    kj::Function<void()> sent;
  };
  struct Flow {
    std::deque<Packet> packets;
    uint64_t bytes = 0;
  };

  void sendNext() {
    for (uint tried = 0; tried < flows.size(); tried++) {
      turn = (turn + 1) % flows.size();
      if (flows[turn].packets.empty()) continue;
      auto packet = kj::mv(flows[turn].packets.front());
      flows[turn].packets.pop_front();
      busy = true;
      double seconds = packet.bytes / bytes_per_s;
      clock.after(seconds, [this, flow = turn, packet = kj::mv(packet)]() mutable {
        flows[flow].bytes -= packet.bytes;
        packet.sent();
        left(flow);
        busy = false;
        sendNext();
      });
      return;
    }
  }

  VirtualClock& clock;
  const double bytes_per_s;
  kj::Function<void(uint flow)> left;
  std::deque<Flow> flows;
  uint turn = 0;
  bool busy = false;
};

// A message goes packet by packet through the sender's link, and then through the receiver's.
inline void sendMessage(VirtualClock& clock, double latency_s, HalfLink& up, uint flow,
    HalfLink& down, uint64_t bytes, kj::Function<void()> delivered) {
  constexpr uint64_t PACKET_BYTES = 4096;
  for (; bytes > 0;) {
    uint64_t packet = kj::min(bytes, PACKET_BYTES);
    bytes -= packet;
    kj::Function<void()> arrived = [] {};
    if (bytes == 0) arrived = kj::mv(delivered);
    up.send(flow, packet, [&clock, &down, latency_s, packet, arrived = kj::mv(arrived)]() mutable {
      clock.after(latency_s, [&down, packet, arrived = kj::mv(arrived)]() mutable {
        down.send(0, packet, kj::mv(arrived));
      });
    });
  }
}

}  // namespace rpc
