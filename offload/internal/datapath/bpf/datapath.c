// SPDX-License-Identifier: Apache-2.0
// The programs. Each asks whether it may carry a frame, changes nothing before all is asked, and then does what user space
// would do. IPv4 and IPv6 outside are two straight ways each, without a pointer that is one thing or another.

#include "kernel.h"
#include "maps.h"
#include "inner.h"
#include "beacon.h"
#include "route.h"

char _license[] SEC("license") = "Apache-2.0";

volatile const bool decap_l4;  // the kernel has DECAP_UDP

struct tunnel {
	u16 sport, dport, len, csum;
	u32 head, vni;
	struct ether in;
} __attribute__((packed, aligned(4)));

struct outer4 {
	u16 unused, type;
	struct ipv4 ip;
	struct tunnel t;
} __attribute__((packed, aligned(4)));

struct outer6 {
	u16 unused, type;
	struct ipv6 ip;
	struct tunnel t;
} __attribute__((packed, aligned(4)));

#define LEN4 (sizeof(struct ipv4) + 30)  // outer headers but Ethernet, with the inner Ethernet header
#define LEN6 (sizeof(struct ipv6) + 30)

enum { VID = 0xfff, DEI = 0x1000, PCP = 0xe000 };  // of a tag

// retag gives the frame the tag that it leaves with, with the priority of the one that it came with. Tags are beside the bytes, so
// lengths and checksums stay as they are.
INLINE bool retag(struct __sk_buff *skb, struct flow *f)
{
	u16 priority = skb->vlan_present ? skb->vlan_tci & PCP : 0;
	if (skb->vlan_present && vlan_pop(skb))
		return 0;
	return !f->tag || !vlan_push(skb, be16(VLAN), f->tag | priority);
}

// leave counts the frame, of len bytes, and sends it on, as it is now but for the tag. With peer, it may skip the queue of the
// guest's pair.
INLINE int leave(struct __sk_buff *skb, struct flow *f, struct slot *s, u32 len, u32 mark, bool peer)
{
	if (!retag(skb, f))
		return DROP;
	count(s, len);
	skb->mark = mark;
	if (f->how == NEIGH || f->how == PEER)
		change_type(skb, PACKET_HOST);  // may be for another MAC than the device has
	if (f->how == NEIGH)
		return redirect_neigh(f->oif, 0, 0, 0);
	if (f->how == PEER && peer)
		return redirect_peer(f->oif, 0);
	return redirect(f->oif, f->how == INGRESS ? TO_INGRESS : 0);
}

// The outer fields that depend on the inner ones.
INLINE u8 ttl(struct flow *f, struct path *w, struct inner *p)
{
	u8 t = w->ttl ? w->ttl : f->flags & ROUTED ? p->ttl - 1 : p->ttl;
	return t ? t : 64;
}

INLINE u8 tos(struct path *w, struct inner *p)
{
	u8 ecn = p->tos & 3;
	if (w->ecn == ECN_COMPAT)
		ecn = 0;
	else if (w->ecn == ECN_RFC3168 && ecn == 3)
		ecn = 2;
	return (w->flags & TOS_IN ? p->tos & 0xfc : w->tos) | ecn;
}

INLINE void tunnel(struct tunnel *t, struct flow *f, struct path *w, struct ether *e, u32 flow, u32 len)
{
	t->sport = w->sports[flow & 15];
	t->dport = w->port;
	t->len = be16(len);
	t->csum = 0;
	t->head = w->head;
	t->vni = f->vni;
	t->in = *e;
}

INLINE int encap4(struct __sk_buff *skb, struct flow *f, struct path *w, struct ether *e, struct inner *p, struct slot *s)
{
	struct outer4 h = { .type = be16(IPV4) };
	u32 len = skb->len, flow = hash(skb);
	bool df = w->df == DF_SET || (w->df == DF_INHERIT && p->df);
	if (len + LEN4 - 14 > 0xffff)
		return MISS(LENGTH);
	h.ip.version = 0x45;
	h.ip.tos = tos(w, p);
	h.ip.len = be16(len + LEN4 - 14);
	h.ip.id = df ? 0 : random();  // RFC 6864, section 4.1
	h.ip.frag = df ? be16(0x4000) : 0;
	h.ip.ttl = ttl(f, w, p);
	h.ip.protocol = UDP;
	h.ip.src = w->local[3];
	h.ip.dst = w->remote[3];
	h.ip.csum = ~sum(&h.ip);
	tunnel(&h.t, f, w, e, flow, len + 16);
	if (adjust_room(skb, LEN4, ROOM_MAC, FIXED_GSO | KEEP_CSUM | ENCAP_IPV4 | ENCAP_UDP | ENCAP_ETH))
		return MISS(ROOM);
	if (store(skb, 12, &h.type, LEN4 + 2, RECOMPUTE_CSUM))
		return DROP;
	if (f->flags & ROUTED && !decrement(skb, LEN4, p))
		return DROP;
	return leave(skb, f, s, len, w->mark, 1);
}

