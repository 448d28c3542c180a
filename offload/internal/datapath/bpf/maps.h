// SPDX-License-Identifier: Apache-2.0
// The tables, as package datapath has them in Go.

enum how { NEIGH = 1, EGRESS, INGRESS, PEER };
enum df { DF_SET, DF_UNSET, DF_INHERIT };
enum ecn { ECN_NORMAL, ECN_COMPAT, ECN_RFC3168 };
enum flags { ROUTED = 1 };
enum path_flags { IS_IPV6 = 1, TOS_IN = 2, ZERO_CSUM = 4, UNVERIFIED = 8 };
enum head { VXLAN = 0x08000000, GPE = 0x0c000003 };  // GPE: with an Ethernet frame

enum cause {
	NO_FLOW, STALE, KIND, GROUP, SHORT, OPTIONS, PROTOCOL, NEIGHBOUR, DHCP, TOO_BIG, LENGTH,
	OUTER, TUNNEL, ELSEWHERE, CHECKSUM, MERGED, SEGMENTS, CONGESTION, NAMESPACE, ROOM, HEADER, HOPS, LOST, CAUSES
};

// A flow has little, so that it and its key cover two lines of the cache. What flows to or from one peer have in common is a path.
struct flow {
	u32 slot, path;
	u16 src_epoch, dst_epoch;
	u32 oif, max;
	u32 vni;  // as in the header
	u32 tag;  // VLAN that frames leave with; 0 is none
	u8 how, flags;
	u16 unused;
	u32 macs[3];  // ROUTED: destination, source
};

struct path {
	u32 local[4], remote[4];
	u32 mark;
	u32 head;  // of the tunnel header: VXLAN or GPE
	u32 iif;   // of table in: where packets must arrive; 0 is anywhere
	u8 flags, ttl, tos, df, ecn, unused;
	u16 port, sports[16];  // network order
};

struct slot {
	u64 global, src, dst;  // epochs for which the flow is valid
	u64 packets, bytes, last;
	u64 merged;  // when a packet last came merged with others
	u32 whole, alone;  // when a superframe last came, and a long segment that is none, in 2^20 ns
};

// Frames from a port have its ifindex and their VLAN as peer, and NO_TUNNEL as VNI.
struct pair_key {
	u32 peer[4];
	u32 vni;  // as in the header
	u32 macs[3];  // destination, source
};

// What filters judge by; inner.h reads it. An IPv4 address is the first word of four. Without a protocol, it is that of all packets
// between the addresses.
struct tuple {
	u32 src[4], dst[4];
	u16 sport, dport, type;  // of an echo 0, and type and code; EtherType
	u8 protocol, unused;
};

struct tuple_key {
	struct pair_key pair;
	struct tuple tuple;
};

#define NO_TUNNEL be32(1)

struct {
	UINT(type, ARRAY);
	UINT(map_flags, MMAPABLE);
	UINT(max_entries, 1 << 14);
	TYPE(key, u32);
	TYPE(value, u64);
} epochs SEC(".maps");

struct {
	UINT(type, ARRAY);
	UINT(map_flags, MMAPABLE);
	UINT(max_entries, 1);  // these five as Config.Flows says
	TYPE(key, u32);
	TYPE(value, struct slot);
} slots SEC(".maps");

struct {
	UINT(type, ARRAY);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct path);
} paths SEC(".maps");

struct {
	UINT(type, HASH);
	UINT(max_entries, 1);
	TYPE(key, struct pair_key);
	TYPE(value, struct flow);
} out SEC(".maps");

struct {
	UINT(type, HASH);
	UINT(max_entries, 1);
	TYPE(key, struct pair_key);
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

// answer turns MISS into what the kernel understands. It counts misses, and frames that are lost.
INLINE int answer(int action)
{
	u32 why = action == DROP ? LOST : MISS(action);
	u64 *n;
	if (action > MISS(0) && action != DROP)
		return action;
	n = lookup(&misses, &why);
	if (n)
		(*n)++;
	return action == DROP ? DROP : NEXT;
}

// valid returns the slot of a flow, if it was validated after the last change that may concern it. It is a function of its own for the
// same reason as beacon.
static NOINLINE struct slot *valid(struct flow *f)
{
	u32 zero = 0, from = f->src_epoch, to = f->dst_epoch;
	volatile struct slot *s = lookup(&slots, &f->slot);
	volatile u64 *global = lookup(&epochs, &zero), *src = lookup(&epochs, &from), *dst = lookup(&epochs, &to);
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
