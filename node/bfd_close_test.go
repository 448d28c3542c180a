package node

import (
	"bytes"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"

	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// What sessions find is carried out while the good-byes of a tunnel are on their way, however it loses its sessions.
func TestGoodbyesWithoutLock(t *testing.T) {
	for what, end := range map[string]func(*Node, *tunnel) error{
		"tunnel closed": func(n *Node, x *tunnel) error { n.prober.closing(x); return nil },
		"VNI taken": func(n *Node, _ *tunnel) error {
			return n.Update(func(c *Config) error {
				c.Segments = append(c.Segments, Segment{VNI: 9})
				c.Tunnels[0].BFD.VNI = 8
				return nil
			})
		},
		"without BFD": func(n *Node, _ *tunnel) error {
			err := n.Update(func(c *Config) error { c.Tunnels[0].BFD = nil; return nil })
			n.prober.update()
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := memory.NewNetwork(nil)
				defer net.Close()
				n, err := New(&Options{Listen: func(x *Tunnel) (vtep.Underlay, error) { return net.Listen(x.AddrPort(), nil) }})
				must(t, err)
				defer n.Close()
				must(t, n.Apply(&Config{Tunnels: []Tunnel{{Config: vtep.Config{Name: "vx", Peers: vtep.ListedPerVNI}, Local: netip.MustParseAddr("192.0.2.1"), BFD: &BFD{VNI: 9}}}}))
				n.prober.update()
				x := n.tunnels["vx"]
				l := n.prober.probed[x]
				l.out.given.Add(1) // a packet that no worker sends
				ended := make(chan error)
				go func() { ended <- end(n, x) }()
				synctest.Wait() // it waits for the packet
				if len(l.vsi.Attachments()) != 1 || len(ended) != 0 {
					t.Error("it does not wait for the last packets")
				}
				if !n.prober.mu.TryLock() {
					t.Fatal("it waits with the lock")
				}
				n.prober.mu.Unlock()
				must(t, <-ended)
				if len(l.vsi.Attachments()) != 0 || len(n.prober.leaving) != 0 {
					t.Error("the tunnel is still in the VNI")
				}
			})
		})
	}
}

// Why a tunnel has no sessions is said once, and again when it is so again.
func TestBFDWarnsOnce(t *testing.T) {
	net := memory.NewNetwork(nil)
	defer net.Close()
	var log bytes.Buffer
	n, err := New(&Options{
		Listen: func(x *Tunnel) (vtep.Underlay, error) { return net.Listen(x.AddrPort(), nil) },
		Log:    slog.New(slog.NewTextHandler(&log, nil)),
	})
	must(t, err)
	defer n.Close()
	bfd := &BFD{VNI: 9}
	cfg := func(bfd *BFD) *Config {
		return &Config{Tunnels: []Tunnel{{Config: vtep.Config{Name: "vx", Peers: vtep.ListedPerVNI}, Local: netip.MustParseAddr("192.0.2.1"), BFD: bfd}}}
	}
	must(t, n.Apply(cfg(nil)))
	other, err := n.sw.VSI(77, nil)
	must(t, err)
	for round := 1; round <= 2; round++ {
		a, err := other.AttachWith(n.tunnels["vx"].v, 9, &vswitch.AttachConfig{KeepOpen: true})
		must(t, err)
		must(t, n.Apply(cfg(bfd)))
		for range 3 {
			n.prober.update()
		}
		if got := strings.Count(log.String(), "no BFD"); got != round || n.prober.probed[n.tunnels["vx"]] != nil {
			t.Errorf("round %d: %d warnings\n%s", round, got, &log)
		}
		must(t, a.Detach())
		n.prober.update()
		if n.prober.probed[n.tunnels["vx"]] == nil {
			t.Errorf("round %d: no sessions without the cause", round)
		}
		must(t, n.Apply(cfg(nil)))
		n.prober.update()
	}
}