INLINE int encap6(struct __sk_buff *skb, struct flow *f, struct path *w, struct ether *e, struct inner *p, struct slot *s)
{
	struct outer6 h = { .type = be16(IPV6) };
	u32 len = skb->len, flow = hash(skb);
	u8 tc = tos(w, p);
	if (len + 16 > 0xffff)
		return MISS(LENGTH);
	h.ip.start[0] = 6 << 4 | tc >> 4;
	h.ip.start[1] = tc << 4 | (flow >> 16 & 15);  // flow label (RFC 6438)
	h.ip.start[2] = flow >> 8;
	h.ip.start[3] = flow;
	h.ip.len = be16(len + 16);
	h.ip.next = UDP;
	h.ip.hops = ttl(f, w, p);
	__builtin_memcpy(h.ip.src, w->local, 16);
	__builtin_memcpy(h.ip.dst, w->remote, 16);
	tunnel(&h.t, f, w, e, flow, len + 16);
	if (adjust_room(skb, LEN6, ROOM_MAC, FIXED_GSO | KEEP_CSUM | ENCAP_IPV6 | ENCAP_UDP | ENCAP_ETH))
		return MISS(ROOM);
	if (store(skb, 12, &h.type, LEN6 + 2, RECOMPUTE_CSUM))
		return DROP;
	if (f->flags & ROUTED && !decrement(skb, LEN6, p))
		return DROP;
	return leave(skb, f, s, len, w->mark, 1);
}

// judged looks for the flow of a frame whose pair has none: filters may have decided about its tuple, or a gateway about its addresses.
INLINE struct flow *judged(struct __sk_buff *skb, u32 at, u16 type, struct tuple_key *key)
{
	struct flow *f = 0;
	if (tuple(skb, at, type, &key->tuple))
		f = lookup(&tuples, key);
	if (!f && hosts(skb, at, type, &key->tuple))
		f = lookup(&tuples, key);
	return f;
}

INLINE int port(struct __sk_buff *skb, bool egress)
{
	struct tuple_key key = { .pair = { .peer = { skb->ifindex }, .vni = NO_TUNNEL } };
	struct inner p = {};
	struct ether e = {};
	struct flow *f;
	struct path *w;
	struct slot *s;
	int why;
	if (load(skb, 0, &e, 14))
		return MISS(SHORT);
	if (e.macs[0] & be32(0x01000000))
		return MISS(GROUP);
	if (skb->vlan_present) {
		if (skb->vlan_proto != be16(VLAN) || skb->vlan_tci & DEI || !(skb->vlan_tci & VID))
			return MISS(KIND);
		key.pair.peer[1] = skb->vlan_tci & VID;
	}
	if (e.type != skb->protocol || (e.type != be16(IPV4) && e.type != be16(IPV6)))
		return MISS(KIND);
	__builtin_memcpy(key.pair.macs, e.macs, sizeof(e.macs));
	f = lookup(&out, &key.pair);
	if (!f)
		f = judged(skb, 0, e.type, &key);
	if (!f)
		return MISS(NO_FLOW);
	s = valid(f);
	if (!s)
		return MISS(STALE);
	why = inner(skb, 0, e.type, &p);
	if (why != CAUSES)
		return MISS(why);
	if (p.longest > f->max)
		return MISS(TOO_BIG);
	if (f->flags & ROUTED) {
		why = passes(skb, 0, &p);
		if (why != CAUSES)
			return MISS(why);
	}
	if (moved(skb))
		return MISS(NAMESPACE);
	if (f->flags & ROUTED)
		__builtin_memcpy(e.macs, f->macs, sizeof(e.macs));
	if (f->how != NEIGH) {
		if (f->flags & ROUTED && (store(skb, 0, e.macs, sizeof(e.macs), 0) || !decrement(skb, 0, &p)))
			return DROP;
		return leave(skb, f, s, skb->len, 0, !egress);
	}
	w = lookup(&paths, &f->path);
	if (!w)
		return MISS(STALE);
	if (w->flags & IS_IPV6)
		return encap6(skb, f, w, &e, &p, s);
	return encap4(skb, f, w, &e, &p, s);
}

SEC("tcx/ingress") int port_in(struct __sk_buff *skb) { return answer(port(skb, 0)); }

SEC("tcx/egress") int port_out(struct __sk_buff *skb) { return answer(port(skb, 1)); }

// RFC 6040, section 4.2: four bits for each inner and outer field; 8 is what user space counts or drops.
#define DECAPSULATED 0x3383321238118880ull

