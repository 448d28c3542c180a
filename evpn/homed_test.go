package evpn

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/policy"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

const bondESI = "03:02:00:00:00:00:05:00:00:01"

// A bonded fabric is three leaves. A host has links to the first two, and each has another host.
type bonded struct {
	*fabric
	mode  Mode
	links [2]*port.Pipe // nil = it is down
	host  *host
	other [3]*host
	n     uint32 // of frames
}

func newBonded(t *testing.T, c EthernetSegment) *bonded {
	c.ESI, c.Port = bondESI, "bond"
	f := &bonded{fabric: newFabric(t, 0, Config{}), mode: c.Mode, host: newHost(1)}
	for i := range f.other {
		conf := Config{}
		if i < 2 {
			conf.EthernetSegments = []EthernetSegment{c}
		}
		l := f.add(conf)
		f.other[i] = newHost(10 + i)
		f.other[i].on, f.other[i].at = l, l.plug()
	}
	f.link(0, true)
	f.link(1, true)
	return f
}

// link has one of the two links be there, or fail.
func (f *bonded) link(i int, up bool) {
	l := f.leaves[i]
	switch {
	case up && f.links[i] == nil:
		f.links[i] = port.NewPipe(&port.PipeConfig{Name: "bond"})
		check.OK(f.t, l.segment.Add(f.links[i], nil))
	case !up && f.links[i] != nil:
		check.OK(f.t, l.segment.Remove(f.links[i]))
		f.links[i] = nil
	}
}

// quiet waits until nothing happens any more, elections included.
func (f *bonded) quiet() {
	for range 2 {
		time.Sleep(5 * time.Second)
		synctest.Wait()
	}
}

// numbered returns a frame with the next number.
func (f *bonded) numbered(to, from frame.MAC) []byte {
	f.n++
	b := append(append([]byte{}, to[:]...), from[:]...)
	return append(binary.BigEndian.AppendUint32(append(b, 0x88, 0xb5), f.n), make([]byte, 46)...)
}

// copies returns how many copies of the last frame have arrived at each of several ports.
func (f *bonded) copies(ports ...*port.Pipe) (n []int) {
	time.Sleep(10 * time.Millisecond)
	synctest.Wait()
	for _, p := range ports {
		got := 0
		for p != nil {
			ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
			b, err := p.Recv(ctx)
			if cancel(); err != nil {
				break
			}
			if len(b) >= 18 && b[12] == 0x88 && b[13] == 0xb5 && binary.BigEndian.Uint32(b[14:]) == f.n {
				got++
			}
		}
		n = append(n, got)
	}
	return n
}

// carriers returns the links that carry frames of the host.
func (f *bonded) carriers() (list []int) {
	for i, p := range f.links {
		if p != nil && !f.leaves[i].node.Role("bond", 100).Blocked {
			list = append(list, i)
		}
	}
	return list
}

