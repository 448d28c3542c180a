// SPDX-License-Identifier: Apache-2.0
// What the frame of the overlay is: it is read here, and refused if user space may treat it in another way than to
// pass it on.

struct ipv4 {
	u8 version, tos;
	u16 len, id, frag;
	u8 ttl, protocol;
	u16 csum;
	u32 src, dst;
};

INLINE u16 sum(const struct ipv4 *ip)
{
	const u16 *p = (const u16 *)ip;
	u32 s = 0;
#pragma unroll
	for (int i = 0; i < 10; i++)
		s += p[i];
	s = (s & 0xffff) + (s >> 16);
	return s + (s >> 16);
}

struct ipv6 {
	u8 start[4];
	u16 len;
	u8 next, hops;
	u32 src[4], dst[4];
};

struct ether {
	u32 macs[3];
	u16 type;
} __attribute__((packed, aligned(4)));

struct inner {
	u32 protocol;  // EtherType
	u32 upper;     // protocol of the transport header
	u32 end;       // of the packet, by its own length, from the destination MAC on
	u32 longest;   // segment of a superframe, or the frame
	u8 tos, ttl, df;
};

INLINE bool dhcp(u16 port)
{
	return port == be16(67) || port == be16(68) || port == be16(546) || port == be16(547);
}

// upper reads the transport header, ip bytes behind the Ethernet header at at.
INLINE int upper(struct __sk_buff *skb, u32 at, u32 ip, u32 icmp, struct inner *p)
{
	u32 l4 = at + 14 + ip, len = 0;
	u16 ports[2];
	u8 b;
	if (p->upper == UDP) {
		if (load(skb, l4, ports, sizeof(ports)))
			return SHORT;
		if (dhcp(ports[0]) || dhcp(ports[1]))
			return DHCP;
		len = 8;
	} else if (p->upper == TCP) {
		if (skb->gso_size) {
			if (load(skb, l4 + 12, &b, 1))
				return SHORT;
			len = b >> 4 << 2;
		}
	} else if (p->upper == icmp) {
		if (skb->gso_size)
			return PROTOCOL;
		if (load(skb, l4, &b, 1))
			return SHORT;
		if (icmp == ICMPV6 && b >= 133 && b <= 137)
			return NEIGHBOUR;
	} else {
		return PROTOCOL;
	}
	if (skb->gso_size)
		p->longest = 14 + ip + len + skb->gso_size;
	return CAUSES;
}

INLINE int later(struct __sk_buff *skb, struct inner *p, u32 icmp)
{
	return skb->gso_size || (p->upper != TCP && p->upper != UDP && p->upper != icmp) ? PROTOCOL : CAUSES;
}

INLINE int inner4(struct __sk_buff *skb, u32 at, struct inner *p)
{
	struct ipv4 ip;
	if (load(skb, at + 14, &ip, sizeof(ip)))
		return SHORT;
	if (ip.version != 0x45)
		return OPTIONS;
	p->protocol = IPV4;
	p->upper = ip.protocol;
	p->end = 14 + be16(ip.len);
	p->tos = ip.tos;
	p->ttl = ip.ttl;
	p->df = ip.frag & be16(0x4000) ? 1 : 0;
	p->longest = skb->len - at;
	if (ip.frag & be16(0x1fff))
		return later(skb, p, ICMP);
	return upper(skb, at, sizeof(ip), ICMP, p);
}

INLINE int inner6(struct __sk_buff *skb, u32 at, struct inner *p)
{
	struct ipv6 ip;
	struct {
		u8 next, reserved;
		u16 offset;
		u32 id;
	} frag;
	if (load(skb, at + 14, &ip, sizeof(ip)))
		return SHORT;
	if (ip.start[0] >> 4 != 6)
		return OPTIONS;
	p->protocol = IPV6;
	p->upper = ip.next;
	p->end = 14 + sizeof(ip) + be16(ip.len);
	p->tos = ip.start[0] << 4 | ip.start[1] >> 4;
	p->ttl = ip.hops;
	p->df = 1;
	p->longest = skb->len - at;
	if (ip.next != FRAGMENT)
		return upper(skb, at, sizeof(ip), ICMPV6, p);
	if (load(skb, at + 14 + sizeof(ip), &frag, sizeof(frag)))
		return SHORT;
	p->upper = frag.next;
	if (frag.offset & be16(0xfff8))
		return later(skb, p, UDP);
	return upper(skb, at, sizeof(ip) + sizeof(frag), UDP, p);
}

// inner looks at the frame whose Ethernet header is at at. It returns the cause of a miss, or CAUSES if there is none.
INLINE int inner(struct __sk_buff *skb, u32 at, u16 type, struct inner *p)
{
	if (type == be16(IPV4))
		return inner4(skb, at, p);
	if (type == be16(IPV6))
		return inner6(skb, at, p);
	return KIND;
}

// ports completes a tuple: len bytes of the packet begin at l4.
INLINE bool ports(struct __sk_buff *skb, u32 l4, u32 len, u8 icmp, u8 request, u8 answer, struct tuple *t)
{
	u16 w[2];
	if (len < (t->protocol == TCP ? 20 : 8) || load(skb, l4, w, sizeof(w)))
		return 0;
	if (t->protocol == TCP || t->protocol == UDP) {
		t->sport = w[0];
		t->dport = w[1];
		return 1;
	}
	t->dport = w[0];
	return t->protocol == icmp && ((w[0] & 0xff) == request || (w[0] & 0xff) == answer);
}

// tuple4 and tuple6 read what frame.TupleOf reads, and report whether there is one.
INLINE bool tuple4(struct __sk_buff *skb, u32 at, struct tuple *t)
{
	struct ipv4 ip;
	if (load(skb, at + 14, &ip, sizeof(ip)))
		return 0;
	if (ip.version != 0x45 || ip.frag & be16(0x3fff) || be16(ip.len) < sizeof(ip) || be16(ip.len) > skb->len - at - 14)
		return 0;
	t->src[0] = ip.src;
	t->dst[0] = ip.dst;
	t->protocol = ip.protocol;
	return ports(skb, at + 14 + sizeof(ip), be16(ip.len) - sizeof(ip), ICMP, 8, 0, t);
}

INLINE bool tuple6(struct __sk_buff *skb, u32 at, struct tuple *t)
{
	struct ipv6 ip;
	if (load(skb, at + 14, &ip, sizeof(ip)))
		return 0;
	if (ip.start[0] >> 4 != 6 || be16(ip.len) > skb->len - at - 14 - sizeof(ip))
		return 0;
	__builtin_memcpy(t->src, ip.src, 16);
	__builtin_memcpy(t->dst, ip.dst, 16);
	t->protocol = ip.next;
	return ports(skb, at + 14 + sizeof(ip), be16(ip.len), ICMPV6, 128, 129, t);
}

INLINE bool tuple(struct __sk_buff *skb, u32 at, u16 type, struct tuple *t)
{
	t->type = type;
	if (type == be16(IPV4))
		return tuple4(skb, at, t);
	return type == be16(IPV6) && tuple6(skb, at, t);
}
