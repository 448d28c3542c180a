package node

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/wire"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay/memory"
)

// A talker sends frames of its own over and over, from a port or from a peer.
type talker struct {
	from string // name of a port, or address of a peer
	to   string // address and VNI, where a peer sends to
	vlan uint16 // tag of a port's frames
	src  byte   // last of its MAC and address
	dst  frame.MAC
	ip   string // destination
}

// packet is a UDP packet that says whose it is.
func (x talker) packet(id int) []byte {
	src := frame.MAC{2, 0, 0, 0, 0, x.src}
	b := append(x.dst[:], src[:]...)
	if x.vlan != 0 {
		b = binary.BigEndian.AppendUint16(append(b, 0x81, 0), x.vlan)
	}
	at := len(b) + 2
	b = append(b, 8, 0, 0x45, 0, 0, 36, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 10, x.src)
	if x.ip == "" {
		x.ip = "10.0.10.99"
	}
	b = append(b, netip.MustParseAddr(x.ip).AsSlice()...)
	binary.BigEndian.PutUint16(b[at+10:], wire.Checksum(wire.Sum(b[at:at+20], 0)))
	b = append(b, 0, 9, 0, 9, 0, 16, 0, 0)
	return append(b, 'w', 'h', 'o', ' ', 'i', 's', ' ', byte(id))
}

// sighting is who got whose frames; at a peer, in which VNI.
type sighting struct {
	id int
	at string
}

// between is a bench with talkers on its ports and peers.
type between struct {
	*bench
	talkers []talker
	peers   map[string]*memory.Underlay
	readers sync.WaitGroup
	mu      sync.Mutex
	seen    map[sighting]int
	sent    []atomic.Int64
}

func newBetween(t *testing.T, talkers []talker, peers ...string) *between {
	b := &between{bench: newBench(t), talkers: talkers, peers: map[string]*memory.Underlay{}, seen: map[sighting]int{}, sent: make([]atomic.Int64, len(talkers))}
	for _, p := range peers {
		m, err := b.net.Listen(netip.AddrPortFrom(netip.MustParseAddr(p), 4789), nil)
		must(t, err)
		b.peers[p] = m
		b.readers.Go(func() {
			batch := frame.NewBatch(nil)
			for m.Readers()[0].Read(batch) == nil {
				for i := range batch.Frames {
					if x := batch.Frames[i].Bytes(); len(x) > 8 {
						b.saw(x[8:], fmt.Sprintf("%s vni %d", p, binary.BigEndian.Uint32(x[4:])>>8))
					}
				}
			}
			batch.Release()
		})
	}
	t.Cleanup(func() {
		for _, m := range b.peers {
			m.Close()
		}
		b.Close()
		b.readers.Wait()
		b.net.Close()
	})
	device := b.Node.open.device
	b.Node.open.device = func(c *Port) (vswitch.Port, error) {
		p, err := device(c)
		if err == nil {
			b.readers.Go(func() {
				for {
					x, err := p.(*benchPort).Recv(context.Background())
					if err != nil {
						return
					}
					b.saw(x, c.Name)
				}
			})
		}
		return p, err
	}
	return b
}

func (b *between) saw(x []byte, at string) {
	if n := len(x); n > 8 && string(x[n-8:n-1]) == "who is " {
		b.mu.Lock()
		b.seen[sighting{int(x[n-1]), at}]++
		b.mu.Unlock()
	}
}

// send sends a frame of a talker, if it has its port.
func (b *between) send(id int) {
	x := b.talkers[id]
	packet := x.packet(id)
	if m := b.peers[x.from]; m != nil {
		to, vni, _ := strings.Cut(x.to, " ")
		var v uint32
		fmt.Sscan(vni, &v)
		e, _ := frame.EndpointFrom(netip.AddrPortFrom(netip.MustParseAddr(to), 4789))
		header := binary.BigEndian.AppendUint32([]byte{8, 0, 0, 0}, v<<8)
		m.Sender(id).Send([]frame.Datagram{{Parts: [][]byte{header, packet}, To: []frame.Endpoint{e}, TTL: 9}})
		b.sent[id].Add(1)
		return
	}
	b.locked(func() {
		for p := range b.ports {
			if p.Name() == x.from && p.Send(packet) == nil {
				b.sent[id].Add(1)
			}
		}
	})
}

