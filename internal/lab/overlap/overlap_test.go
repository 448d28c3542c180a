package overlap

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/mem"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// TestOverlap lets everything happen at once: every host sends numbered frames while
// hosts take each other's addresses, ports fail and come back, VTEPs leave networks,
// flood lists, settings and links change. Whatever the order was:
//
//   - no host gets a frame twice, or its own, or one of another network, or two of a
//     flow in the wrong order;
//   - every frame is in one counter of every port it met, under a name; every copy
//     sent into a tunnel came in at a VTEP or was lost by a name.
//
// One exception: a host whose port goes from one switch to another (a wanderer) may
// be met by copies of one frame in both places, its own among them. On even seeds all
// hosts' ports stay where they are, so that every counter lives to the end.
func TestOverlap(t *testing.T) {
	for seed := range *seeds {
		if *oneSeed >= 0 {
			seed = uint64(*oneSeed)
		}
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
			t.Parallel()
			top := plan(seed)
			for i := range top.nodes {
				top.nodes[i].queues = 1 + (i+int(seed))%3
			}
			mem.Run(t, &memory.NetworkConfig{Seed: seed}, func(f *mem.Fabric) { overlap(t, f, top) })
		})
		if *oneSeed >= 0 {
			break
		}
	}
}

var (
	oneSeed = flag.Int64("seed", -1, "run this seed only")
	seeds   = flag.Uint64("seeds", 50, "how many seeds")
)

// A crowd is the hosts of a fabric, each with a will of its own.
type crowd struct {
	*lab
	t       *testing.T
	actors  map[int]*actor
	frames  int // each host sends
	changes int // each restless party makes
}

type actor struct {
	id       int
	node     int
	plugs    []plugPlan
	members  []*vswitch.Attachment // parallel
	restless bool                  // its port leaves its switch
	wanders  bool                  // and goes to others

	mu   sync.Mutex
	now  *host
	all  []*host // one for each port it has had
	sent []uint64
}

// got returns how many frames have come to a host.
func (a *actor) got() (n int) {
	for _, h := range a.all {
		n += len(h.got)
	}
	return n
}

func overlap(t *testing.T, f *mem.Fabric, top *topology) {
	l := &lab{Fabric: f, top: top, hosts: map[int]*host{}}
	defer l.close()
	check.OK(t, l.build())
	c := &crowd{lab: l, t: t, actors: map[int]*actor{}, frames: 80, changes: 20}
	if testing.Short() {
		c.frames, c.changes = 40, 10
	}
	for i, n := range l.nodes { // so that no VTEP ever leaves
		if _, err := n.Segment(9999).AttachWith(n.VTEP, 9999, &vswitch.AttachConfig{KeepOpen: true}); err != nil {
			t.Fatal(i, err)
		}
	}
	for k, p := range top.plugs {
		a := c.actors[p.host]
		if a == nil {
			h := l.hosts[p.host]
			a = &actor{id: p.host, node: p.node, now: h, all: []*host{h}}
			a.restless = top.seed%2 == 1 && p.host%2 == 0
			a.wanders = a.restless && p.host%4 == 0
			c.actors[p.host] = a
		}
		a.plugs = append(a.plugs, p)
		a.members = append(a.members, l.plugs[k])
	}
	c.run()
	l.Settle()
	c.check()
}

func (c *crowd) run() {
	var wg sync.WaitGroup
	party := func(k uint64, do func(r *rand.Rand)) {
		wg.Go(func() { do(rand.New(rand.NewPCG(c.top.seed, k))) })
	}
	for id, a := range c.actors {
		party(uint64(1000+id), func(r *rand.Rand) { c.talk(r, a) })
		if a.restless {
			party(uint64(2000+id), func(r *rand.Rand) { c.roam(r, a) })
		}
	}
	for i := range c.nodes {
		party(uint64(3000+i), func(r *rand.Rand) { c.administer(r, i) })
	}
	party(4000, c.cutLinks)
	wg.Wait()
}

// pause lets others go first: now and then until all have had their turn.
func pause(r *rand.Rand) {
	if one(r, 3) {
		time.Sleep(time.Duration(r.IntN(2000)) * time.Microsecond)
	} else {
		runtime.Gosched()
	}
}