// sound checks that one VTEP forwards, and that frames arrive once wherever they are sent.
func (f *bonded) sound(r *rand.Rand, log []string) {
	f.t.Helper()
	bad := func(format string, args ...any) {
		f.t.Helper()
		f.t.Fatalf("%s, after %q", fmt.Sprintf(format, args...), log)
	}
	ups, forward := 0, 0
	for i, p := range f.links {
		if role := f.leaves[i].node.Role("bond", 100); p != nil {
			if ups++; !role.Blocked && !role.NoFlood {
				forward++
			}
		}
	}
	if forward != min(ups, 1) {
		bad("%d of %d forward: %+v", forward, ups, f.leaves[0].speaker.Status().Ethernets)
	}
	links := f.links[:]
	sum := func(n []int) (s int) {
		for _, x := range n {
			s += x
		}
		return s
	}
	carry := f.carriers()
	if len(carry) > 0 {
		f.host.at = f.links[carry[r.IntN(len(carry))]]
		for busy := f.busy() - 1; busy != f.busy(); {
			busy = f.busy()
			for _, h := range append(f.other[:], f.host) {
				h.speak()
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
	}
	f.copies(append(links, f.other[0].at, f.other[1].at, f.other[2].at)...)
	for i, h := range f.other {
		check.OK(f.t, h.at.Send(f.numbered(frame.Broadcast, h.mac)))
		if n := f.copies(links...); sum(n) != min(ups, 1) {
			bad("%v copies of a broadcast of host %d", n, i)
		}
		f.copies(f.other[0].at, f.other[1].at, f.other[2].at)
		ways := [2]int{}
		for range 20 {
			f.n += 1 << 20
			check.OK(f.t, h.at.Send(f.numbered(f.host.mac, frame.MAC{2, byte(i), 0, 1, byte(r.Uint32()), byte(r.Uint32())})))
			n := f.copies(links...)
			if sum(n) != min(ups, 1) {
				bad("%v copies of a frame of host %d; %s %+v", n, i, f.leaves[i].where(f.host), f.leaves[2].speaker.Status().Ethernets)
			}
			ways[0], ways[1] = ways[0]+n[0], ways[1]+n[1]
		}
		if i == 2 && ups == 2 && f.mode == AllActive && (ways[0] == 0 || ways[1] == 0) {
			bad("all flows take one way: %v", ways)
		}
		if i < 2 && ups == 2 && f.mode == AllActive && ways[i] != 20 {
			bad("frames beside the host go elsewhere: %v", ways)
		}
	}
	for _, i := range carry {
		check.OK(f.t, f.links[i].Send(f.numbered(frame.Broadcast, f.host.mac)))
		for k, n := range f.copies(f.other[0].at, f.other[1].at, f.other[2].at, f.links[0], f.links[1]) {
			if want := map[bool]int{true: 1}[k < 3]; n != want {
				bad("%d copies of a broadcast of the host by link %d at port %d, want %d", n, i, k, want)
			}
		}
		h := f.other[r.IntN(3)]
		check.OK(f.t, f.links[i].Send(f.numbered(h.mac, f.host.mac)))
		if n := f.copies(h.at); n[0] != 1 {
			bad("%d copies of a frame of the host by link %d", n, i)
		}
	}
	for _, l := range f.leaves {
		for _, d := range l.speaker.Status().Duplicates {
			bad("%v has duplicate %v", l.addr, d)
		}
	}
}

// A host with links to two leaves: one forwards, no frame comes twice or back, and a link, a session or a leaf may fail.
func TestHomed(t *testing.T) {
	for _, mode := range []Mode{AllActive, SingleActive} {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 1))
			f := newBonded(t, EthernetSegment{Mode: mode})
			defer f.close()
			f.quiet()
			f.sound(r, []string{"start"})
			for i := range f.links {
				f.link(i, false)
				f.quiet()
				f.sound(r, []string{"failed"})
				f.link(i, true)
				f.quiet()
				f.sound(r, []string{"back"})
			}
			f.leaves[0].stop()
			f.links[0] = nil
			f.quiet()
			if role := f.leaves[1].node.Role("bond", 100); role.Blocked || role.NoFlood {
				t.Errorf("%v: after the other leaf has failed: %+v", mode, role)
			}
			x := f.leaves[1].speaker.Status().Ethernets
			if len(x) != 1 || x[0].State != "up" || len(x[0].Candidates) != 1 || len(x[0].Segments) != 1 || !x[0].Segments[0].Forward || x[0].Mode != mode {
				t.Errorf("%+v", x)
			}
			f.leaves[1].stop()
			if role := f.leaves[1].node.Role("bond", 100); !role.Equal(&vswitch.Role{}) {
				t.Errorf("%v: after the end: %+v", mode, role)
			}
		})
	}
}