// take returns what was seen, and forgets it.
func (b *between) take() map[sighting]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.seen
	b.seen = map[sighting]int{}
	return was
}

// settled returns who gets whose frames with a configuration that stays.
func (b *between) settled(cfg *Config) map[sighting]int {
	must(b.t, b.Apply(cfg))
	for range 4 {
		for id := range b.talkers {
			b.send(id)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return b.take()
}

func (b *between) name(s sighting) string {
	x := b.talkers[s.id]
	return fmt.Sprintf("%s to %v %s: at %s", strings.TrimSpace(x.from+" "+x.to), x.dst, x.ip, s.at)
}

var (
	everybody = frame.Broadcast
	nobody    = frame.MAC{2, 0, 0, 0, 0, 0x99}
	theGate   = frame.MAC{2, 0, 0, 0, 0xff, 1}
)

// failsAt reports whether a configuration has a step of a number, and has that step fail: the old one is put back.
func (b *between) failsAt(number int, cfg *Config) (failed bool) {
	i := 0
	b.refuse = func(string) error {
		if i++; i == number {
			failed = true
			return errors.New("no")
		}
		return nil
	}
	b.Apply(cfg)
	b.refuse = func(string) error { return nil }
	time.Sleep(time.Millisecond)
	return failed
}

// While one configuration follows the other again and again, and each is put back when a step of the
// other fails, no frame gets where neither of them lets it; and where both let it, frames do get.
func TestBetween(t *testing.T) {
	const head = `{"tunnels": [{"name": "vx", "local": "192.0.2.1"}, {"name": "vy", "local": "192.0.2.2"}], "ports": [{"name": "p1"}, {"name": "p2"}, {"name": "p3"}],`
	const gate = `"mac": "02:00:00:00:ff:01"`
	deny := func(name string, nets ...string) string {
		var rules []string
		for i, n := range nets {
			rules = append(rules, fmt.Sprintf(`{"name": "r%d", "action": "deny", "dst": [%q]}`, i, n))
		}
		return fmt.Sprintf(`{"name": %q, "stateless": true, "rules": [%s]}`, name, strings.Join(rules, ","))
	}
	router := func(n int, to string) string { // a way for all that is left
		return fmt.Sprintf(`{"prefix": "0.0.0.0/0", "via": [{"segment": 90, "mac": "02:00:00:00:dd:0%d", "remote": %q}]}`, n, to)
	}
	l3 := func(vrf string) string {
		return fmt.Sprintf(`{"vni": 90, "tunnel": "vx", "gateway": {"vrf": %q, "mac": "02:00:00:00:ff:90"}}`, vrf)
	}
	for _, c := range []struct {
		name    string
		from    string
		to      string
		talkers []talker
	}{
		{"ports exchange segments", head + `"segments": [
			{"vni": 10, "tunnel": "vx", "flood": ["192.0.2.11"], "members": [{"port": "p1"}], "noLearning": true},
			{"vni": 20, "tunnel": "vx", "flood": ["192.0.2.12"], "members": [{"port": "p2"}], "noLearning": true}]}`, head + `"segments": [
			{"vni": 10, "tunnel": "vx", "flood": ["192.0.2.13"], "members": [{"port": "p2"}], "noLearning": true},
			{"vni": 20, "tunnel": "vx", "flood": ["192.0.2.14"], "members": [{"port": "p1"}], "noLearning": true}]}`,
			[]talker{{from: "p1", src: 1, dst: everybody}, {from: "p2", src: 2, dst: everybody}, {from: "p1", src: 1, dst: nobody}}},
		{"ports and static MACs", head + `"segments": [
			{"vni": 10, "tunnel": "vx", "fdb": [{"mac": "02:00:00:00:00:99", "remote": "192.0.2.11"}], "members": [{"port": "p1"}, {"port": "p3"}], "noLearning": true},
			{"vni": 20, "tunnel": "vx", "fdb": [{"mac": "02:00:00:00:00:99", "remote": "192.0.2.12"}], "members": [{"port": "p2"}], "noLearning": true}]}`, head + `"segments": [
			{"vni": 10, "tunnel": "vx", "fdb": [{"mac": "02:00:00:00:00:99", "remote": "192.0.2.13"}], "members": [{"port": "p2"}, {"port": "p3"}], "noLearning": true},
			{"vni": 20, "tunnel": "vx", "fdb": [{"mac": "02:00:00:00:00:99", "remote": "192.0.2.14"}], "members": [{"port": "p1"}], "noLearning": true}]}`,
			[]talker{{from: "p1", src: 1, dst: nobody}, {from: "p2", src: 2, dst: nobody}, {from: "p3", src: 3, dst: nobody}}},
		{"VNIs exchanged", head + `"segments": [
			{"vni": 10, "tunnels": [{"tunnel": "vx", "vni": 1000, "flood": ["192.0.2.11"]}], "members": [{"port": "p1"}], "noLearning": true},
			{"vni": 20, "tunnels": [{"tunnel": "vx", "vni": 2000, "flood": ["192.0.2.12"]}], "members": [{"port": "p2"}], "noLearning": true}]}`, head + `"segments": [
			{"vni": 10, "tunnels": [{"tunnel": "vx", "vni": 2000, "flood": ["192.0.2.11"]}], "members": [{"port": "p1"}], "noLearning": true},
			{"vni": 20, "tunnels": [{"tunnel": "vx", "vni": 1000, "flood": ["192.0.2.12"]}], "members": [{"port": "p2"}], "noLearning": true}]}`,
			[]talker{{from: "p1", src: 1, dst: everybody}, {from: "p2", src: 2, dst: everybody}, {from: "192.0.2.11", to: "192.0.2.1 1000", src: 3, dst: everybody}}},
		{"a segment with a policy comes and goes", head + `"policies": [` + deny("a", "10.0.20.0/24") + `], "segments": [
			{"vni": 10, "tunnel": "vx", "flood": ["192.0.2.11"], "policy": "a", "members": [{"port": "p1"}], "noLearning": true}]}`, head + `"segments": []}`,
			[]talker{
				{from: "192.0.2.11", to: "192.0.2.1 10", src: 3, dst: everybody, ip: "10.0.20.1"}, {from: "192.0.2.11", to: "192.0.2.1 10", src: 3, dst: everybody, ip: "10.0.30.1"},
				{from: "p1", src: 1, dst: everybody, ip: "10.0.20.1"}, {from: "p1", src: 1, dst: everybody, ip: "10.0.30.1"},
			}},
		{"policies exchange names and rules", head + `"policies": [` + deny("a", "10.0.20.0/24") + `,` + deny("b") + `], "segments": [
			{"vni": 10, "tunnel": "vx", "flood": ["192.0.2.11"], "policy": "a", "members": [{"port": "p1"}], "noLearning": true},
			{"vni": 20, "tunnel": "vx", "flood": ["192.0.2.12"], "policy": "b", "members": [{"port": "p2"}], "noLearning": true}]}`, head + `"policies": [` + deny("a") + `,` + deny("b", "10.0.20.0/24", "10.0.40.0/24") + `], "segments": [
			{"vni": 10, "tunnel": "vx", "flood": ["192.0.2.11"], "policy": "b", "members": [{"port": "p1"}], "noLearning": true},
			{"vni": 20, "tunnel": "vx", "flood": ["192.0.2.12"], "policy": "a", "members": [{"port": "p2"}], "noLearning": true}]}`,
			[]talker{{from: "p1", src: 1, dst: everybody, ip: "10.0.20.1"}, {from: "p1", src: 1, dst: everybody, ip: "10.0.30.1"}, {from: "p2", src: 2, dst: everybody, ip: "10.0.20.1"}}},
		{"a policy for one list, none for the other", head + `"policies": [` + deny("a", "10.0.20.0/24") + `], "segments": [
			{"vni": 10, "tunnel": "vx", "flood": ["192.0.2.11"], "policy": "a", "members": [{"port": "p1"}], "noLearning": true}]}`, head + `"segments": [
			{"vni": 10, "tunnel": "vx", "flood": ["192.0.2.12"], "members": [{"port": "p1"}], "noLearning": true}]}`,
			[]talker{{from: "p1", src: 1, dst: everybody, ip: "10.0.20.1"}, {from: "p1", src: 1, dst: everybody, ip: "10.0.30.1"}}},
		{"the policies of a gateway exchange names and rules", head + `"policies": [` + deny("a", "10.0.20.9/32") + `,` + deny("b") + `], "segments": [
			{"vni": 10, "members": [{"port": "p1"}], "noLearning": true, "gateway": {"vrf": "red", "policy": "a", "addresses": ["10.0.10.1/24"], ` + gate + `}},
			{"vni": 20, "members": [{"port": "p2"}], "noLearning": true, "gateway": {"vrf": "red", "addresses": ["10.0.20.1/24"], "mac": "02:00:00:00:ff:02"},
			 "neighbours": {"static": [{"ip": "10.0.20.9", "mac": "02:00:00:00:00:09"}, {"ip": "10.0.20.8", "mac": "02:00:00:00:00:08"}]}}], "vrfs": [{"name": "red"}]}`,
			head + `"policies": [` + deny("a") + `,` + deny("b", "10.0.20.9/32") + `], "segments": [
			{"vni": 10, "members": [{"port": "p1"}], "noLearning": true, "gateway": {"vrf": "red", "policy": "b", "addresses": ["10.0.10.1/24"], ` + gate + `}},
			{"vni": 20, "members": [{"port": "p2"}], "noLearning": true, "gateway": {"vrf": "red", "addresses": ["10.0.20.1/24"], "mac": "02:00:00:00:ff:02"},
			 "neighbours": {"static": [{"ip": "10.0.20.9", "mac": "02:00:00:00:00:09"}, {"ip": "10.0.20.8", "mac": "02:00:00:00:00:08"}]}}], "vrfs": [{"name": "red"}]}`,
			[]talker{{from: "p1", src: 7, dst: theGate, ip: "10.0.20.9"}, {from: "p1", src: 7, dst: theGate, ip: "10.0.20.8"}}},
		{"a guard for a policy", head + `"policies": [` + deny("a", "0.0.0.0/0") + `], "segments": [
			{"vni": 10, "tunnel": "vx", "flood": ["192.0.2.11"], "policy": "a", "members": [{"port": "p1"}, {"port": "p3"}], "noLearning": true}]}`, head + `"segments": [
			{"vni": 10, "tunnel": "vx", "flood": ["192.0.2.11"], "members": [{"port": "p1", "guard": {"macs": ["02:00:00:00:00:77"]}}, {"port": "p3"}], "noLearning": true}]}`,
			[]talker{{from: "p1", src: 1, dst: everybody}, {from: "p3", src: 3, dst: everybody}}},
		{"another gateway", head + `"segments": [{"vni": 10, "tunnel": "vx", "flood": ["192.0.2.11"], "members": [{"port": "p1"}, {"port": "p2"}], "noLearning": true,
			"gateway": {"vrf": "red", "addresses": ["10.0.10.1/24"], ` + gate + `}}], "vrfs": [{"name": "red"}]}`, head + `"segments": [{"vni": 10, "tunnel": "vx", "flood": ["192.0.2.11"], "members": [{"port": "p1"}, {"port": "p2"}], "noLearning": true,
			"gateway": {"vrf": "red", "addresses": ["10.0.10.2/24"], ` + gate + `}}], "vrfs": [{"name": "red"}]}`,
			[]talker{{from: "p1", src: 7, dst: theGate, ip: "10.9.0.1"}, {from: "p1", src: 7, dst: everybody}}},
		{"a tunnel made anew", head + `"segments": [{"vni": 10, "tunnel": "vx", "members": [{"port": "p1"}, {"port": "p2"}], "noLearning": true, "fdb": [{"mac": "02:00:00:00:00:99", "remote": "192.0.2.11"}]}]}`,
			strings.Replace(head, `"local": "192.0.2.1"`, `"local": "192.0.2.1", "ttl": 7`, 1) + `"segments": [{"vni": 10, "tunnel": "vx", "members": [{"port": "p1"}, {"port": "p2"}], "noLearning": true, "fdb": [{"mac": "02:00:00:00:00:99", "remote": "192.0.2.11"}]}]}`,
			[]talker{{from: "p1", src: 1, dst: nobody}, {from: "p2", src: 2, dst: everybody}}},
		{"tunnels change groups", head + `"segments": [{"vni": 10, "tunnels": [{"tunnel": "vx", "flood": ["192.0.2.11"], "group": 1}, {"tunnel": "vy", "flood": ["192.0.2.12"], "group": 1}], "members": [{"port": "p1"}], "noLearning": true}]}`,
			head + `"segments": [{"vni": 10, "tunnels": [{"tunnel": "vx", "flood": ["192.0.2.11"], "group": 2}, {"tunnel": "vy", "flood": ["192.0.2.12"], "group": 2}], "members": [{"port": "p1"}], "noLearning": true}]}`,
			[]talker{{from: "192.0.2.11", to: "192.0.2.1 10", src: 3, dst: everybody}, {from: "192.0.2.12", to: "192.0.2.2 10", src: 4, dst: everybody}}},
		{"others are isolated", head + `"segments": [{"vni": 10, "members": [{"port": "p1", "isolated": true}, {"port": "p2", "isolated": true}, {"port": "p3"}], "noLearning": true}]}`,
			head + `"segments": [{"vni": 10, "members": [{"port": "p1", "isolated": true}, {"port": "p2"}, {"port": "p3", "isolated": true}], "noLearning": true}]}`,
			[]talker{{from: "p1", src: 1, dst: everybody}, {from: "p2", src: 2, dst: everybody}, {from: "p3", src: 3, dst: everybody}}},
		{"tags of a trunk are exchanged", head + `"segments": [{"vni": 10, "members": [{"port": "p1", "vlan": 5}, {"port": "p2"}], "noLearning": true}, {"vni": 20, "members": [{"port": "p1", "vlan": 6}, {"port": "p3"}], "noLearning": true}]}`,
			head + `"segments": [{"vni": 10, "members": [{"port": "p1", "vlan": 6}, {"port": "p3"}], "noLearning": true}, {"vni": 20, "members": [{"port": "p1", "vlan": 5}, {"port": "p2"}], "noLearning": true}]}`,
			[]talker{{from: "p1", vlan: 5, src: 1, dst: everybody}, {from: "p1", vlan: 6, src: 1, dst: everybody}, {from: "p2", src: 2, dst: everybody}}},
		{"the gateway of a network, beside a default route", head + `"segments": [` + l3("red") + `,
			{"vni": 10, "members": [{"port": "p1"}], "noLearning": true, "gateway": {"vrf": "red", "addresses": ["10.0.10.1/24"], ` + gate + `}},
			{"vni": 20, "members": [{"port": "p2"}], "noLearning": true, "gateway": {"vrf": "red", "addresses": ["10.0.20.1/24"], "mac": "02:00:00:00:ff:02"},
			 "neighbours": {"static": [{"ip": "10.0.20.9", "mac": "02:00:00:00:00:09"}]}}], "vrfs": [{"name": "red", "routes": [` + router(1, "192.0.2.11") + `]}]}`,
			head + `"segments": [` + l3("red") + `,
			{"vni": 10, "members": [{"port": "p1"}], "noLearning": true, "gateway": {"vrf": "red", "addresses": ["10.0.10.1/24"], ` + gate + `}},
			{"vni": 20, "members": [{"port": "p2"}], "noLearning": true, "gateway": {"vrf": "red", "addresses": ["10.0.20.1/24"], "mac": "02:00:00:00:ff:03"},
			 "neighbours": {"static": [{"ip": "10.0.20.9", "mac": "02:00:00:00:00:09"}]}}], "vrfs": [{"name": "red", "routes": [` + router(1, "192.0.2.11") + `]}]}`,
			[]talker{{from: "p1", src: 7, dst: theGate, ip: "10.0.20.9"}, {from: "p1", src: 7, dst: theGate, ip: "8.8.8.8"}}},
		{"VRFs are exchanged", head + `"segments": [` + l3("red") + `, {"vni": 91, "tunnel": "vx", "gateway": {"vrf": "blue", "mac": "02:00:00:00:ff:91"}},
			{"vni": 10, "members": [{"port": "p1"}], "noLearning": true, "gateway": {"vrf": "red", "addresses": ["10.0.10.1/24"], ` + gate + `}}],
			"vrfs": [{"name": "red", "routes": [` + router(1, "192.0.2.11") + `]}, {"name": "blue", "routes": [` + strings.Replace(router(2, "192.0.2.12"), "90", "91", 1) + `]}]}`,
			head + `"segments": [` + l3("red") + `, {"vni": 91, "tunnel": "vx", "gateway": {"vrf": "blue", "mac": "02:00:00:00:ff:91"}},
			{"vni": 10, "members": [{"port": "p1"}], "noLearning": true, "gateway": {"vrf": "blue", "addresses": ["10.0.10.1/24"], ` + gate + `}}],
			"vrfs": [{"name": "red", "routes": [` + router(3, "192.0.2.13") + `]}, {"name": "blue", "routes": [` + strings.Replace(router(4, "192.0.2.14"), "90", "91", 1) + `]}]}`,
			[]talker{{from: "p1", src: 7, dst: theGate, ip: "8.8.8.8"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBetween(t, c.talkers, "192.0.2.11", "192.0.2.12", "192.0.2.13", "192.0.2.14")
			cfgs := [2]*Config{parse(t, c.from), parse(t, c.to)}
			allowed := b.settled(cfgs[0])
			maps.Copy(allowed, b.settled(cfgs[1]))
			var end atomic.Bool
			var talk sync.WaitGroup
			for id := range c.talkers {
				talk.Go(func() {
					for !end.Load() {
						b.send(id)
						time.Sleep(20 * time.Microsecond)
					}
				})
			}
			exchanges := 200
			if testing.Short() {
				exchanges = 40
			}
			for i := range exchanges {
				if err := b.Apply(cfgs[i%2]); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Millisecond)
			}
			for i, fails := 0, true; fails; i++ { // each step, once there and once back
				fails = b.failsAt(i/2+1, cfgs[i%2]) || i%2 == 0
				if err := b.Apply(cfgs[i%2]); err != nil {
					t.Error(err)
				}
			}
			end.Store(true)
			talk.Wait()
			time.Sleep(10 * time.Millisecond)
			seen := b.take()
			for s, n := range seen {
				if allowed[s] == 0 {
					t.Errorf("%d times %s, which neither configuration lets it", n, b.name(s))
				}
			}
			for s := range allowed {
				if seen[s] == 0 {
					t.Errorf("never %s, which one of them lets it", b.name(s))
				}
			}
		})
	}
}

// A tunnel that does not move back is opened again. Until its static entries are there, nothing for their MACs is flooded.
func TestTunnelDoesNotMoveBack(t *testing.T) {
	b := newBetween(t, []talker{{from: "p1", src: 1, dst: nobody}}, "192.0.2.11")
	cfg := parse(t, `{"tunnels": [{"name": "vx", "local": "192.0.2.1"}], "ports": [{"name": "p1"}, {"name": "p2"}], "segments": [
		{"vni": 10, "tunnel": "vx", "members": [{"port": "p1"}, {"port": "p2"}], "fdb": [{"mac": "02:00:00:00:00:99", "remote": "192.0.2.11"}]}]}`)
	must(t, b.Apply(cfg))
	port := func(name string) vswitch.PortStats {
		list := b.sw.Stats().Ports
		return list[slices.IndexFunc(list, func(p vswitch.PortStats) bool { return p.Name == name })]
	}
	failed := 0
	b.refuse = func(step string) error {
		b.send(0)
		fake.Until(t, "the frame is in", func() bool { return port("p1").Rx.Frames == uint64(b.sent[0].Load()) })
		if step == []string{"rows", "address of a tunnel", ""}[failed] {
			failed++
			return errors.New("no")
		}
		return nil
	}
	err := b.Apply(changed(t, cfg, func(c *Config) { c.Tunnels[0].Local = netip.MustParseAddr("192.0.2.5") }))
	if err == nil || err.Error() != "no" || failed != 2 {
		t.Errorf("%v after %d failures", err, failed)
	}
	b.sw.Settle()
	if n := port("p2").Tx.Frames; n != 0 {
		t.Errorf("%d frames are flooded", n)
	}
}
