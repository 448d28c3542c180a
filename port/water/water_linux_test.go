package water_test

import (
	"context"
	"encoding/binary"
	"net"
	"strings"
	"testing"

	songgao "github.com/songgao/water"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/wire"
	"github.com/vxswitch/vxswitch/port"
	"github.com/vxswitch/vxswitch/port/water"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

func openWater(t *testing.T, h *netns.Host, typ songgao.DeviceType, name string, cfg *water.Config) *port.ReadWriteCloser {
	t.Helper()
	return netns.Open(t, h, func() (*port.ReadWriteCloser, error) { return water.OpenNamed(name, typ == songgao.TUN, cfg) })
}

// A TAP of water and one of our own, in two namespaces, on one switch.
func TestWaterTAPOnASwitch(t *testing.T) {
	n := netns.New(t)
	a, b := n.Host("a"), n.Host("b")
	wtap := openWater(t, a, songgao.TAP, "water0", nil)
	if wtap.MTU(0) != 1514 || wtap.Name() != "water0" {
		t.Errorf("MTU %d", wtap.MTU(0))
	}
	tap := netns.Open(t, b, func() (*port.Device, error) { return port.OpenTAP("tap0", nil) })
	sw, err := vswitch.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	vsi, err := sw.VSI(1, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []port.Port{wtap, tap} {
		if _, err := vsi.Attach(p, 0); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- sw.Run(ctx) }()
	a.Up("water0")
	a.Addr("water0", "10.9.0.1/24,fd09::1/64")
	b.Addr("tap0", "10.9.0.2/24,fd09::2/64")
	a.Ping("10.9.0.2", 2)
	a.Ping("fd09::2", 2)
	b.Ping("10.9.0.1", 2)
	a.Run("ping", "-c", "1", "-W", "5", "-s", "1472", "-M", "do", "10.9.0.2")
	cancel()
	<-ended
}

// The test is the far side of a TUN and answers echo requests.
func TestWaterTUNAnswers(t *testing.T) {
	h := netns.New(t).Host("h")
	tun := openWater(t, h, songgao.TUN, "wtun0", nil)
	if tun.MTU(0) != 1500 {
		t.Errorf("MTU %d", tun.MTU(0))
	}
	h.Up("wtun0")
	h.Addr("wtun0", "10.8.0.1/24,fd08::1/64")
	done := make(chan bool)
	go func() {
		defer close(done)
		w, b := tun.Writer(0), frame.NewBatch(nil)
		for tun.Readers()[0].Read(b) == nil {
			f := &b.Frames[0]
			if !echo(f) {
				continue
			}
			if o := []frame.Out{{F: f}}; w.Write(o) != nil || o[0].Drop != frame.NotDropped {
				t.Errorf("Write: %v", o[0].Drop)
			}
		}
	}()
	h.Ping("10.8.0.2", 2)
	h.Ping("fd08::2", 2)
	tun.Close()
	<-done
}

// echo turns an echo request into its reply: addresses exchanged, type changed, and
// the checksum with it (RFC 792; RFC 4443, section 4).
func echo(f *frame.Frame) bool {
	p := f.Bytes()
	at, addr, n, request, reply := 20, 12, 4, byte(8), byte(0)
	if f.Kind == frame.IPv6 {
		at, addr, n, request, reply = 40, 8, 16, 128, 129
	}
	if len(p) < at+8 || p[at] != request {
		return false
	}
	for i := range n {
		p[addr+i], p[addr+n+i] = p[addr+n+i], p[addr+i]
	}
	sum := binary.BigEndian.Uint16(p[at+2:])
	binary.BigEndian.PutUint16(p[at+2:], wire.Update(sum, uint16(request)<<8, uint16(reply)<<8))
	p[at] = reply
	return true
}

func TestWaterOpenErrors(t *testing.T) {
	h := netns.New(t).Host("h")
	long := songgao.Config{DeviceType: songgao.TAP}
	long.Name = strings.Repeat("x", 16)
	h.Do(func() {
		if _, err := water.Open(long, nil); err == nil || !strings.Contains(err.Error(), "water.Config.Name") {
			t.Errorf("a name of 16 bytes: %v", err)
		}
		fits := long
		fits.Name = long.Name[:15]
		if p, err := water.Open(fits, &water.Config{MTU: -1}); err == nil || p != nil {
			t.Errorf("MTU -1: %v", err)
		}
		if _, err := net.InterfaceByName(fits.Name); err == nil {
			t.Error("the device of a failed Open is left")
		}
		p, err := water.Open(fits, &water.Config{MTU: 9000})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if p.MTU(0) != 9014 {
			t.Errorf("MTU %d", p.MTU(0))
		}
	})
}
