package node

import (
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/policy"
)

// A change of what may pass, applied under traffic: of datagrams that are sent after Apply has
// returned none arrives, nor does one of those that answer them; and once it is taken back all
// goes on.
func TestPolicyChangesUnderTraffic(t *testing.T) {
	for _, c := range []struct {
		name  string
		deny  func(c *Config)
		start func(c *Config)
	}{
		{name: "a rule in front", deny: func(c *Config) {
			p := &c.Policies[0]
			p.Rules = append([]policy.Rule{{Name: "no", Action: policy.Deny, Protocol: 17}}, p.Rules...)
		}},
		{name: "a rule that goes", deny: func(c *Config) { c.Policies[0].Rules = c.Policies[0].Rules[:1] }},
		{name: "a set", start: func(c *Config) { c.Policies[0].Rules[1].SrcSet = "admins" },
			deny: func(c *Config) { c.Policies[0].Sets["admins"] = []netip.Prefix{} }},
		{name: "a policy where there was none", start: func(c *Config) { c.Segments[0].Policy = "" }, deny: func(c *Config) {
			c.Segments[0].Policy = "office"
			c.Policies[0].Rules = c.Policies[0].Rules[:1]
		}},
		{name: "another policy", deny: func(c *Config) {
			c.Policies = append(c.Policies, Policy{Name: "closed", Config: policy.Config{Default: policy.Deny}})
			c.Segments[0].Policy = "closed"
		}},
		{name: "a guard", deny: func(c *Config) {
			for i := range c.Segments[0].Members {
				c.Segments[0].Members[i].Guard.Addrs = []netip.Prefix{netip.MustParsePrefix("10.0.0.99/32")}
			}
		}},
		{name: "a guard where there was none", start: func(c *Config) {
			for i := range c.Segments[0].Members {
				c.Segments[0].Members[i].Guard = nil
			}
		}, deny: func(c *Config) {
			for i := range c.Segments[0].Members {
				c.Segments[0].Members[i].Guard = &policy.GuardConfig{Addrs: []netip.Prefix{netip.MustParsePrefix("10.0.0.99/32")}}
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, vms := office(t)
			open := s.Config()
			if c.start != nil {
				open = changed(t, open, c.start)
				s.must(open)
			}
			closed := changed(t, open, c.deny)

			// There and back are streams of their own, between the same two ports: the far
			// end's is the reply, which nobody but the opener makes room for.
			client, server := netip.MustParseAddrPort("10.0.0.1:4000"), netip.MustParseAddrPort("10.0.0.3:53")
			a, b := udpSocket(t, vms[1], client), udpSocket(t, vms[3], server)
			there := startStream(t, a, b, server, 100, 5000)
			there.moves()
			back := startStream(t, b, a, client, 100, 5000)
			back.moves()
			for range 3 {
				s.must(closed)
				there1, back1 := there.sent.Load(), back.sent.Load()
				there.wantNoneAfter(there1)
				back.wantNoneAfter(back1)
				s.must(open)
				there.moves()
				back.moves()
			}
			back.end()
			there.end()
		})
	}
}

// A TCP connection stops when what it is made of is denied, and goes on where it was when it
// is allowed again.
func TestPolicyStopsTCP(t *testing.T) {
	s, vms := office(t)
	open := s.Config()
	closed := changed(t, open, func(c *Config) { c.Policies[0].Rules = c.Policies[0].Rules[1:] })
	ln := netns.Open(t, vms[2], func() (net.Listener, error) { return net.Listen("tcp", "10.0.0.2:80") })
	c := netns.Open(t, vms[1], func() (net.Conn, error) { return net.DialTimeout("tcp", "10.0.0.2:80", 5*time.Second) })
	server, err := ln.Accept()
	must(t, err)
	var got atomic.Int64
	var ends sync.WaitGroup
	defer func() { c.Close(); server.Close(); ends.Wait() }()
	ends.Go(func() {
		b := make([]byte, 64<<10)
		for {
			if _, err := c.Write(b[:1000]); err != nil {
				return
			}
			time.Sleep(time.Millisecond)
		}
	})
	ends.Go(func() {
		b := make([]byte, 64<<10)
		for {
			n, err := server.Read(b)
			if got.Add(int64(n)); err != nil {
				if err != io.EOF {
					t.Logf("server: %v", err)
				}
				return
			}
		}
	})
	moves := func() {
		t.Helper()
		from := got.Load()
		vms[2].Until("more data", func() bool { return got.Load() > from })
	}
	for range 3 {
		moves()
		s.must(closed)
		from := got.Load()
		vms[2].Until("what had arrived is read", func() bool {
			was := from
			time.Sleep(100 * time.Millisecond)
			from = got.Load()
			return from == was
		})
		time.Sleep(250 * time.Millisecond)
		if n := got.Load() - from; n != 0 {
			t.Errorf("%d bytes after it was denied", n)
		}
		s.must(open)
	}
	moves()
}
