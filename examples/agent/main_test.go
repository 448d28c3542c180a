package main

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A site is an agent whose TAP is a Pipe, and whose tunnel goes through a network in memory.
type site struct {
	*agent
	t    *testing.T
	pipe *port.Pipe
	tcp  net.Listener
	stop func()
}

func sites(t *testing.T, locals ...string) (list []*site) {
	wire := memory.NewNetwork(nil)
	t.Cleanup(func() { wire.Close() })
	var others []string
	for _, local := range locals {
		o := node.Options{Listen: func(t *node.Tunnel) (vtep.Underlay, error) { return wire.Listen(t.AddrPort(), nil) }}
		s := &site{t: t, agent: check.Must(newAgent(o, netip.MustParseAddr(local), 100))(t), pipe: port.NewPipe(nil)}
		check.OK(t, s.segment.Add(s.pipe, nil))
		s.tcp = check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
		others = append(others, s.tcp.Addr().String())
		list = append(list, s)
	}
	for i, s := range list {
		s.peers = append(append(s.peers, others[:i]...), others[i+1:]...)
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() {
			if err := s.run(ctx, s.tcp); err != nil {
				t.Error(err)
			}
		})
		s.stop = sync.OnceFunc(func() {
			cancel()
			running.Wait()
			s.node.Close()
		})
		t.Cleanup(s.stop)
	}
	return list
}

// at waits until a site has a MAC at a peer or port, as an entry of a kind.
func (s *site) at(mac frame.MAC, name string, o fdb.Origin) {
	s.t.Helper()
	v := check.Must(s.segment.Switch())(s.t)
	fake.Until(s.t, "the MAC at "+name, func() bool {
		for e := range v.FDB().All() {
			if e.MAC == mac {
				return e.Origin == o && s.node.Switch().Name(e.Dest) == name
			}
		}
		return name == ""
	})
}

func (s *site) send(dst, src frame.MAC, text string) {
	s.t.Helper()
	check.OK(s.t, s.pipe.Send(append(append(append(dst[:], src[:]...), 0x88, 0xb5), text...)))
}

// One agent hears of the other's host before the host has sent it anything, when it moves, and when it is gone.
func TestAgents(t *testing.T) {
	host := frame.MAC{2, 0, 0, 0, 0, 1}
	all := sites(t, "192.0.2.1", "192.0.2.2", "192.0.2.3")
	a, b, c := all[0], all[1], all[2]
	for _, s := range all {
		fake.Until(t, "flood lists", func() bool {
			n := 0
			for _, p := range s.peers {
				for r := range s.node.Plane().Rows(p) {
					if _, ok := r.(control.Flood); ok {
						n++
					}
				}
			}
			return n == 2
		})
	}
	a.send(frame.MAC{2, 0, 0, 0, 0, 99}, host, "unknown unicast, which nobody gets")
	a.at(host, "pipe", fdb.OriginLearned)
	b.at(host, "192.0.2.1:4789", fdb.OriginControl)
	c.at(host, "192.0.2.1:4789", fdb.OriginControl)
	c.send(host, frame.MAC{2, 0, 0, 0, 0, 3}, "hello")
	for {
		f, err := a.pipe.Recv(t.Context())
		check.OK(t, err)
		if string(f[14:]) == "hello" {
			break
		}
	}

	moved, stop := context.WithCancel(t.Context())
	var talking sync.WaitGroup
	talking.Go(func() { // a switch may miss to learn from a single frame
		for ; moved.Err() == nil; time.Sleep(10 * time.Millisecond) {
			b.send(frame.Broadcast, host, "here I am now")
		}
	})
	b.at(host, "pipe", fdb.OriginLearned)
	a.at(host, "192.0.2.2:4789", fdb.OriginControl)
	c.at(host, "192.0.2.2:4789", fdb.OriginControl)
	stop()
	talking.Wait()

	b.stop()
	a.at(host, "", 0)
	c.at(host, "", 0)
}
