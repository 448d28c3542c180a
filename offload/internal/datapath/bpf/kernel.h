// SPDX-License-Identifier: Apache-2.0
// What of the kernel's interface is used, and nothing else: no header of the system is needed, so that the object is the
// same wherever it is built. Numbers are those of linux/bpf.h, which never change.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef _Bool bool;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))
#define UINT(name, n) int (*name)[n]   // how a map's definition has numbers
#define TYPE(name, t) typeof(t) *name  // and types
#define be16(x) __builtin_bswap16(x)
#define be32(x) __builtin_bswap32(x)

struct __sk_buff {
	u32 len, pkt_type, mark, queue_mapping, protocol, vlan_present, vlan_tci, vlan_proto, priority;
	u32 ingress_ifindex, ifindex, tc_index, cb[5], hash, tc_classid, data, data_end, napi_id;
	u32 family, remote_ip4, local_ip4, remote_ip6[4], local_ip6[4], remote_port, local_port, data_meta;
	u64 flow_keys, tstamp;
	u32 wire_len, gso_segs;
	u64 sk;
	u32 gso_size;
};

enum { ARRAY = 2, HASH = 1, PERCPU_ARRAY = 6, SK_STORAGE = 24, NO_PREALLOC = 1, MMAPABLE = 1 << 10 };
enum { NEXT = -1, DROP = 2, TO_INGRESS = 1, PACKET_HOST = 0, RECOMPUTE_CSUM = 1, LEVEL_QUERY = 0, LEVEL_INC, LEVEL_DEC, ROOM_MAC = 1 };
enum { IPV4 = 0x0800, IPV6 = 0x86dd, VLAN = 0x8100, ICMP = 1, TCP = 6, UDP = 17, FRAGMENT = 44, ICMPV6 = 58, LOOPBACK = 0x7f000001 };

#define OWN_NAMESPACE (~0ull)  // that of the frame's device

// Flags of bpf_skb_adjust_room.
#define FIXED_GSO     (1ull << 0)
#define ENCAP_IPV4    (1ull << 1)
#define ENCAP_IPV6    (1ull << 2)
#define ENCAP_UDP     (1ull << 4)
#define KEEP_CSUM     (1ull << 5)
#define ENCAP_ETH     (1ull << 6 | 14ull << 56)
#define DECAP_TO_IPV4 (1ull << 7)
#define DECAP_TO_IPV6 (1ull << 8)
#define DECAP_UDP     (1ull << 10)

static void *(*lookup)(void *map, const void *key) = (void *)1;
static u32 (*random)(void) = (void *)7;
static long (*store)(struct __sk_buff *skb, u32 at, const void *from, u32 len, u64 flags) = (void *)9;
static long (*l3_csum_replace)(struct __sk_buff *skb, u32 at, u64 from, u64 to, u64 size) = (void *)10;
static long (*vlan_push)(struct __sk_buff *skb, u16 type, u16 tci) = (void *)18;
static long (*vlan_pop)(struct __sk_buff *skb) = (void *)19;
static long (*redirect)(u32 ifindex, u64 flags) = (void *)23;
static long (*load)(const struct __sk_buff *skb, u32 at, void *to, u32 len) = (void *)26;
static long (*csum_diff)(const u32 *from, u32 len, const u32 *to, u32 to_len, u32 seed) = (void *)28;
static long (*change_type)(struct __sk_buff *skb, u32 type) = (void *)32;
static u32 (*hash)(struct __sk_buff *skb) = (void *)34;
static long (*csum_update)(struct __sk_buff *skb, u32 sum) = (void *)40;
static long (*adjust_room)(struct __sk_buff *skb, int by, u32 mode, u64 flags) = (void *)50;
static void *(*udp_socket)(struct __sk_buff *skb, void *tuple, u32 len, u64 netns, u64 flags) = (void *)85;
static long (*release)(void *socket) = (void *)86;
static void *(*socket_value)(void *map, void *socket, void *value, u64 flags) = (void *)107;
static long (*csum_level)(struct __sk_buff *skb, u64 what) = (void *)135;
static long (*redirect_neigh)(u32 ifindex, void *params, int len, u64 flags) = (void *)152;
static long (*redirect_peer)(u32 ifindex, u64 flags) = (void *)155;
static u64 (*coarse_ns)(void) = (void *)160;