#define JOIN_FOR 2000  // of 2^20 ns: for which a flow stays on either way
#define JOIN_LEN 1000  // from which on a segment is long
#define MERGED_FOR 2000000000ull  // ns for which a flow is left to user space after a merged packet

// unfinished reports whether the outer checksum is what a sender leaves to a card: the sum of the pseudo header, whose addresses have
// size bytes.
INLINE bool unfinished(struct tunnel *t, u32 *addrs, u32 size)
{
	u32 s = csum_diff(0, 0, addrs, size, t->len + be16(UDP));
	s = (s & 0xffff) + (s >> 16);
	return t->csum == (u16)(s + (s >> 16));
}

// verified reports whether the kernel's own sockets would take the outer checksum unread: a card has verified it, or the packet has
// met no card yet, since its sender has left the inner checksum to one (CHECKSUM_PARTIAL). If it is the outer one of a single packet
// that was left, the kernel would look for it in what remains without its outer headers. Only a packet that nobody has looked at
// (CHECKSUM_NONE) can be raised to a verified one, as the helper does before this takes it back, and only one whose sum is known
// (CHECKSUM_COMPLETE) can have it updated.
INLINE bool verified(struct __sk_buff *skb, struct tunnel *t, u32 *addrs, u32 size)
{
	if (csum_level(skb, LEVEL_QUERY) >= 0)
		return 1;
	if (csum_update(skb, 0) >= 0)
		return 0;
	csum_level(skb, LEVEL_INC);
	if (csum_level(skb, LEVEL_QUERY) < 0)
		return skb->gso_size || !unfinished(t, addrs, size);
	csum_level(skb, LEVEL_DEC);
	return 0;
}

// elsewhere reports whether a packet has arrived at a device that the path's socket does not listen at.
INLINE bool elsewhere(struct __sk_buff *skb, struct path *w) { return w->iif && w->iif != skb->ifindex; }

// joins reports whether a segment of TCP is to wait in the queue of the guest's pair, where the kernel joins it with those that
// follow (GRO), as it does behind a tunnel device of its own. All segments of a flow wait, while long ones come alone: what does
// not wait would overtake them. Superframes are joined already, and requests and answers of a few bytes would only wait.
INLINE bool joins(struct __sk_buff *skb, struct flow *f, struct slot *s, struct inner *p, u32 len)
{
	u32 now;
	if (f->how != PEER || p->upper != TCP)
		return 0;
	now = coarse_ns() >> 20;
	if (skb->gso_size) {
		s->whole = now;
		return 0;
	}
	if (len > JOIN_LEN)
		s->alone = now;
	return now - s->whole > JOIN_FOR && now - s->alone < JOIN_FOR;
}

// decap asks and does what does not depend on the outer family. The tunnel header ends at at.
INLINE int decap(struct __sk_buff *skb, struct flow *f, struct path *w, struct tunnel *t, u32 at, u8 outer_tos, u32 *addrs, u32 size)
{
	struct inner p = {};
	struct slot *s = valid(f);
	u32 len = skb->len - at, now;
	u64 flags = FIXED_GSO | KEEP_CSUM;
	u8 b;
	int why;
	if (!s)
		return MISS(STALE);
	if (t->dport != w->port)
		return MISS(ELSEWHERE);
	if (t->head != w->head)
		return MISS(TUNNEL);
	if (t->csum ? !(w->flags & UNVERIFIED) && !verified(skb, t, addrs, size) : !(w->flags & ZERO_CSUM))
		return MISS(CHECKSUM);
	why = inner(skb, at, t->in.type, &p);
	if (why != CAUSES)
		return MISS(why);
	if (skb->gso_size && p.end != len) {
		*(volatile u64 *)&s->merged = coarse_ns();
		return MISS(MERGED);
	}
	if (s->merged && coarse_ns() - s->merged < MERGED_FOR)
		return MISS(MERGED);  // or it would overtake those that were merged
	if (skb->gso_size && p.upper == UDP && !decap_l4)
		return MISS(SEGMENTS);
	if (elsewhere(skb, w))
		return MISS(ELSEWHERE);
	if (p.longest > f->max)
		return MISS(TOO_BIG);
	if (f->flags & ROUTED) {
		why = passes(skb, at, &p);
		if (why != CAUSES)
			return MISS(why);
		__builtin_memcpy(t->in.macs, f->macs, sizeof(t->in.macs));
	}
	now = DECAPSULATED >> ((p.tos & 3) << 4 | (outer_tos & 3) << 2) & 15;
	if (now & 8)
		return MISS(CONGESTION);
	if (moved(skb))
		return MISS(NAMESPACE);
	flags |= p.protocol == IPV4 ? DECAP_TO_IPV4 : DECAP_TO_IPV6;
	if (decap_l4)
		flags |= DECAP_UDP;
	if (adjust_room(skb, -(int)at, ROOM_MAC, flags))
		return MISS(ROOM);
	csum_level(skb, LEVEL_DEC);
	if (store(skb, 0, &t->in, 14, 0))  // a sum by the card does not cover the Ethernet header here
		return DROP;
	if (now != (p.tos & 3)) {
		b = (p.tos & 0xfc) | now;
		if (p.protocol == IPV4) {  // the checksum makes up for the field
			if (l3_csum_replace(skb, 24, be16(0x4500 | p.tos), be16(0x4500 | b), 2) || store(skb, 15, &b, 1, 0))
				return DROP;
		} else {
			if (load(skb, 15, &b, 1))
				return DROP;
			b = (b & 0xcf) | now << 4;
			if (store(skb, 15, &b, 1, RECOMPUTE_CSUM))
				return DROP;
		}
	}
	if (f->flags & ROUTED && !decrement(skb, 0, &p))
		return DROP;
	return leave(skb, f, s, len, 0, !joins(skb, f, s, &p, len));
}

