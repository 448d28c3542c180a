package underlay

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/lab/underlaytest"
)

// Each mode's datagrams have the checksum it says, on the same ports.
func TestWireSetChecksums(t *testing.T) {
	underlaytest.InNamespace(t, func(t *testing.T) {
		dst := frame.Endpoint{IP: [16]byte{10: 0xff, 11: 0xff, 12: 10, 13: 9, 14: 0, 15: 2}, Port: 4789}
		c := underlaytest.NewCapture(t, "vb")
		u := listen(t, "10.9.0.1:4789", &UDPConfig{Checksum: ChecksumOn, SrcPorts: PortRange{45000, 45000}})
		off, err := u.Sockets(TxConfig{Checksum: ChecksumOff})
		if err != nil {
			t.Error(err)
			return
		}
		for _, set := range []uint8{0, off, 0} {
			d, e := to("x", 1, dst), to("y", 1, dst)
			d.Set, e.Set, e.DF = set, set, false
			send(t, u, d, e)
			for _, df := range []byte{0x40, 0} {
				p := c.Packet(t)
				if has := p[26] != 0 || p[27] != 0; has != (set == 0) || p[6] != df || p[20] != 45000>>8 || p[21] != 45000&0xff {
					t.Errorf("set %d: % x", set, p)
				}
			}
		}
	})
}

// Ports that are taken are tried again after a while.
func TestUDPSetRecovers(t *testing.T) {
	u := listen(t, "127.0.0.1:0", nil)
	taken := listen(t, "127.0.0.1:0", &UDPConfig{SrcPorts: PortRange{26001, 26001}})
	set := check.Must(u.Sockets(TxConfig{SrcPorts: PortRange{26001, 26001}}))(t)
	ds := []frame.Datagram{to("x", 1, endpoint(t, u.LocalAddr()))}
	ds[0].Set = set
	send(t, u, ds...)
	if ds[0].Drop != frame.SendFailed {
		t.Fatalf("sent from a port that is taken: %v", ds[0].Drop)
	}
	taken.Close()
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if send(t, u, ds...); ds[0].Lost == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("still %v", ds[0].Drop)
		}
	}
	if r := receive(t, u, 1)[0]; r.Outer.Src.Port != 26001 {
		t.Errorf("from %v", r.Outer.Src)
	}
}

// Many workers need the same new sockets at once.
func TestUDPSetsTogether(t *testing.T) {
	u := listen(t, "127.0.0.1:0", nil)
	self := endpoint(t, u.LocalAddr())
	set, err := u.Sockets(TxConfig{SrcPorts: PortRange{27000, 27999}})
	must(t, err)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 20 {
				d, _ := runOf(25, 10, 4, uint16(i<<12), self)
				d.Set, d.DF = set, i%2 == 0
				e := to("lone", uint16(i<<12), self)
				e.Set = set
				ds := []frame.Datagram{d, e}
				if err := u.Sender(w).Send(ds); err != nil || ds[0].Lost+ds[1].Lost != 0 {
					t.Error(err, ds[0].Drop, ds[1].Drop)
				}
			}
		})
	}
	receive(t, u, 4*20*4)
	wg.Wait()
	p := u.sets.Get(set).ports
	for k := range p.kinds {
		var ports []uint16
		if x := p.kinds[k].Load(); x != nil {
			for _, s := range x.socks {
				ports = append(ports, s.port)
			}
			if !slices.Equal(ports, *p.ports.Load()) {
				t.Errorf("kind %d: ports %v", k, ports)
			}
		}
	}
}

// Sockets that are opened late are in the namespace of the others, whoever sends first.
func TestUDPLateSocketsNamespace(t *testing.T) {
	h := netns.New(t).Host("a")
	var u *UDP
	h.Do(func() { u = listen(t, "127.0.0.1:0", nil) })
	self := endpoint(t, u.LocalAddr())
	set := check.Must(u.Sockets(TxConfig{SrcPorts: PortRange{27000, 27999}}))(t)
	d, _ := runOf(20, 10, 4, 1, self)
	e := to("x", 1, self)
	e.DF = false
	f := to("y", 1, self)
	f.Set = set
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ds := []frame.Datagram{d, e, f}
	send(t, u, ds...)
	for i := range ds {
		if ds[i].Lost != 0 {
			t.Errorf("datagram %d: %v", i, ds[i].Drop)
		}
	}
	receive(t, u, 4)
	s := check.Must(unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0))(t)
	defer unix.Close(s)
	here := check.Must(unix.GetsockoptUint64(s, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE))(t)
	late := u.sets.Get(set).ports.kinds[0].Load().socks[0]
	_ = late.raw.Control(func(fd uintptr) {
		if there, _ := unix.GetsockoptUint64(int(fd), unix.SOL_SOCKET, unix.SO_NETNS_COOKIE); there == here {
			t.Error("in the namespace of the sender's thread")
		}
	})
}
