package flannel

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/worst"
)

// worstMapper is one of a network with 65,536 subnets.
func worstMapper(t *testing.T, generation int) *Mapper {
	t.Helper()
	n := check.Must(ParseNetwork([]byte(`{"Network": "10.0.0.0/8", "Backend": {"Type": "vxlan"}}`)))(t)
	own := check.Must(ParseKey("10.0.1.0-24"))(t)
	m := check.Must(NewMapper(&MapperConfig{Network: n, Own: Lease{Subnet: own, Attrs: vxlanAttrs("192.0.2.1", 1)}, VRF: "v", Generation: generation}))(t)
	return m
}

func vxlanAttrs(ip string, mac uint64) Attrs {
	return Attrs{Type: "vxlan", IPv4: End{PublicIP: netip.MustParseAddr(ip), VNI: 1, MAC: frame.MACFrom(0x020000000000 | mac)}}
}

// Somebody who can write to the store fills it with leases: of other subnets, with the subnets and MACs of those that are there, and
// with keys that are none. Those that were there before keep their places.
func TestWorstLeases(t *testing.T) {
	const good = 1000
	followed := func(m *Mapper) (n int) {
		for r := range m.Remotes() {
			if len(r.Refused) == 0 && r.Lease.IPv4.PublicIP.As4()[0] == 192 {
				n++
			}
		}
		return n
	}
	m, revision := worstMapper(t, 3), int64(0)
	put := func(key string, a Attrs) {
		revision++
		m.Set(Record{Key: key, Value: a.Value(), Created: revision, Revision: revision})
	}
	for i := range good {
		put(fmt.Sprintf("10.100.%d.%d-28", i>>4, i&15<<4), vxlanAttrs(fmt.Sprintf("192.0.%d.%d", 3+i>>8, i&255), 1000+uint64(i)))
	}
	alone := followed(m)
	for i := range maxLeases + good {
		a := vxlanAttrs("198.51.100.1", 1<<24|uint64(i))
		switch i % 4 {
		case 0: // a subnet inside of one that is there, with the MAC of another one
			a.IPv4.MAC = frame.MACFrom(0x020000000000 | uint64(1000+i%8))
			fallthrough
		case 1:
			put(fmt.Sprintf("10.%d.%d.%d-30", 100+i>>14&127, i>>6&255, i&63<<2), a)
		case 2: // no key
			put(fmt.Sprintf("%d", i), a)
		case 3:
			put(fmt.Sprintf("10.200.%d.%d-32", i>>8&255, i&255), a)
		}
	}
	if n := m.Len(); n != maxLeases {
		t.Errorf("%d leases, want %d", n, maxLeases)
	}
	if m.Refused()[TooMany] == 0 || m.Missing() {
		t.Errorf("%v, missing %v", m.Refused(), m.Missing())
	}
	worst.Kept(t, "leases of flannel nodes", alone, followed(m))

	var all []Record // as another watch begins: in any order
	for key, l := range m.leases {
		if l.wrong == nil {
			all = append(all, Record{Key: key, Value: l.lease.Attrs.Value(), Created: l.created})
		}
	}
	for i := range maxLeases {
		all = append(all, Record{Key: fmt.Sprintf("none %d", i), Value: []byte("{}"), Created: revision + int64(i)})
	}
	m.Reset(all)
	if n := followed(m); n != alone || m.Len() != maxLeases {
		t.Errorf("after a snapshot %d of %d, %d leases", n, alone, m.Len())
	}
	for key, l := range m.leases {
		if l.wrong != nil {
			m.Delete(key)
			break
		}
	}
	if !m.Missing() {
		t.Error("there is room, and nobody says so")
	}
}

// Somebody fills the store with leases of one MAC, at one address, and then changes the oldest: that takes no longer than as many
// of different MACs do, but for what must be decided anew.
func TestWorstMAC(t *testing.T) {
	fill := func(mac func(i int) uint64) time.Duration {
		m, begun := worstMapper(t, 3), time.Now()
		put := func(i, port int) {
			a := vxlanAttrs(fmt.Sprint("198.51.100.", port), mac(i))
			m.Set(Record{Key: fmt.Sprintf("10.100.%d.%d-30", i>>6, i&63<<2), Value: a.Value(), Created: int64(i)})
		}
		for i := range 1 << 14 {
			put(i, 1)
		}
		put(0, 2)
		put(0, 1)
		return time.Since(begun)
	}
	var one, different time.Duration
	for range 3 {
		one += fill(func(int) uint64 { return 7 })
		different += fill(func(i int) uint64 { return 1000 + uint64(i) })
	}
	if t.Logf("%v, of different MACs %v", one, different); one > 5*different {
		t.Errorf("%v, of different MACs %v", one, different)
	}
}

// A pod sends to as many new addresses as the switch tells of, an eighth of what it tells of in all. Another one sends a packet a
// second to each of its addresses, for ten minutes: how many find a row? The others are asked for again.
func TestWorstMisses(t *testing.T) {
	kept := func(attack bool) (found int) {
		m := worstMapper(t, 2)
		for i := range 16 {
			a := vxlanAttrs(fmt.Sprintf("192.0.2.%d", 10+i), 1000+uint64(i))
			m.Set(Record{Key: fmt.Sprintf("10.%d.0.0-16", 100+i), Value: a.Value(), Created: int64(i)})
		}
		now, next := time.Unix(0, 0), 0
		for range 600 {
			now = now.Add(time.Second)
			for i := range 100 {
				ip := netip.AddrFrom4([4]byte{10, 100, 1, byte(i)})
				if m.asked[ip] != nil {
					found++
				} else if !m.Neighbour(ip, now) {
					t.Fatal("a miss has no answer")
				}
			}
			for range 4096 / 8 / 5 {
				if next++; attack {
					m.Neighbour(netip.AddrFrom4([4]byte{10, byte(101 + next>>16&7), byte(next >> 8), byte(next)}), now)
				}
			}
			m.Forget(now.Add(-DefaultMissAge))
			if len(m.asked) > maxAsked {
				t.Fatalf("%d addresses", len(m.asked))
			}
		}
		return found
	}
	worst.Kept(t, "addresses of flannel pods asked for", kept(false), kept(true))
}
