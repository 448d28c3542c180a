package kernel

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// outage is a tunnel between our VTEP on a and the kernel's on b, and what is broken.
type outage struct {
	*ourNode
	fam  family
	dev  *port.Device
	a, b *netns.Host
}

const (
	innerA = "192.168.7.1"
	innerB = "192.168.7.2"
)

func newOutage(t *testing.T, fam family) *outage {
	t.Helper()
	n := netns.New(t)
	o := &outage{fam: fam, a: n.Host("a"), b: n.Host("b")}
	n.Link(o.a, fam.near+fam.bits, o.b, fam.far+fam.bits)
	for _, h := range []*netns.Host{o.a, o.b} {
		h.Sysctl("net.ipv6.conf.default.disable_ipv6", "1")
		h.Sysctl("net.ipv6.conf.all.keep_addr_on_down", "1") // as IPv4 does
	}
	o.ourNode = newNode(t, o.a, fam.near, settings{})
	o.vsi(vni, fam.far)
	o.attach()
	o.b.VXLAN("vx0", netns.VXLAN{ID: vni, Local: fam.far, Remote: fam.near, Dev: "eth0", Addr: innerB + "/24"})
	o.a.Ready()
	o.b.Ready()
	o.b.Ping(innerA, 2)
	return o
}

func (o *outage) attach() {
	o.t.Helper()
	mac, _ := frame.ParseMAC(devMAC)
	o.dev = o.tap(vni, o.a, "tap0", mac)
	o.a.Addr("tap0", innerA+"/24")
}

// answers reports whether one echo request is answered at once.
func answers(t *testing.T, h *netns.Host, addr string) bool {
	_, err := h.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "0.1", addr)
	return err == nil
}

// back wants answers in both directions within 1.5 s of now: a kernel that asked for a neighbour while the link was down asks again
// after one second (retrans_time_ms), and the echo request after that takes a moment.
func (o *outage) back() {
	o.t.Helper()
	for _, x := range []struct {
		h  *netns.Host
		to string
	}{{o.a, innerB}, {o.b, innerA}} {
		start := time.Now()
		for !answers(o.t, x.h, x.to) {
			if time.Since(start) > 10*time.Second {
				o.t.Fatalf("no answer to %s within 10 s: %+v", x.h.Name, o.Switch().Stats())
			}
		}
		d := time.Since(start)
		o.t.Logf("an answer to %s after %v", x.h.Name, d.Round(time.Millisecond))
		check.True(o.t, d <= 1500*time.Millisecond, "an answer to %s only after %v", x.h.Name, d)
	}
}

// silent sends some echo requests that nobody can answer.
func (o *outage) silent() {
	o.t.Helper()
	for range 3 {
		check.True(o.t, !answers(o.t, o.a, innerB), "there was an answer")
	}
}

// lost returns what the VTEP could not send, by reason.
func (o *outage) lost() map[string]uint64 {
	m := map[string]uint64{}
	p := o.port("vtep")
	for r, n := range p.TxDrops.All() {
		m[r.String()] = n
	}
	return m
}

// The underlay link goes down and comes up again.
func TestLinkDownAndUp(t *testing.T) {
	inFamilies(t, func(t *testing.T, fam family) {
		o := newOutage(t, fam)
		l := o.lost()
		check.True(t, len(l) == 0, "lost before: %v", l)
		o.a.IP("link", "set", "eth0", "down")
		o.silent()
		l = o.lost()
		check.True(t, l["unreachable"] != 0 && len(l) == 1, "lost while the link was down: %v, want some unreachable", l)
		o.a.Up("eth0")
		o.a.Ready()
		o.back()
	})
}

// The cable is pulled at the other end and put back: our end keeps its routes, and
// what it sends is lost on the way without a word.
func TestCarrierLostAndBack(t *testing.T) {
	inFamilies(t, func(t *testing.T, fam family) {
		o := newOutage(t, fam)
		o.b.IP("link", "set", "eth0", "down")
		o.silent()
		o.b.Up("eth0")
		o.a.Ready()
		o.b.Ready()
		o.back()
	})
}

// The address the sockets are bound to is taken from the host and put back.
func TestAddressRemovedAndBack(t *testing.T) {
	inFamilies(t, func(t *testing.T, fam family) {
		o := newOutage(t, fam)
		o.a.IP("addr", "del", fam.near+fam.bits, "dev", "eth0")
		o.silent()
		l := o.lost()
		t.Logf("lost: %v", l)
		check.True(t, l["unreachable"]+l["send-failed"] != 0, "lost without the address: %v", l)
		o.a.Addr("eth0", fam.near+fam.bits)
		o.back()
	})
}

// The TAP device is deleted under traffic. The program is told, makes it anew, and the
// tunnel works again.
func TestDeviceDeletedAndBack(t *testing.T) {
	inFamilies(t, func(t *testing.T, fam family) {
		o := newOutage(t, fam)
		events := o.Switch().Events()
		defer events.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		for round := range 3 {
			traffic := o.traffic()
			o.a.IP("link", "del", "tap0")
			ev := o.portDown(ctx, events)
			check.True(t, ev.Err != nil && strings.Contains(ev.Err.Error(), "tap0"), "round %d: %+v", round, ev)
			for _, p := range o.Switch().Stats().Ports {
				check.True(t, p.Name != "tap0", "round %d: the port is still there", round)
			}
			// What comes from the tunnel has nowhere to go.
			before := o.noEgress()
			o.a.Until("a frame without egress is counted", func() bool { return o.noEgress() > before })
			o.must(o.segment(vni).Remove(o.dev))
			o.attach()
			o.back()
			traffic()
		}
	})
}

func (o *outage) noEgress() uint64 { return o.port("vtep").RxDrops[frame.NoEgress] }

func (o *outage) portDown(ctx context.Context, events *vswitch.Events) frame.Event {
	o.t.Helper()
	for {
		ev, err := events.Next(ctx)
		check.Need(o.t, err == nil, "no PortDown: %v", err)
		if ev.Kind == frame.EventPortDown {
			return ev
		}
	}
}

// traffic sends frames from the kernel's side until stop.
func (o *outage) traffic() (stop func()) {
	p := o.b.Start("ping", "-n", "-q", "-i", "0.002", innerA)
	var once sync.Once
	stop = func() { once.Do(func() { p.Stop() }) }
	o.t.Cleanup(stop)
	return stop
}
