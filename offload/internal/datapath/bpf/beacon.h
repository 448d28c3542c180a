// SPDX-License-Identifier: Apache-2.0
// Where a program runs. A device that is moved to another network namespace takes its program along, and the numbers of
// devices in flows are of other devices there. So user space has a socket in its own namespace, the beacon: where that is not
// found, nothing is carried. Another socket at the same address is no beacon, since only user space puts values into the map.

struct {
	UINT(type, SK_STORAGE);
	UINT(map_flags, NO_PREALLOC);
	TYPE(key, int);
	TYPE(value, u32);
} beacons SEC(".maps");

volatile const u16 beacon_port;  // network order

// beacon reports whether there is one at an address. It is a function of its own so that the registers and the stack of who calls
// it are not mixed with a socket's, which the verifier refuses to whoever lacks CAP_PERFMON.
static NOINLINE int beacon(struct __sk_buff *skb, u32 address)
{
	struct {
		u32 src, dst;
		u16 sport, dport;
	} at = { .dst = address, .dport = beacon_port };
	void *s = udp_socket(skb, &at, sizeof(at), OWN_NAMESPACE, 0);
	int found;
	if (!s)
		return 0;
	found = socket_value(&beacons, s, 0, 0) != 0;
	release(s);
	return found;
}

// moved reports whether the frame is in another network namespace. Sockets at the second address are bound to a device each,
// and so are found from devices in a VRF.
INLINE bool moved(struct __sk_buff *skb)
{
	return !beacon(skb, be32(LOOPBACK)) && !beacon(skb, be32(LOOPBACK + 1));
}
