package kernel

import (
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// outerDifferences are those of what is around a VXLAN packet.
var outerDifferences = []difference{
	{field: "outcome", packets: []string{"another local address"}, kernel: "delivered unchanged", ours: "dropped", rule: otherAddress},
	{only: "IPv4", field: "outcome", packets: []string{"broadcast address"}, kernel: "delivered unchanged", ours: "dropped", rule: otherAddress},
	{only: "IPv6", field: "outcome", packets: []string{"from our own address", "from no address"}, kernel: "delivered unchanged", ours: "dropped", rule: ownAddress},
}

// Rows of the documentation. The kernel's device takes packets to any of the host's
// addresses, whatever its local one is; and over IPv6 packets from the host's own, and from the
// unspecified one, which over IPv4 the host itself refuses.
const (
	otherAddress = "other local addresses"
	ownAddress   = "own outer source, or none"
)

// second is another address of the near host.
func (fam family) second() string {
	if fam.v6 {
		return "fd00::11"
	}
	return "10.0.0.11"
}

const atIP = 14 // where in a packet the IP header begins

func (fam family) atUDP() int {
	if fam.v6 {
		return atIP + 40
	}
	return atIP + 20
}

// arrival is packets, together, of which the last makes the difference.
type arrival struct {
	name    string
	packets [][]byte
}

// arrivals are packets with the same frame inside, whose outer headers are unusual or wrong.
func arrivals(fam family, inner []byte) (as []arrival) {
	good := fam.packet(outerIP{}, vxlan(inner))
	udp := fam.atUDP()
	add := func(name string, packets ...[]byte) { as = append(as, arrival{name, packets}) }
	// change adds the good packet with changes; checksums are made anew.
	change := func(name string, f func(b []byte) []byte) {
		add(name, fam.fix(f(slices.Clone(good))))
	}
	put16 := func(at, v int) func(b []byte) []byte {
		return func(b []byte) []byte { binary.BigEndian.PutUint16(b[at:], uint16(v)); return b }
	}
	put8 := func(at int, v byte) func(b []byte) []byte {
		return func(b []byte) []byte { b[at] = v; return b }
	}
	length := len(good) - udp // of UDP
	trailer := make([]byte, 20)

	change("source port 0", put16(udp, 0))
	change("source port 1", put16(udp, 1))
	change("source port 4789", put16(udp, 4789))
	change("UDP length too long", put16(udp+4, length+1))
	change("UDP length 7", put16(udp+4, 7))
	change("UDP length without header", put16(udp+4, 8+7))
	change("UDP length without inner frame", put16(udp+4, 8+8))
	change("padded", func(b []byte) []byte { return append(b, trailer...) })
	change("UDP shorter than IP", func(b []byte) []byte { return fam.lengthen(append(b, trailer...), len(trailer)) })
	change("IP length too long", func(b []byte) []byte { return fam.lengthen(b, 4) })
	change("another local address", func(b []byte) []byte { return fam.readdress(b, "", fam.second()) })
	change("an address of nobody", func(b []byte) []byte {
		return fam.readdress(b, "", map[bool]string{false: "10.0.0.77", true: "fd00::77"}[fam.v6])
	})
	change("from our own address", func(b []byte) []byte { return fam.readdress(b, fam.near, "") })
	change("from a loopback address", func(b []byte) []byte {
		return fam.readdress(b, map[bool]string{false: "127.0.0.1", true: "::1"}[fam.v6], "")
	})
	change("from a multicast address", func(b []byte) []byte {
		return fam.readdress(b, map[bool]string{false: "239.1.1.1", true: "ff0e::1"}[fam.v6], "")
	})
	change("from no address", func(b []byte) []byte {
		return fam.readdress(b, map[bool]string{false: "0.0.0.0", true: "::"}[fam.v6], "")
	})
	change("link-layer broadcast", func(b []byte) []byte { copy(b, hw("ff:ff:ff:ff:ff:ff")); return b })
	change("of another host", func(b []byte) []byte { copy(b, hw("02:00:00:00:01:77")); return b })

	ttl := atIP + 8
	if fam.v6 {
		ttl = atIP + 7
	}
	for _, v := range []byte{0, 1, 2, 63, 127, 128, 254, 255} {
		change(fmt.Sprint("TTL ", v), put8(ttl, v))
	}
	whole, parts := good, fam.fragments(good)
	add("fragments", parts...)
	add("fragments in another order", parts[1], parts[0])
	add("first fragment only", fam.renumber(parts[0], 2))
	add("last fragment only", fam.renumber(parts[1], 3))
	if fam.v6 {
		add("hop-by-hop options", fam.extend(whole, 0))
		add("destination options", fam.extend(whole, 60))
		add("routing header", fam.extend(whole, 43))
		change("flow label", put16(atIP+2, 0x1234))
		return as
	}
	add("options", option(whole))
	change("broadcast address", func(b []byte) []byte { copy(b, hw("ff:ff:ff:ff:ff:ff")); return fam.readdress(b, "", "10.0.0.255") })
	add("header checksum wrong", put8(atIP+10, good[atIP+10]^1)(slices.Clone(good)))
	change("header length 4", put8(atIP, 0x44))
	change("version 5", put8(atIP, 0x55))
	return as
}

// fix makes the checksums of a packet, over what its headers say, where that is there.
func (fam family) fix(b []byte) []byte {
	if !fam.v6 {
		b[atIP+10], b[atIP+11] = 0, 0
		binary.BigEndian.PutUint16(b[atIP+10:], ^folded(words(b[atIP:atIP+20])))
	}
	udp := fam.atUDP()
	n := int(binary.BigEndian.Uint16(b[udp+4:]))
	if n < 8 || udp+n > len(b) {
		return b
	}
	b[udp+6], b[udp+7] = 0, 0
	addrs := b[udp-8 : udp]
	if fam.v6 {
		addrs = b[udp-32 : udp]
	}
	binary.BigEndian.PutUint16(b[udp+6:], ^folded(words(addrs)+17+uint64(n)+words(b[udp:udp+n])))
	return b
}

// lengthen adds n to the length in the IP header.
func (fam family) lengthen(b []byte, n int) []byte {
	at := atIP + 2
	if fam.v6 {
		at = atIP + 4
	}
	binary.BigEndian.PutUint16(b[at:], binary.BigEndian.Uint16(b[at:])+uint16(n))
	return b
}

// readdress gives a packet other IP addresses; "" is the one it has.
func (fam family) readdress(b []byte, src, dst string) []byte {
	size := 4
	if fam.v6 {
		size = 16
	}
	at := fam.atUDP() - 2*size
	for i, s := range []string{src, dst} {
		if ip := net.ParseIP(s); ip != nil {
			copy(b[at+i*size:], ip.To16()[16-size:])
		}
	}
	return b
}

// fragments cuts a packet in two.
func (fam family) fragments(b []byte) [][]byte {
	udp := fam.atUDP()
	head, payload := b[:udp], b[udp:]
	cut := 32
	if fam.v6 {
		part := func(data []byte, offset int, more byte) []byte {
			h := slices.Clone(head)
			binary.BigEndian.PutUint16(h[atIP+4:], uint16(8+len(data)))
			h[atIP+6] = 44
			return slices.Concat(h, []byte{17, 0, byte(offset >> 8), byte(offset)&^7 | more, 0, 0, 0, 1}, data)
		}
		return [][]byte{part(payload[:cut], 0, 1), part(payload[cut:], cut, 0)}
	}
	part := func(data []byte, offset int, more uint16) []byte {
		h := slices.Clone(head)
		binary.BigEndian.PutUint16(h[atIP+2:], uint16(20+len(data)))
		binary.BigEndian.PutUint16(h[atIP+4:], 1)
		binary.BigEndian.PutUint16(h[atIP+6:], more<<13|uint16(offset/8))
		h[atIP+10], h[atIP+11] = 0, 0
		binary.BigEndian.PutUint16(h[atIP+10:], ^folded(words(h[atIP:atIP+20])))
		return slices.Concat(h, data)
	}
	return [][]byte{part(payload[:cut], 0, 1), part(payload[cut:], cut, 0)}
}

// renumber makes a fragment one of another packet.
func (fam family) renumber(b []byte, id byte) []byte {
	b = slices.Clone(b)
	if fam.v6 {
		b[atIP+40+7] = id
		return b
	}
	b[atIP+5] = id
	b[atIP+10], b[atIP+11] = 0, 0
	binary.BigEndian.PutUint16(b[atIP+10:], ^folded(words(b[atIP:atIP+20])))
	return b
}

// extend puts an extension header of 8 bytes that says nothing into an IPv6 packet.
func (fam family) extend(b []byte, kind byte) []byte {
	ext := []byte{17, 0, 1, 4, 0, 0, 0, 0} // PadN
	if kind == 43 {
		ext = []byte{17, 0, 253, 0, 0, 0, 0, 0} // an experiment, no segments left
	}
	h := slices.Clone(b[:atIP+40])
	h[atIP+6] = kind
	return fam.lengthen(slices.Concat(h, ext, b[atIP+40:]), 8)
}

// option puts four bytes of options that say nothing into an IPv4 header.
func option(b []byte) []byte {
	h := slices.Concat(b[:atIP+20], []byte{1, 1, 1, 0})
	h[atIP] = 0x46
	binary.BigEndian.PutUint16(h[atIP+2:], binary.BigEndian.Uint16(h[atIP+2:])+4)
	h[atIP+10], h[atIP+11] = 0, 0
	binary.BigEndian.PutUint16(h[atIP+10:], ^folded(words(h[atIP:])))
	return slices.Concat(h, b[atIP+20:])
}

// The same packets with unusual or wrong outer headers to both. To ours they come through
// the host's UDP, as they do to the kernel's: what that refuses, both do.
func TestReceiveOuter(t *testing.T) {
	l := newLedger(t, outerDifferences)
	delivered := 0
	inFamilies(t, func(t *testing.T, fam family) {
		p := newPair(t, fam, settings{})
		for _, s := range []*side{p.kernel, p.ours} {
			s.near.Addr("eth0", fam.second()+fam.bits)
		}
		in := inner{src: farInner, dst: nearInner, ttl: 33}.frame()
		for _, c := range arrivals(fam, in) {
			for _, s := range []*side{p.kernel, p.ours} {
				s.far.Inject("eth0", c.packets[:len(c.packets)-1]...)
			}
			kernel, ours := p.receive(c.packets[len(c.packets)-1])
			got := outcome(in, ours)
			l.compare(t, fam, "", c.name, "outcome", outcome(in, kernel), got)
			if got == "delivered unchanged" {
				delivered++
			}
		}
	})
	check.True(t, delivered >= 30, "only %d packets were delivered: the test cannot tell", delivered)
}