// Whatever links, sessions and settings do, once it is quiet all is sound.
func TestHomedRandom(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() || fake.Race {
		seeds = 10
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 9))
			c := EthernetSegment{Mode: Mode(r.IntN(2)), Election: Election(r.IntN(3))}
			f := newBonded(t, c)
			defer f.close()
			log := []string{fmt.Sprint("seed ", seed, c)}
			note := func(format string, args ...any) { log = append(log, fmt.Sprintf(format, args...)) }
			for range 6 {
				for range 1 + r.IntN(4) {
					i := r.IntN(2)
					switch r.IntN(5) {
					case 0, 1:
						up := r.IntN(2) == 0
						note("link %d %v", i, up)
						f.link(i, up)
					case 2:
						a, b := f.leaves[i], f.leaves[1+r.IntN(2)]
						if a == b {
							break
						}
						note("no session of %v and %v", a.addr, b.addr)
						f.sessions.Cut(a.engine, b.engine)
						time.Sleep(time.Duration(r.IntN(5000)) * time.Millisecond)
						f.sessions.Join(a.engine, b.engine)
					case 3:
						if p := f.links[i]; p != nil {
							note("the host speaks by %d", i)
							f.host.at = p
							f.host.speak()
						}
					case 4:
						time.Sleep(time.Duration(r.IntN(5000)) * time.Millisecond)
					}
				}
				f.quiet()
				f.sound(r, log)
			}
		})
		if t.Failed() {
			return
		}
	}
}

// When events were lost, all that there is is listed. Ports that are still there forward as before.
func TestHomedListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(t, 0, Config{})
		defer f.close()
		l := f.add(Config{EthernetSegments: []EthernetSegment{{ESI: bondESI, Port: "p1"}, {ESI: "03:02:00:00:00:00:05:00:00:02", Port: "p2"}}})
		l.plug()
		l.plug()
		states := func() (list []string) {
			for _, e := range l.speaker.Status().Ethernets {
				list = append(list, e.State)
			}
			return list
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		check.Slice(t, "states", states(), []string{"up", "up"})
		l.speaker.do(l.speaker.list)
		check.Slice(t, "states after a list", states(), []string{"up", "up"})
	})
}

// Hosts of a member that takes only some frames of the port are on its Ethernet segment, too, whichever member came last.
func TestHomedMatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(t, 0, Config{})
		defer f.close()
		l := f.add(Config{EthernetSegments: []EthernetSegment{{ESI: bondESI, Port: "p1"}}})
		other := check.Must(l.node.Segment(200, &node.Segment{Tunnels: []node.SegmentTunnel{{Tunnel: "vx"}}}))(t)
		p := l.plug()
		hosts := []*host{newHost(1), newHost(2)}
		check.OK(t, other.Add(p, &node.Member{Match: &policy.Match{SrcMACs: []policy.MACPrefix{{MAC: hosts[1].mac, Bits: 48}}}}))
		for _, h := range hosts {
			h.move(l, p)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		on := map[frame.MAC]string{}
		for r := range l.speaker.Routes() {
			if r.Type == 2 && !r.IP.IsValid() {
				on[r.MAC] = fmt.Sprint(r.VNI, " ", r.ESI)
			}
		}
		for i, h := range hosts {
			check.Equal(t, "host", on[h.mac], fmt.Sprint(100*(i+1), " ", bondESI))
		}
	})
}

