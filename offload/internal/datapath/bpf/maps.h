// SPDX-License-Identifier: Apache-2.0
// The tables, as package datapath has them in Go.

enum how { NEIGH = 1, EGRESS, INGRESS, PEER };
enum df { DF_SET, DF_UNSET, DF_INHERIT };
enum ecn { ECN_NORMAL, ECN_COMPAT, ECN_RFC3168 };
enum flags { TOS_IN = 2, ZERO_CSUM = 4, UNVERIFIED = 8, IS_IPV6 = 1, ROUTED = 16 };
enum head { VXLAN = 0x08000000, GPE = 0x0c000003 };  // GPE: with an Ethernet frame

enum cause {
	NO_FLOW, STALE, KIND, GROUP, SHORT, OPTIONS, PROTOCOL, NEIGHBOUR, DHCP, TOO_BIG, LENGTH,
	OUTER, TUNNEL, ELSEWHERE, CHECKSUM, MERGED, SEGMENTS, CONGESTION, NAMESPACE, ROOM, HEADER, HOPS, CAUSES
};

struct flow {
	u32 slot, src_epoch, dst_epoch, oif, max, mark;
	u32 head, vni;  // tunnel header: VXLAN or GPE, VNI
	u8 how, flags, ttl, tos, df, ecn;
	u16 port, sports[16];  // network order
	u32 local[4], remote[4];
	u32 iif;  // of table in: where packets must arrive; 0 is anywhere
	u32 tag;  // VLAN that frames leave with; 0 is none
	u32 macs[3];  // ROUTED: destination, source
};

struct slot {
	u64 global, src, dst;  // epochs for which the flow is valid
	u64 packets, bytes, last;
	u64 merged;  // when a packet last came merged with others
	u32 whole, alone;  // when a superframe last came, and a long segment that is none, in 2^20 ns
};

struct out_key {
	u32 ifindex;
	u32 macs[3];  // destination, source
	u32 tag;  // VLAN
};

struct in_key {
	u32 peer[4];
	u32 vni;  // as in the header
	u32 macs[3];
};

// What filters judge by; inner.h reads it. An IPv4 address is the first word of four. Without a protocol, it is that of all packets
// between the addresses.
struct tuple {
	u32 src[4], dst[4];
	u16 sport, dport, type;  // of an echo 0, and type and code; EtherType
	u8 protocol, unused;
};

struct tuple_key {
	struct in_key pair;  // frames from a port have its ifindex and their tag as peer, and NO_TUNNEL as VNI
	struct tuple tuple;
};

#define NO_TUNNEL be32(1)

struct {
	UINT(type, ARRAY);
	UINT(map_flags, MMAPABLE);
	UINT(max_entries, 1 << 16);
	TYPE(key, u32);
	TYPE(value, u64);
} epochs SEC(".maps");

struct {
	UINT(type, ARRAY);
	UINT(map_flags, MMAPABLE);
	UINT(max_entries, 1);  // these four as Config.Flows says
	TYPE(key, u32);
	TYPE(value, struct slot);
} slots SEC(".maps");

struct {
	UINT(type, HASH);
	UINT(max_entries, 1);
	TYPE(key, struct out_key);
	TYPE(value, struct flow);
} out SEC(".maps");

struct {
	UINT(type, HASH);
	UINT(max_entries, 1);
	TYPE(key, struct in_key);
	TYPE(value, struct flow);
} in SEC(".maps");

struct {
	UINT(type, HASH);
	UINT(max_entries, 1);
	TYPE(key, struct tuple_key);
	TYPE(value, struct flow);
} tuples SEC(".maps");

struct {
	UINT(type, PERCPU_ARRAY);
	UINT(max_entries, CAUSES);
	TYPE(key, u32);
	TYPE(value, u64);
} misses SEC(".maps");

#define MISS(why) (-2 - (int)(why))

// answer turns MISS into what the kernel understands, and counts it.
INLINE int answer(int action)
{
	u32 why = MISS(action);
	u64 *n;
	if (action > MISS(0))
		return action;
	n = lookup(&misses, &why);
	if (n)
		(*n)++;
	return NEXT;
}

// valid returns the slot of a flow, if it was validated after the last change that may concern it. It is a function of its own for the
// same reason as beacon.
static NOINLINE struct slot *valid(struct flow *f)
{
	u32 zero = 0;
	volatile struct slot *s = lookup(&slots, &f->slot);
	volatile u64 *global = lookup(&epochs, &zero);
	volatile u64 *src = lookup(&epochs, &f->src_epoch), *dst = lookup(&epochs, &f->dst_epoch);
	if (!s || !global || !src || !dst || s->global != *global || s->src != *src || s->dst != *dst)
		return 0;
	return (struct slot *)s;
}

INLINE void count(struct slot *s, u32 bytes)
{
	__sync_fetch_and_add(&s->packets, 1);
	__sync_fetch_and_add(&s->bytes, bytes);
	*(volatile u64 *)&s->last = coarse_ns();
}
