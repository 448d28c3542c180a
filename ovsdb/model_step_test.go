package ovsdb

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
)

// A host has a MAC, and is at a binding or silent.
type host struct {
	mac frame.MAC
	at  *binding
	new bool // it has moved there, and perhaps not all know
}

// speak has a host announce itself, as hosts do that have moved.
func (f *fabric) speak(h *host) {
	if h.at == nil {
		return
	}
	b := fake.GratuitousARP(h.mac, netip.AddrFrom4([4]byte{10, 0, 0, h.mac[5]}))
	if h.at.vlan != 0 {
		b = fake.Tagged(b, 0, byte(h.at.vlan))
	}
	_ = f.leaves[h.at.leaf].ports[h.at.port].Send(b)
}

// settle waits until all that was wrong must be right, while hosts say where they are, as all hosts do sooner or later.
func (f *fabric) settle(hosts []*host, silent bool) {
	time.Sleep(50 * time.Second)
	for range 2 {
		for _, h := range hosts {
			f.speak(h)
			time.Sleep(time.Millisecond)
		}
		if silent {
			time.Sleep(ageing / 2)
		}
		time.Sleep(10 * time.Second)
	}
	for _, h := range hosts {
		h.new = false
	}
	synctest.Wait()
}

// step does one thing at random.
func (f *fabric) step(r *rand.Rand, hosts []*host, note func(string, ...any), silent *bool) {
	i := r.IntN(len(f.leaves))
	l := f.leaves[i]
	c := f.controllers[r.IntN(len(f.controllers))]
	wires := f.wires()
	w := r.IntN(len(wires))
	b := binding{i, ports[r.IntN(len(ports))], vlans[r.IntN(len(vlans))]}
	name := names[r.IntN(len(names))]
	h := hosts[r.IntN(len(hosts))]
	ages := f.seed%4 == 0 // hosts may leave networks, which takes minutes to be seen
	switch r.IntN(24) {
	default:
		if all := slices.Collect(maps.Keys(f.intent.binds)); len(all) > 0 && r.IntN(8) > 0 {
			slices.SortFunc(all, func(x, y binding) int { return strings.Compare(fmt.Sprint(x), fmt.Sprint(y)) })
			b = all[r.IntN(len(all))]
		}
		if h.at != nil && f.intent.binds[*h.at] != "" && f.intent.binds[*h.at] != f.intent.binds[b] {
			if !ages {
				return
			}
			*silent = true
		}
		note("%v to %v", h.mac, b)
		h.at, h.new = &b, true
		f.speak(h)
		*silent = *silent || slices.ContainsFunc(f.controllers, func(c *controller) bool { return c.stop == nil })
	case 0:
		if ages {
			note("%v is silent", h.mac)
			h.at, h.new, *silent = nil, false, true
		}
	case 1:
		f.change(func(n *intent) {
			key := firstKey + r.IntN(4)
			if slices.Contains(slices.Collect(maps.Values(n.keys)), key) {
				key = 0
			}
			note("%s has key %d", name, key)
			n.keys[name] = key
		})
	case 2:
		if r.IntN(2) == 0 {
			return
		}
		note("%s is deleted", name)
		f.change(func(n *intent) {
			for _, h := range hosts {
				*silent = *silent || h.new && n.binds[*h.at] == name
			}
			delete(n.keys, name)
			maps.DeleteFunc(n.binds, func(_ binding, to string) bool { return to == name })
		})
	case 3, 4, 5, 6, 7:
		f.change(func(n *intent) {
			for _, vlan := range vlans {
				if _, there := n.keys[name]; !there || n.binds[binding{b.leaf, b.port, vlan}] == name {
					name = "" // a port is in a network once
				}
			}
			note("%v is bound to %q", b, name)
			for _, h := range hosts {
				*silent = *silent || h.new && *h.at == b // where it was before, it ages
			}
			if n.binds[b] = name; name == "" {
				delete(n.binds, b)
			}
		})
	case 8:
		note("connection %d hangs", w)
		wires[w].hangs.Store(true)
	case 9:
		note("connection %d is healed", w)
		wires[w].heal()
	case 10:
		note("connection %d is reset", w)
		wires[w].reset()
	case 11:
		note("connection %d is slow", w)
		wires[w].slow.Store(int64(1+r.IntN(500)) * int64(time.Millisecond))
	case 12:
		note("transactions of %s are refused", l.name)
		l.wire.abort.Store(int32(1 + r.IntN(3)))
	case 13:
		if l.quit != nil {
			note("%s ends", l.name)
			l.stop()
		} else {
			note("%s begins", l.name)
			l.start()
		}
	case 14:
		if c.stop != nil {
			note("controller %s ends", c.name)
			c.stop()
			for _, h := range hosts { // of two switches it does not know which one has a host, until the other has it no more
				*silent = *silent || h.new
			}
		} else {
			note("controller %s begins", c.name)
			c.start()
		}
	case 15:
		note("the database of %s ends", l.name)
		if l.db.stop(); r.IntN(2) == 0 {
			note("and begins")
			l.db.start()
		}
	}
}