// So are hosts of several VLANs of the port in one segment, whichever of the members goes.
func TestHomedVLANs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(t, 0, Config{})
		defer f.close()
		l := f.add(Config{EthernetSegments: []EthernetSegment{{ESI: bondESI, Port: "p1"}}})
		p, hosts := l.plug(), []*host{newHost(1), newHost(2)}
		members := func(vlans ...int) {
			t.Helper()
			check.OK(t, l.node.Update(func(c *node.Config) error {
				c.Segments[0].Members = nil
				for _, vlan := range vlans {
					c.Segments[0].Members = append(c.Segments[0].Members, node.Member{Port: "p1", VLAN: vlan})
				}
				return nil
			}))
			for i, vlan := range []byte{0, 20} {
				b := fake.GratuitousARP(hosts[i].mac, hosts[i].ip)
				if vlan != 0 {
					b = fake.Tagged(b, 0, vlan)
				}
				_ = p.Send(b)
			}
			time.Sleep(10 * time.Second)
			synctest.Wait()
			want, got := []string{}, []string{}
			for _, vlan := range vlans {
				want = append(want, fmt.Sprint(hosts[vlan/20].mac, " ", bondESI))
			}
			for r := range l.speaker.Routes() {
				if r.Type == 2 && !r.IP.IsValid() {
					got = append(got, fmt.Sprint(r.MAC, " ", r.ESI))
				}
			}
			slices.Sort(got)
			check.Slice(t, fmt.Sprint("hosts of VLANs ", vlans), got, want)
			check.Equal(t, "networks", len(l.speaker.Status().Ethernets[0].Segments), 1)
		}
		members(0, 20)
		members(20)
		members(0, 20)
		members(0)
	})
}

// A host that the configuration of both leaves has on the link is on the Ethernet segment, as one that was learned there: others send to both
// leaves, and to one when the link of the other fails.
func TestHomedConfigured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newBonded(t, EthernetSegment{})
		defer f.close()
		for _, l := range f.leaves[:2] {
			check.OK(t, l.node.Program("other", control.Update{Loose: true, Add: []control.Row{control.MAC{VNI: 100, MAC: f.host.mac, Port: "bond"}}}))
		}
		h := f.other[2]
		h.speak()
		ways := func() (n [2]int) {
			f.quiet()
			f.copies(f.links[:]...)
			for i := range 40 {
				check.OK(t, h.at.Send(f.numbered(f.host.mac, frame.MAC{2, 9, 0, 0, 0, byte(i)})))
				got := f.copies(f.links[:]...)
				n[0], n[1] = n[0]+got[0], n[1]+got[1]
			}
			return n
		}
		if n := ways(); n[0] == 0 || n[1] == 0 || n[0]+n[1] != 40 {
			t.Errorf("with both links: %v", n)
		}
		for i := range 2 {
			f.link(i, false)
			if n := ways(); n[i] != 0 || n[1-i] != 40 {
				t.Errorf("without link %d: %v", i, n)
			}
			f.link(i, true)
		}
	})
}

// On a single-active segment the leaf that forwards says such a host, though the other has the lower address: its port is blocked.
func TestHomedConfiguredSingleActive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := EthernetSegment{Mode: SingleActive, Election: ByPreference}
		f := newBonded(t, c)
		defer f.close()
		for i, l := range f.leaves[:2] {
			check.OK(t, l.node.Program("other", control.Update{Loose: true, Add: []control.Row{control.MAC{VNI: 100, MAC: f.host.mac, Port: "bond"}}}))
			l.prefer(uint16(100 + i))
		}
		h := f.other[2]
		h.speak()
		arrives := func(at int) {
			t.Helper()
			f.quiet()
			check.Slice(t, "forward", f.carriers(), []int{at})
			f.copies(f.links[:]...)
			check.OK(t, h.at.Send(f.numbered(f.host.mac, h.mac)))
			check.Equal(t, fmt.Sprint("copies at link ", at), f.copies(f.links[:]...)[at], 1)
		}
		arrives(1)
		f.leaves[0].prefer(200)
		arrives(0)
		f.link(0, false)
		f.quiet()
		f.link(0, true)
		f.leaves[0].prefer(1)
		arrives(1)
	})
}

// prefer changes the preference of the leaf's Ethernet segment.
func (l *leaf) prefer(p uint16) {
	c := l.speaker.cfg
	c.EthernetSegments = slices.Clone(c.EthernetSegments)
	c.EthernetSegments[0].Preference = p
	check.OK(l.t, l.speaker.Configure(&c))
}