// talk sends what a host has to say.
func (c *crowd) talk(r *rand.Rand, a *actor) {
	for k := range c.frames {
		p := pick(r, a.plugs...)
		src := hostMAC(a.id)
		if one(r, 15) {
			src = hostMAC(firstHost + r.IntN(c.top.hosts))
		}
		dst := hostMAC(firstHost + r.IntN(c.top.hosts))
		switch r.IntN(8) {
		case 0:
			dst = frame.Broadcast
		case 1:
			dst = groupMAC(r)
		case 2:
			dst = strayMAC(r)
		}
		number := uint64(a.id)<<32 | uint64(k)
		b := append(append([]byte(nil), dst[:]...), src[:]...)
		b = binary.BigEndian.AppendUint16(b, 0x88b5)
		b = binary.BigEndian.AppendUint64(b, number)
		b = binary.BigEndian.AppendUint32(b, uint32(c.top.nets[p.net].vni))
		b = append(b, make([]byte, 34+r.IntN(40))...)
		if p.tag != 0 {
			b = mem.Tagged(uint16(p.tag), b)
		}
		a.mu.Lock()
		h := a.now
		a.mu.Unlock()
		if h.Send(b) == nil {
			a.sent = append(a.sent, number)
		}
		pause(r)
	}
}

// roam takes a host's port out of its switch and puts it back, or to another.
func (c *crowd) roam(r *rand.Rand, a *actor) {
	for range c.changes {
		pause(r)
		if one(r, 4) { // the port fails, and a new one comes
			c.nodes[a.node].alone(func() {
				a.now.Close()
				time.Sleep(time.Millisecond) // until the switch has noticed
			})
			h := c.newHost(a.id)
			a.mu.Lock()
			a.now, a.all = h, append(a.all, h)
			a.mu.Unlock()
		}
		for _, m := range a.members {
			c.nodes[a.node].alone(func() { m.Detach() }) // may have gone by itself
		}
		if a.wanders {
			a.node = r.IntN(len(c.nodes))
		}
		pause(r)
		for k, p := range a.plugs {
			cfg := p.cfg
			cfg.KeepOpen = true
			m, err := c.attach(a.node, p.net, p.tag, a.now.Pipe, cfg)
			check.True(c.t, err == nil, "host%d at node%d: %v", a.id, a.node, err)
			a.members[k] = m
		}
	}
}

// administer changes tables and settings of one node under traffic.
func (c *crowd) administer(r *rand.Rand, i int) {
	n, top := c.nodes[i], c.top
	for range c.changes {
		pause(r)
		net := r.IntN(len(top.nets))
		tunnel := n.tunnels[net]
		var err error
		switch r.IntN(6) {
		case 0:
			all := top.floodList(i, net)
			err = c.setFlood(i, net, all[:r.IntN(len(all)+1)])
		case 1:
			err = c.setFlood(i, net, top.floodList(i, net))
		case 2: // the VTEP leaves a network, and comes back
			if tunnel == nil {
				break
			}
			if n.alone(func() { err = tunnel.Detach() }); err != nil {
				break
			}
			pause(r)
			cfg := vswitch.AttachConfig{Hub: top.nets[net].hub == i}
			n.tunnels[net], err = c.attach(i, net, uint32(top.nets[net].vni), n.VTEP, cfg)
		case 3, 4:
			flush, cfg := r.IntN(2) == 0, randomVSI(r)
			cfg.NoFlood = 0
			n.alone(func() {
				var v *vswitch.VSI
				if v, err = c.segment(i, net); err != nil {
					return
				}
				if flush {
					v.FDB().Flush()
				} else {
					err = v.Configure(cfg)
				}
			})
		case 5:
			for k, p := range top.plugs {
				if p.node == i && p.net == net && !c.actors[p.host].restless && one(r, 3) {
					cfg := randomAttach(r)
					n.alone(func() { err = c.plugs[k].Configure(cfg) })
				}
			}
		}
		if err != nil && !(tunnel == nil && errors.Is(err, vtep.ErrNotOpen)) {
			c.t.Errorf("node%d: %v", i, err)
		}
	}
}

func (c *crowd) cutLinks(r *rand.Rand) {
	for range c.changes {
		i, j := r.IntN(len(c.nodes)), r.IntN(len(c.nodes))
		a, ok := c.top.reach(j, i)
		b, _ := c.top.reach(i, j)
		if ok && i != j {
			c.Net.SetLink(a, b, cutLink)
			pause(r)
			c.Net.ClearLink(a, b)
		}
		pause(r)
	}
}

var cutLink = memory.Link{Cut: true}

// Hosts are numbered from firstHost on, over all nodes.
const firstHost = 2

func hostName(id int) string { return fmt.Sprintf("host%d", id) }

func hostMAC(id int) frame.MAC { return frame.MACFrom(0x020000000000 + uint64(id)) }

func strayMAC(r *rand.Rand) frame.MAC { return frame.MACFrom(0x02aa00000000 + uint64(r.IntN(6))) }

func groupMAC(r *rand.Rand) frame.MAC {
	return pick(r, frame.MACFrom(0x01005e000000+uint64(r.IntN(3))), frame.MACFrom(0x333300000001))
}
