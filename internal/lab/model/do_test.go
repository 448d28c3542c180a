package model

import (
	"fmt"
	"net/netip"
	"slices"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// What can happen to a fabric. Each method does it to the fabric and to the model;
// one that does not apply in the present state does nothing. An error is a
// disagreement.

// vsiOf returns the number of the VSI that node i has for a network.
func (w *world) vsiOf(i, net int) frame.VNI { return w.t.nets[net].vni + w.shift(i, net) }

func (w *world) shift(i, net int) frame.VNI {
	if w.t.nets[net].vni == frame.MaxVNI {
		return 0
	}
	return w.t.nodes[i].shift
}

func agree(what string, got error, want bool) error {
	if (got == nil) != want {
		return fmt.Errorf("%s: got error %v, want success %v", what, got, want)
	}
	return nil
}

func (w *world) attachHost(id, i, net int, tag uint32, cfg vswitch.AttachConfig, mtu int) error {
	p := w.place[id]
	if p == nil {
		p = &where{node: -1}
		w.place[id] = p
	}
	if p.node >= 0 && p.node != i {
		return nil
	}
	if p.node < 0 && !p.paused {
		p.mtu = mtu
		w.l.plug(id, mtu, w.queue)
	}
	longest := p.mtu
	if longest == 0 {
		longest = 1514
	}
	n, vni, vc := w.g.nodes[i], w.vsiOf(i, net), w.t.nets[net].cfg
	ok, fresh := w.g.attach(n, n.vsi(vni, vc), id, longest, tag, cfg)
	if err := agree("attach", w.l.nodes[i].attach(vni, vc, id, tag, cfg), ok); err != nil {
		return err
	}
	if fresh {
		p.node, p.paused = i, false
		for _, b := range p.wait {
			w.g.fromHost(n, n.ports[id], b)
			w.g.settle()
		}
		p.wait = nil
	}
	return nil
}

func (w *world) attachTunnel(i, net int, cfg vswitch.AttachConfig) error {
	n, vni, vc := w.g.nodes[i], w.vsiOf(i, net), w.t.nets[net].cfg
	if !n.listening {
		if err := w.l.nodes[i].listen(); err != nil {
			return err
		}
		n.listening = true
	}
	ok, fresh := w.g.attach(n, n.vsi(vni, vc), vtepPort, 0, uint32(w.t.nets[net].vni), cfg)
	if err := agree("attach", w.l.nodes[i].attach(vni, vc, vtepPort, uint32(w.t.nets[net].vni), cfg), ok); err != nil {
		return err
	}
	if fresh {
		came := n.waiting
		n.waiting = nil
		for _, d := range came {
			w.g.fromWire(n, d)
			w.g.settle()
		}
	}
	if _, set := n.flood[w.t.nets[net].vni]; ok && !set {
		synctest.Wait() // what had waited goes by no list
		return w.setFlood(i, net, w.t.floodList(nil, i, net, false))
	}
	return nil
}

func (w *world) detach(i, net, port int) error {
	n, key := w.g.nodes[i], attKey{w.vsiOf(i, net), port}
	a := w.l.nodes[i].atts[key]
	if a == nil {
		return nil
	}
	delete(w.l.nodes[i].atts, key)
	if err := a.Detach(); err != nil {
		return err
	}
	p := n.ports[port]
	if len(p.members) == 1 {
		w.g.leave(n, p, "")
		w.left(i, p)
	} else {
		w.g.detach(n, n.vsis[key.vni].on(port))
	}
	return nil
}

// left notes that a port is no longer part of a switch.
func (w *world) left(i int, p *gport) {
	switch {
	case p.id != vtepPort:
		w.place[p.id].node, w.place[p.id].paused = -1, p.keep
	case !p.keep:
		w.tunnelGone(i)
	}
}

func (w *world) tunnelGone(i int) {
	n := w.g.nodes[i]
	n.listening, n.waiting = false, nil
	clear(n.added)
	clear(n.flood)
	w.l.nodes[i].setVTEP(nil)
}

// fail closes a port behind the switch's back.
func (w *world) fail(i, port int) error {
	n := w.g.nodes[i]
	p := n.ports[port]
	if port == vtepPort {
		if !n.listening {
			return nil
		}
		w.l.nodes[i].vtep.Close()
	} else if p != nil {
		w.l.hosts[port].Close()
	}
	if p != nil {
		for _, a := range p.members {
			delete(w.l.nodes[i].atts, attKey{a.vsi.vni, port})
		}
		w.g.leave(n, p, "closed")
		p.keep = false
		if port != vtepPort {
			w.left(i, p)
		}
	}
	w.l.settle()
	if port == vtepPort {
		w.tunnelGone(i)
	}
	return nil
}

func (w *world) send(id int, b []byte) error {
	p := w.place[id]
	switch {
	case p == nil || p.node < 0 && !p.paused:
		return nil
	case p.paused && len(p.wait) >= 3:
		return nil
	}
	mtu := p.mtu
	if mtu == 0 {
		mtu = 1514
	}
	fits := len(b) <= mtu+4
	if err := agree("send", w.l.hosts[id].Send(b), fits); err != nil || !fits {
		return err
	}
	if p.paused {
		p.wait = append(p.wait, b)
		return nil
	}
	w.g.fromHost(w.g.nodes[p.node], w.g.nodes[p.node].ports[id], b)
	return nil
}

func (w *world) inject(i, net int, b []byte) error {
	for _, v := range w.l.nodes[i].VSIs() {
		if v.VNI() == w.vsiOf(i, net) {
			f := frame.Make(b)
			if !w.l.nodes[i].Inject(v, &f) {
				return fmt.Errorf("inject: refused")
			}
			w.g.inject(w.g.nodes[i], v.VNI(), b)
		}
	}
	return nil
}

// raw sends a datagram from an outsider to a VTEP.
func (w *world) raw(k int, to netip.Addr, payload []byte) error {
	if err := w.l.outside[k].send(netip.AddrPortFrom(to, w.t.udp), payload); err != nil {
		return err
	}
	w.g.send(w.t.outside[k].Addr(), netip.AddrPortFrom(to, w.t.udp), payload)
	return nil
}

func (w *world) setFlood(i, net int, to []netip.Addr) error {
	n, vni := w.g.nodes[i], w.t.nets[net].vni
	if !n.listening {
		return nil
	}
	var list []netip.Addr
	for _, a := range to {
		if !slices.Contains(list, a) && !slices.Contains(n.addrs, a) {
			list = append(list, a)
		}
	}
	ok := len(to) == 0 || n.ports[vtepPort] != nil && n.ports[vtepPort].tagged(uint32(vni)) != nil
	if ok {
		n.flood[vni] = list
	}
	return agree("flood", w.l.nodes[i].vtep.SetFlood(vni, w.l.endpoints(to)...), ok)
}

func (w *world) link(from, to netip.Addr, cut bool) error {
	key := [2]netip.Addr{from, to}
	if cut {
		w.g.cut[key] = true
		w.l.net.SetLink(from, to, cutLink)
	} else {
		delete(w.g.cut, key)
		w.l.net.ClearLink(from, to)
	}
	return nil
}

// set makes an entry. at is ownPort, a host that is a member, or vtepPort with peer.
func (w *world) set(i, net int, mac frame.MAC, at dest, f fdb.Flags) error {
	n, vni := w.g.nodes[i], w.vsiOf(i, net)
	v := n.vsis[vni]
	if v == nil {
		return nil
	}
	var d frame.Dest
	if at.port != ownPort {
		a := w.l.nodes[i].atts[attKey{vni, at.port}]
		if a == nil {
			return nil
		}
		num := uint16(0)
		if at.peer.IsValid() {
			var err error
			if num, err = w.l.nodes[i].vtep.AddPeer(netip.AddrPortFrom(at.peer, 0)); err != nil {
				return err
			}
			n.added[at.peer] = true
		}
		d = a.Dest(num)
	}
	want := v.set(mac, at, f)
	var got error
	for _, x := range w.l.nodes[i].VSIs() {
		if x.VNI() == vni {
			got = x.FDB().Set(mac, d, f)
		}
	}
	if got != want {
		return fmt.Errorf("set: got %v, want %v", got, want)
	}
	return nil
}

func (w *world) onTable(i, net int, do func(real *vswitch.VSI, model *gvsi) error) error {
	for _, x := range w.l.nodes[i].VSIs() {
		if x.VNI() == w.vsiOf(i, net) {
			return do(x, w.g.nodes[i].vsis[x.VNI()])
		}
	}
	return nil
}

func (w *world) remove(i, net int, mac frame.MAC) error {
	return w.onTable(i, net, func(x *vswitch.VSI, v *gvsi) error {
		want := v.fdb[mac] != nil
		delete(v.fdb, mac)
		if got := x.FDB().Delete(mac); got != want {
			return fmt.Errorf("delete: got %v, want %v", got, want)
		}
		return nil
	})
}

func (w *world) flush(i, net int) error {
	return w.onTable(i, net, func(x *vswitch.VSI, v *gvsi) error {
		for mac, e := range v.fdb {
			if e.origin == learned {
				delete(v.fdb, mac)
			}
		}
		x.FDB().Flush()
		return nil
	})
}

func (w *world) configure(i, net int, cfg vswitch.VSIConfig) error {
	return w.onTable(i, net, func(x *vswitch.VSI, v *gvsi) error {
		v.cfg = cfg
		return x.Configure(cfg)
	})
}

func (w *world) reattach(i, net, port int, cfg vswitch.AttachConfig) error {
	return w.onTable(i, net, func(x *vswitch.VSI, v *gvsi) error {
		a := w.l.nodes[i].atts[attKey{v.vni, port}]
		if a == nil {
			return nil
		}
		m := v.on(port)
		cfg.KeepOpen = m.cfg.KeepOpen
		m.cfg = cfg
		return a.Configure(cfg)
	})
}

func (w *world) deleteVSI(i, net int) error {
	return w.onTable(i, net, func(x *vswitch.VSI, v *gvsi) error {
		if err := x.Delete(); err != nil {
			return err
		}
		n := w.g.nodes[i]
		for _, a := range slices.Clone(v.members) {
			delete(w.l.nodes[i].atts, attKey{v.vni, a.port.id})
			if len(a.port.members) == 1 {
				w.g.leave(n, a.port, "")
				w.left(i, a.port)
			} else {
				w.g.detach(n, a)
			}
		}
		delete(n.vsis, v.vni)
		return nil
	})
}

func (w *world) sleep(d time.Duration) error {
	time.Sleep(d)
	return nil
}

// settle lets fabric and model come to rest, and compares them.
func (w *world) settle() error {
	w.l.settle()
	w.g.settle()
	w.g.pass(time.Since(w.l.started))
	return w.check()
}
