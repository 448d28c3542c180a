package node

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// The kernel calls the network 7001, and so does our entry of its host; then a second device of it,
// 7002, has the host, and the entry is changed.
func TestFarVNI(t *testing.T) {
	l := newLab(t)
	const far, near = "02:00:00:00:00:f1", "02:00:00:00:00:a1"
	file := func(vni int) *Config {
		return parse(t, fmt.Sprintf(`{"tunnels": [{"name": "vx", "local": "192.0.2.1", "peers": "listed-per-vni"}], "ports": [{"name": "t1"}],
  "segments": [{"vni": 100, "tunnel": "vx", "members": [{"port": "t1"}], "fdb": [{"mac": "%s", "remote": "192.0.2.2", "vni": %d}]}]}`, far, vni))
	}
	s := l.quiet("n", "192.0.2.1", file(7001))
	g := s.guest("t1", "10.0.0.1/24", "")
	g.SetMAC("t1", near)
	g.Neighbour("t1", "10.0.0.2", far)
	k := l.plug("k", "192.0.2.2").h
	for _, vni := range []int{7001, 7002} {
		dev := fmt.Sprint("vx", vni)
		k.VXLAN(dev, netns.VXLAN{ID: vni, Local: "192.0.2.2"})
		k.Run("bridge", "fdb", "add", near, "dev", dev, "dst", "192.0.2.1", "vni", "100")
		k.SetMAC(dev, far)
	}
	k.Addr("vx7001", "10.0.0.2/24")
	k.Neighbour("vx7001", "10.0.0.1", near)
	g.Ping("10.0.0.2", 3)
	k.Ping("10.0.0.1", 3)
	if got, want := s.dest(100, far), "192.0.2.2:4789 vni 7001"; got != want {
		t.Errorf("at %q, want %q", got, want)
	}

	k.IP("addr", "del", "10.0.0.2/24", "dev", "vx7001")
	k.Addr("vx7002", "10.0.0.2/24")
	k.Neighbour("vx7002", "10.0.0.1", near)
	s.must(file(7002))
	g.Ping("10.0.0.2", 3)
	k.Ping("10.0.0.1", 3)
	if n := s.stats("vx").RxDrops[frame.MACPinned]; n != 0 {
		t.Errorf("%d answers were dropped", n)
	}
	s.must(file(100)) // which nobody has there
	if got, want := s.dest(100, far), "192.0.2.2:4789"; got != want {
		t.Errorf("at %q, want %q", got, want)
	}
}

const flows = 60

// inject sends UDP packets to a MAC, each of a flow of its own, which its source port says.
func inject(g *netns.Host, dev, to string) {
	dst, _ := frame.ParseMAC(to)
	frames := make([][]byte, flows)
	for i := range frames {
		b := make([]byte, 64)
		copy(b, dst[:])
		copy(b[6:], []byte{2, 0, 0, 0, 0, 0xa1, 8, 0, 0x45, 0, 0, 50, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 9})
		binary.BigEndian.PutUint16(b[34:], uint16(20_000+i))
		binary.BigEndian.PutUint16(b[36:], 9)
		binary.BigEndian.PutUint16(b[38:], 30)
		frames[i] = b
	}
	g.Inject(dev, frames...)
}

// heard is the flows that each host has heard on a device while do was done, which sends all flows
// once, each to one host.
func heard(t *testing.T, hosts []*netns.Host, dev string, do func()) map[uint16]int {
	t.Helper()
	var caps []*netns.Capture
	for _, h := range hosts {
		caps = append(caps, h.Capture(dev, ""))
	}
	do()
	at := map[uint16]int{}
	fake.Until(t, "all flows arrive", func() bool {
		n := 0
		clear(at)
		for i, c := range caps {
			for _, p := range c.Seen() {
				if b := p.Data; !p.Out && len(b) >= 38 && b[12] == 8 && b[13] == 0 && b[23] == 17 {
					at[binary.BigEndian.Uint16(b[34:])] = i
					n++
				}
			}
		}
		return n >= flows
	})
	for _, c := range caps {
		c.Stop()
	}
	if len(at) != flows {
		t.Errorf("%d flows have arrived, want %d: some twice", len(at), flows)
	}
	return at
}

