// SPDX-License-Identifier: Apache-2.0
// What is routed: a gateway has decided about all packets between two addresses, or about those of one tuple. They leave with the MACs
// of the next hop, and with a TTL that is less by one.

// hosts makes t that of all packets between the addresses of this one.
INLINE bool hosts(struct __sk_buff *skb, u32 at, u16 type, struct tuple *t)
{
	__builtin_memset(t, 0, sizeof(*t));
	t->type = type;
	if (type == be16(IPV4))
		return !load(skb, at + 26, t->src, 4) && !load(skb, at + 30, t->dst, 4);
	return type == be16(IPV6) && !load(skb, at + 22, t->src, 16) && !load(skb, at + 38, t->dst, 16);
}

// passes looks at the packet behind the Ethernet header at at as a router does. It returns the cause of a miss, or CAUSES if there is
// none. What inner has refused does not come here.
INLINE int passes(struct __sk_buff *skb, u32 at, struct inner *p)
{
	struct ipv4 ip;
	if (p->end > skb->len - at)
		return HEADER;
	if (p->protocol == IPV4 && (p->end < 14 + sizeof(ip) || load(skb, at + 14, &ip, sizeof(ip)) || sum(&ip) != 0xffff))
		return HEADER;
	return p->ttl > 1 ? CAUSES : HOPS;
}

// decrement makes the TTL of the packet less by one. The checksum of an IPv4 header makes up for it.
INLINE bool decrement(struct __sk_buff *skb, u32 at, struct inner *p)
{
	u8 ttl = p->ttl - 1;
	if (p->protocol == IPV6)
		return !store(skb, at + 21, &ttl, 1, RECOMPUTE_CSUM);
	return !l3_csum_replace(skb, at + 24, be16(p->ttl << 8 | p->upper), be16(ttl << 8 | p->upper), 2) && !store(skb, at + 22, &ttl, 1, 0);
}
