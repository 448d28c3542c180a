package port

import (
	"errors"
	"fmt"
	"net"

	"github.com/vxswitch/vxswitch/internal/sys"
)

// watch begins to follow the interface and the guest's end. For the latter its other end tells: it goes with it.
func (g *glue) watch(d *Device) error {
	if err := g.follow(d, g.host.Index, true); err != nil {
		return err
	}
	if g.hidden != nil {
		return g.hidden.Do(func() error { return g.follow(d, g.near.Index, false) })
	}
	if g.host.Kind == "veth" { // receives all frames anyway
		return nil
	}
	s, err := sys.OpenPacket(sys.PacketMode{Buffer: 1})
	if err != nil {
		return fmt.Errorf("packet socket: %w", needs("CAP_NET_RAW", err))
	}
	g.all = s
	if err := s.Promiscuous(g.host.Index); err != nil {
		return fmt.Errorf("PACKET_MR_PROMISC: %w", err)
	}
	return nil
}

// follow has the port fail with a device, and with host adopt its MTU.
func (g *glue) follow(d *Device, index int, host bool) error {
	w, err := sys.WatchLink(index)
	if err != nil {
		return fmt.Errorf("following the interface: %w", err)
	}
	g.watches = append(g.watches, w)
	g.running.Go(func() {
		for {
			switch s, err := w.Next(); {
			case d.closed.Load():
				return
			case err != nil:
				d.lose(fmt.Errorf("following the interface: %w", err))
				return
			case s.Gone:
				d.lose(fmt.Errorf("it was deleted, or moved to another network namespace: %w", sys.EBADFD))
				return
			case host:
				g.carrier.Store(s.Carrier)
				d.look() // what is told may be older than what Hook has seen
			}
		}
	})
	return nil
}

// lose breaks the port. The TAP goes, so that Readers and Writers find out as they always do.
func (d *Device) lose(err error) {
	g := d.glue
	if !g.lost.CompareAndSwap(nil, &err) {
		return
	}
	if g.home.Delete(g.tap.Index) != nil { // it is somewhere else
		d.Pause()
	}
}

// hostMTU adopts the MTU of the interface if that has changed. glue.mu is held.
func (d *Device) hostMTU(mtu int) {
	g := d.glue
	if mtu == g.hostMTU {
		return
	}
	g.hostMTU = mtu
	d.mtu.Store(int64(mtu))
	_ = g.setTAP(mtu)
	if g.hidden != nil && g.atGuest(sys.LinkChange{MTU: mtu}) == nil {
		g.guestMTU = mtu
	}
}

// look adopts the MTU of the interface and of the guest's end if one has changed.
func (d *Device) look() {
	g := d.glue
	g.mu.Lock()
	defer g.mu.Unlock()
	if host, err := g.home.ByIndex(g.host.Index, sys.Here); err == nil {
		d.hostMTU(host.MTU)
	}
	if g.hidden == nil {
		return
	}
	near, err := g.hidden.ByIndex(g.near.Index, sys.Here)
	if err != nil {
		return
	}
	guest, err := g.hidden.ByIndex(near.Peer, near.PeerNS)
	if err != nil || guest.MTU == g.guestMTU {
		return
	}
	g.guestMTU, g.hostMTU = guest.MTU, guest.MTU
	d.mtu.Store(int64(guest.MTU))
	_ = g.home.Change(g.host.Index, sys.LinkChange{MTU: guest.MTU})
	_ = g.setTAP(guest.MTU)
}

// setMTU sets the MTU of all devices.
func (d *Device) setMTU(mtu int) error {
	g := d.glue
	g.mu.Lock()
	defer g.mu.Unlock()
	if d.closed.Load() {
		return net.ErrClosed
	}
	if g.hidden != nil { // first, since it may be out of reach
		switch err := g.atGuest(sys.LinkChange{MTU: mtu}); {
		case errors.Is(err, errElsewhere):
			return fmt.Errorf("%w: set its MTU there", err)
		case err != nil:
			return privilege(err)
		}
		g.guestMTU = mtu
	}
	if err := g.home.Change(g.host.Index, sys.LinkChange{MTU: mtu}); err != nil {
		return privilege(err)
	}
	g.hostMTU = mtu
	d.mtu.Store(int64(mtu))
	return privilege(g.setTAP(mtu))
}

// setTAP sets the MTU of the TAP, which is only for show.
func (g *glue) setTAP(mtu int) error {
	return g.home.Change(g.tap.Index, sys.LinkChange{MTU: min(mtu, maxMTU-ethLen)})
}
