package underlay

import (
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/lab/underlaytest"
)

func TestReaderStates(t *testing.T) {
	var from *UDP
	var fromIP *IP
	readUDP := func(v *underlaytest.Veth, k int, group bool) *underlaytest.Subject {
		n := 110 + k
		if group {
			n += 20
		}
		a := v.Mine(n)
		u := listenAt(v, v.A, a, nil)
		r, i := u.readers[0], 0
		d, _ := runOf(64*8, 8, 0, 0, endpoint(v.T, a))
		d.TTL = 64
		if group {
			g := v.Group(k + 1)
			must(v.T, u.Join(g))
			r, i, d.TTL = u.groups.rx.reader, 1, 1
			d.To[0] = endpoint(v.T, netip.AddrPortFrom(g, 4789))
		}
		return subject(u, r, i, func() { send(v.T, from, d, d) })
	}
	underlaytest.States(t, func(v *underlaytest.Veth) {
		from, fromIP = listenAt(v, v.B, v.At(2, 4789), &UDPConfig{Checksum: ChecksumOn}), listenIPAt(v, v.B, v.At(2, 0).Addr())
		if err := from.Join(v.Group(99)); err != nil { // so that it sends to groups
			v.T.Fatal(err)
		}
	}, map[string]underlaytest.Kind{
		"UDP":   {Open: func(v *underlaytest.Veth, k int) *underlaytest.Subject { return readUDP(v, k, false) }},
		"group": {Open: func(v *underlaytest.Veth, k int) *underlaytest.Subject { return readUDP(v, k, true) }},
		"Portable": {Except: []underlaytest.State{underlaytest.Rest, underlaytest.BackOff}, Open: func(v *underlaytest.Veth, k int) *underlaytest.Subject {
			a := v.Mine(150 + k)
			var u ported
			v.A.Do(func() { u = portable(true)(v.T, a.String(), nil) })
			d := to("x", 0, endpoint(v.T, a))
			return &underlaytest.Subject{U: u, R: u.Readers()[0], Feed: func() { send(v.T, from, d) }, Rest: func() bool { return false }}
		}},
		"IP": {Except: []underlaytest.State{underlaytest.Rest}, Open: func(v *underlaytest.Veth, k int) *underlaytest.Subject {
			a := v.Mine(120 + k).Addr()
			u := listenIPAt(v, v.A, a)
			inner := make([]byte, 20)
			inner[0] = 0x45
			d := frame.Datagram{Parts: [][]byte{inner}, To: []frame.Endpoint{endpoint(v.T, netip.AddrPortFrom(a, 0))}, DF: true}
			return subject(u, u.readers[0], 0, func() { send(v.T, fromIP, d) })
		}},
	})
}

// subject is Reader i of an underlay, which is r.
func subject(u network, r *reader, i int, feed func()) *underlaytest.Subject {
	x := &underlaytest.Subject{U: u, R: u.Readers()[i], In: &r.Inbox, Feed: feed}
	call := r.call
	r.call = func(fd uintptr) bool { return x.Fails() || call(fd) }
	return x
}

// listenAt opens a UDP underlay at a host.
func listenAt(v *underlaytest.Veth, h *netns.Host, at netip.AddrPort, cfg *UDPConfig) (u *UDP) {
	h.Do(func() { u = listen(v.T, at.String(), cfg) })
	return u
}

func listenIPAt(v *underlaytest.Veth, h *netns.Host, a netip.Addr) *IP {
	return netns.Open(v.T, h, func() (*IP, error) { return ListenIP(a, nil) })
}