// plain reports whether a packet may be one that is carried. Most UDP packets are not.
INLINE bool plain(struct tunnel *t)
{
	return (t->head == be32(VXLAN) || t->head == be32(GPE)) && !(t->vni & be32(0xff));
}

INLINE int tunnel4(struct __sk_buff *skb)
{
	struct tuple_key key = { .pair = { .peer = { 0, 0, be32(0xffff) } } };
	struct outer4 h;
	struct flow *f;
	struct path *w;
	u32 len;
	if (load(skb, 14, &h.ip, LEN4) || h.ip.protocol != UDP)
		return NEXT;
	len = skb->len - 14;
	if (h.ip.version != 0x45 || h.ip.frag & be16(0x3fff) || be16(h.ip.len) != len || be16(h.t.len) != len - sizeof(h.ip) ||
	    sum(&h.ip) != 0xffff)
		return MISS(OUTER);
	if (!plain(&h.t))
		return MISS(TUNNEL);
	key.pair.peer[3] = h.ip.src;
	key.pair.vni = h.t.vni;
	__builtin_memcpy(key.pair.macs, h.t.in.macs, sizeof(key.pair.macs));
	f = lookup(&in, &key.pair);
	if (!f)
		f = judged(skb, LEN4, h.t.in.type, &key);
	if (!f)
		return MISS(NO_FLOW);
	w = lookup(&paths, &f->path);
	if (!w || h.ip.dst != w->local[3] || w->flags & IS_IPV6)
		return MISS(ELSEWHERE);
	return decap(skb, f, w, &h.t, LEN4, h.ip.tos, &h.ip.src, 8);
}

INLINE int tunnel6(struct __sk_buff *skb)
{
	struct tuple_key key = {};
	struct outer6 h;
	struct flow *f;
	struct path *w;
	u32 len;
	if (load(skb, 14, &h.ip, LEN6) || h.ip.next != UDP)
		return NEXT;
	len = skb->len - 14 - sizeof(h.ip);
	if (h.ip.start[0] >> 4 != 6 || be16(h.ip.len) != len || be16(h.t.len) != len)
		return MISS(OUTER);
	if (!plain(&h.t))
		return MISS(TUNNEL);
	__builtin_memcpy(key.pair.peer, h.ip.src, sizeof(key.pair.peer));
	key.pair.vni = h.t.vni;
	__builtin_memcpy(key.pair.macs, h.t.in.macs, sizeof(key.pair.macs));
	f = lookup(&in, &key.pair);
	if (!f)
		f = judged(skb, LEN6, h.t.in.type, &key);
	if (!f)
		return MISS(NO_FLOW);
	w = lookup(&paths, &f->path);
	if (!w || h.ip.dst[0] != w->local[0] || h.ip.dst[1] != w->local[1] || h.ip.dst[2] != w->local[2] || h.ip.dst[3] != w->local[3])
		return MISS(ELSEWHERE);
	return decap(skb, f, w, &h.t, LEN6, h.ip.start[1] >> 4, h.ip.src, 32);
}

SEC("tcx/ingress") int tunnel_in(struct __sk_buff *skb)
{
	if (skb->pkt_type != PACKET_HOST || skb->vlan_present)
		return NEXT;  // not for this host
	if (skb->protocol == be16(IPV4))
		return answer(tunnel4(skb));
	if (skb->protocol == be16(IPV6))
		return answer(tunnel6(skb));
	return NEXT;
}

// probe_decap_l4 returns 0 if the kernel has DECAP_UDP.
SEC("tcx/ingress") int probe_decap_l4(struct __sk_buff *skb)
{
	return adjust_room(skb, -28, ROOM_MAC, FIXED_GSO | DECAP_UDP) ? 1 : 0;
}
