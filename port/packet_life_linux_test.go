package port

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// The interface goes down and comes up, gets another name and another MTU; the switch goes on.
func TestPacketInterfaceChanges(t *testing.T) {
	for _, queues := range []int{1, 2} {
		t.Run(fmt.Sprint(queues), func(t *testing.T) {
			n := netns.New(t)
			h, m := n.Host("h"), n.Host("m")
			m.Quiet()
			n.Link(h, "10.9.0.1/24", m, "")
			m.IP("link", "set", "eth0", "down") // open while it is down
			p := openPacket(t, m, "eth0", &PacketConfig{Queues: queues})
			tap := openTAP(t, m, "tap0", nil)
			switched(t, []uint32{0, 0}, p, tap)
			m.Addr("tap0", "10.9.0.2/24")
			m.Up("eth0")
			h.Ready()
			h.Ping("10.9.0.2", 1)
			for i := range 3 {
				m.IP("link", "set", "eth0", "down")
				m.IP("link", "set", "eth0", "name", "other0")
				m.MTU("other0", 1400+i)
				fake.Until(t, "the MTU follows", func() bool { return p.MTU(0) == 1414+i })
				m.IP("link", "set", "other0", "name", "eth0")
				m.Up("eth0")
				h.Ready()
				h.Ping("10.9.0.2", 1)
			}
			m.IP("link", "add", "br9", "type", "bridge")
			m.IP("link", "set", "eth0", "master", "br9")
			m.IP("link", "set", "eth0", "nomaster")
			h.Ping("10.9.0.2", 1)
			if p.Name() != "eth0" || !has(t, m, "eth0") {
				t.Errorf("name %q", p.Name())
			}
		})
	}
}

// A deleted interface ends the port, whether it was up or down, busy or idle, paused or not.
func TestPacketInterfaceGone(t *testing.T) {
	for name, gone := range map[string]func(m, far *netns.Host){
		"deleted":       func(m, far *netns.Host) { m.IP("link", "del", "eth0") },
		"its peer":      func(m, far *netns.Host) { far.IP("link", "del", "eth0") },
		"moved":         func(m, far *netns.Host) { m.IP("link", "set", "eth0", "netns", far.NS, "name", "eth9") },
		"while down":    func(m, far *netns.Host) { m.IP("link", "set", "eth0", "down"); m.IP("link", "del", "eth0") },
		"under traffic": nil,
	} {
		t.Run(name, func(t *testing.T) {
			p, m, far := cabled(t, &PacketConfig{Queues: 2})
			if gone == nil {
				far.Addr("eth0", "10.9.0.1/24")
				far.Neighbour("eth0", "10.9.0.2", "02:00:00:00:00:ee")
				flood(t, far, "10.9.0.2:7000")
				gone = func(m, far *netns.Host) { m.IP("link", "del", "eth0") }
			}
			events := switched(t, []uint32{0, 0}, p, NewPipe(nil)).Events()
			defer events.Close()
			time.Sleep(20 * time.Millisecond)
			gone(m, far)
			if err := portDown(t, events); !errors.Is(err, unix.ENODEV) || !strings.Contains(err.Error(), `port: interface "eth0": it was deleted, or moved`) {
				t.Errorf("event %v", err)
			}
			if err := p.Readers()[1].Read(frame.NewBatch(nil)); !errors.Is(err, net.ErrClosed) { // by the switch
				t.Errorf("Read: %v", err)
			}
		})
	}
	p, m, _ := cabled(t, nil)
	p.Pause()
	m.IP("link", "del", "eth0")
	fake.Until(t, "Read says so", func() bool { return errors.Is(p.Readers()[0].Read(frame.NewBatch(nil)), unix.ENODEV) })
	p.Resume()
	for range 2 {
		if err := p.Readers()[0].Read(frame.NewBatch(nil)); !errors.Is(err, unix.ENODEV) {
			t.Errorf("Read: %v", err)
		}
	}
}

func TestPacketCloseRacesWithEverything(t *testing.T) {
	for range 5 {
		p, m, far := cabled(t, &PacketConfig{Queues: 2})
		far.Inject("eth0", fake.Ethernet(60, 0), fake.Ethernet(1514, 0))
		m.MTU("eth0", 1600)
		closeRaces(t, p, p, func() { p.Stats() })
	}
}