// A host with three links, each to another kernel: every flow takes one, as the kernel's own next
// hop groups have it, and stays there when another link goes. All three may answer.
func TestRemotes(t *testing.T) {
	l := newLab(t)
	const host = "02:00:00:00:00:f1"
	file := func(remotes ...string) *Config {
		return parse(t, `{"tunnels": [{"name": "vx", "local": "192.0.2.1"}], "ports": [{"name": "t1"}],
  "segments": [{"vni": 100, "tunnel": "vx", "members": [{"port": "t1"}], "fdb": [{"mac": "`+host+`", "remotes": ["`+strings.Join(remotes, `", "`)+`"]}]}]}`)
	}
	var ks []*netns.Host
	for i := range 3 {
		k := l.plug(fmt.Sprint("k", i+2), fmt.Sprint("192.0.2.", i+2)).h
		k.Quiet()
		k.VXLAN("vx", netns.VXLAN{ID: 100, Local: fmt.Sprint("192.0.2.", i+2), Flood: []string{"192.0.2.1"}})
		k.SetMAC("vx", host)
		ks = append(ks, k)
	}
	share := func(at map[uint16]int) (n [3]int) {
		for _, i := range at {
			n[i]++
		}
		return n
	}

	// The kernel sends first.
	o := l.plug("o", "192.0.2.9").h
	o.Quiet()
	o.VXLAN("vx", netns.VXLAN{ID: 100, Local: "192.0.2.9"})
	for i := range 3 {
		o.IP("nexthop", "add", "id", fmt.Sprint(i+1), "via", fmt.Sprint("192.0.2.", i+2), "fdb")
	}
	o.IP("nexthop", "add", "id", "10", "group", "1/2/3", "fdb")
	o.Run("bridge", "fdb", "add", host, "dev", "vx", "nhid", "10")
	kernel := share(heard(t, ks, "vx", func() { inject(o, "vx", host) }))

	s := l.quiet("n", "192.0.2.1", file("192.0.2.2", "192.0.2.3", "192.0.2.4"))
	g := s.guest("t1", "10.0.0.1/24", "")
	g.SetMAC("t1", "02:00:00:00:00:a1")
	three := heard(t, ks, "vx", func() { inject(g, "t1", host) })
	for i, n := range share(three) {
		if n < flows/10 || kernel[i] < flows/10 {
			t.Errorf("peer %d has %d of our flows and %d of the kernel's, of %d", i, n, kernel[i], flows)
		}
	}
	s.must(file("192.0.2.4", "192.0.2.2"))
	two := heard(t, ks, "vx", func() { inject(g, "t1", host) })
	for f, i := range three {
		if i != 1 && two[f] != i || two[f] == 1 {
			t.Errorf("flow %d went to peer %d, and to %d when peer 1 had gone", f, i, two[f])
		}
	}
	s.must(file("192.0.2.2", "192.0.2.3", "192.0.2.4"))
	if again := heard(t, ks, "vx", func() { inject(g, "t1", host) }); !maps.Equal(again, three) {
		t.Errorf("with it, flows go elsewhere than before: %v, were %v", again, three)
	}

	for i, k := range ks {
		before := g.Counter("t1", "rx_packets")
		k.Inject("vx", from(host, flows)...)
		fake.Until(t, fmt.Sprintf("answers of peer %d", i), func() bool { return g.Counter("t1", "rx_packets") >= before+flows })
	}
	if n := s.stats("vx").RxDrops[frame.MACPinned]; n != 0 {
		t.Errorf("%d answers were dropped", n)
	}
	o.Run("bridge", "fdb", "append", "00:00:00:00:00:00", "dev", "vx", "dst", "192.0.2.1")
	o.Inject("vx", from(host, 5)...)
	fake.Until(t, "who is no peer of the entry is refused", func() bool { return s.stats("vx").RxDrops[frame.MACPinned] == 5 })
}

// from is broadcast frames from a MAC.
func from(mac string, n int) (list [][]byte) {
	src, _ := frame.ParseMAC(mac)
	for range n {
		list = append(list, append(append([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, src[:]...), append([]byte{0x88, 0xb5}, make([]byte, 46)...)...))
	}
	return list
}

// to is frames to a MAC.
func to(mac string, n int) (list [][]byte) {
	dst, _ := frame.ParseMAC(mac)
	for range n {
		list = append(list, append(append(dst[:6:6], 2, 0, 0, 0, 0, 0xa1), append([]byte{0x88, 0xb5}, make([]byte, 46)...)...))
	}
	return list
}

// Frames to and from a MAC are dropped, wherever it is, and a multicast group has one place, as long
// as the file says so.
func TestFilterAndGroupEntries(t *testing.T) {
	l := newLab(t)
	const group, here, far = "01:00:5e:01:02:03", "02:00:00:00:00:a2", "02:00:00:00:00:f1"
	file := func(entries string) *Config {
		return parse(t, `{"tunnels": [{"name": "vx", "local": "192.0.2.1"}], "ports": [{"name": "t1"}, {"name": "t2"}],
  "segments": [{"vni": 100, "tunnel": "vx", "flood": ["192.0.2.2", "192.0.2.3"], "members": [{"port": "t1"}, {"port": "t2"}], "fdb": [`+entries+`]}]}`)
	}
	var ks []*netns.Host // first, or the host of the node may be asking for their MACs in vain when frames for them come
	for i := range 2 {
		k := l.plug(fmt.Sprint("k", i+2), fmt.Sprint("192.0.2.", i+2)).h
		k.Quiet()
		k.VXLAN("vx", netns.VXLAN{ID: 100, Local: fmt.Sprint("192.0.2.", i+2), Flood: []string{"192.0.2.1"}})
		ks = append(ks, k)
	}
	s := l.quiet("n", "192.0.2.1", file(""))
	g1, g2 := s.guest("t1", "10.0.0.1/24", ""), s.guest("t2", "10.0.0.2/24", "")
	g1.Quiet()
	g2.Quiet() // what it says of its own accord would be filtered too
	g2.SetMAC("t2", here)
	caps := []*netns.Capture{g2.Capture("t2", ""), ks[0].Capture("vx", ""), ks[1].Capture("vx", ""), g1.Capture("t1", "")}
	count := func() (list []int) {
		for _, c := range caps {
			n := 0
			for _, p := range c.Seen() {
				if !p.Out && len(p.Data) > 13 && p.Data[12] == 0x88 && p.Data[13] == 0xb5 {
					n++
				}
			}
			list = append(list, n)
		}
		return list
	}
	at := func(i, n int) func() bool { return func() bool { return count()[i] >= n } }
	// want wants frames at t2 and the kernels, and no more of them once one has come that goes everywhere.
	want := func(what string, frames [][]byte, where ...int) {
		t.Helper()
		before := count()[:3]
		g1.Inject("t1", append(frames, from("02:00:00:00:00:a1", 1)...)...)
		for i := range before {
			before[i]++
			if slices.Contains(where, i) {
				before[i] += len(frames)
			}
		}
		for i, n := range before {
			fake.Until(t, what, at(i, n))
		}
		if now := count()[:3]; !slices.Equal(now, before) {
			t.Errorf("%s: %v frames, want %v", what, now, before)
		}
	}
	filtered := func(port string) uint64 { return s.stats(port).RxDrops[frame.Filtered] }

	want("a group without an entry", to(group, 5), 0, 1, 2)
	s.must(file(`{"mac": "` + group + `", "remote": "192.0.2.3"}`))
	want("one behind a peer", to(group, 5), 2)
	s.must(file(`{"mac": "` + group + `", "port": "t2"}`))
	want("one behind a port", to(group, 5), 0)
	s.must(file(`{"mac": "` + group + `", "filter": true}`))
	want("one that is dropped", to(group, 5))
	if n := filtered("t1"); n != 5 {
		t.Errorf("%d frames filtered, want 5", n)
	}
	s.must(file(""))
	want("the entry has gone", to(group, 5), 0, 1, 2)

	n := count()
	g2.Inject("t2", from(here, 1)...)
	ks[0].Inject("vx", from(far, 1)...)
	for i, more := range []int{1, 1, 1, 2} { // what one says, the others hear
		fake.Until(t, "both are heard", at(i, n[i]+more))
	}
	if s.dest(100, here) != "t2" || s.dest(100, far) != "192.0.2.2:4789" {
		t.Errorf("they are at %q and %q", s.dest(100, here), s.dest(100, far))
	}
	want("hosts that are known", append(to(here, 5), to(far, 0)...), 0)
	s.must(file(`{"mac": "` + here + `", "filter": true}, {"mac": "` + far + `", "filter": true}`))
	want("frames to a host here", to(here, 5))
	want("frames to one behind a peer", to(far, 5))
	if n := filtered("t1"); n != 15 {
		t.Errorf("%d frames filtered, want 15", n)
	}
	n = count()
	g2.Inject("t2", from(here, 5)...)
	ks[0].Inject("vx", from(far, 5)...)
	fake.Until(t, "frames from them", func() bool { return filtered("t2") == 5 && filtered("vx") == 5 })
	s.must(file(""))
	g2.Inject("t2", from(here, 5)...)
	fake.Until(t, "they are free again", at(3, n[3]+5))
	if now := count(); now[3] != n[3]+5 {
		t.Errorf("%d frames from them have passed before", now[3]-n[3]-5)
	}
}

// A pod's port is in mode access beside ordinary hosts, is one itself, and a pod again.
func TestMemberNeighbourMode(t *testing.T) {
	l := newLab(t)
	const gateway = "02:00:00:00:ff:10"
	file := func(mode string) *Config {
		return parse(t, `{"ports": [{"name": "t1"}, {"name": "t2"}], "vrfs": [{"name": "red"}], "segments": [{"vni": 100, "neighbours": {"mode": "suppress"},
  "gateway": {"vrf": "red", "mac": "`+gateway+`", "addresses": ["10.0.0.254/24"]}, "members": [{"port": "t1"`+mode+`}, {"port": "t2"}]}]}`)
	}
	s := l.quiet("n", "192.0.2.1", file(""))
	g1, g2 := s.guest("t1", "10.0.0.1/24", ""), s.guest("t2", "10.0.0.2/24", "")
	want := func(mode, mac string) {
		t.Helper()
		s.must(file(mode))
		g1.IP("neigh", "flush", "all")
		g1.Ping("10.0.0.2", 2)
		g2.Ping("10.0.0.1", 2)
		for _, n := range g1.Neighbours("t1") {
			if n.Addr.String() == "10.0.0.2" && n.MAC != mac {
				t.Errorf("with %q the other host is at %s, want %s", mode, n.MAC, mac)
			}
		}
		for _, n := range g2.Neighbours("t2") {
			if n.Addr.String() == "10.0.0.1" && n.MAC == gateway {
				t.Errorf("with %q the ordinary host is answered with the gateway's MAC", mode)
			}
		}
	}
	const access = `, "neighbourMode": "access"`
	want("", g2.MAC("t2"))
	want(access, gateway)
	dropped := s.stats("t1").RxDrops[frame.NotGateway]
	g1.Inject("t1", to(g2.MAC("t2"), 5)...)
	fake.Until(t, "it reaches nobody else", func() bool {
		d := s.stats("t1").RxDrops
		return d[frame.NotGateway]+d[frame.EtherType] >= dropped+5
	})
	want(`, "neighbourMode": "off"`, g2.MAC("t2"))
	want(access, gateway)
	want("", g2.MAC("t2"))
}
