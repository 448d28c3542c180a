package daemon

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// A node of a network with IPv6 alone, whose public address is that of a router before it, has its tunnel at the address of its interface.
func TestBehindNAT(t *testing.T) {
	for name, x := range map[string]struct{ addr, network, public, local string }{
		"IPv4": {"192.0.2.1/24", `{"Network": "10.3.0.0/16", "Backend": {"Type": "vxlan"}}`, "203.0.113.1", "192.0.2.1"},
		"IPv6": {"2001:db8::1/64", `{"EnableIPv4": false, "EnableIPv6": true, "IPv6Network": "fc00:3::/48", "Backend": {"Type": "vxlan"}}`, "2001:db8:9::1", "2001:db8::1"},
	} {
		t.Run(name, func(t *testing.T) {
			n := netns.New(t)
			h := n.Host("h")
			n.Plug(h, x.addr, n.Switch("sw"))
			wire := memory.NewNetwork(nil)
			t.Cleanup(func() { wire.Close() })
			local := make(chan netip.Addr, 10)
			d, err := node.New(&node.Options{Owners: []string{flannel.DefaultOwner}, Listen: func(t *node.Tunnel) (vtep.Underlay, error) {
				local <- t.Local
				return wire.Listen(t.AddrPort(), nil)
			}})
			check.OK(t, err)
			t.Cleanup(func() { d.Close() })
			m := flannel.NewMemory(x.network)
			t.Cleanup(func() { m.Close() })
			c := &Config{Pods: 200, Iface: []string{"eth0"}, SubnetFile: filepath.Join(t.TempDir(), "subnet.env")}
			if a := netip.MustParseAddr(x.public); a.Is4() {
				c.PublicIP = a
			} else {
				c.PublicIPv6 = a
			}
			stop := runIn(t, h, c, &Options{Node: d, Store: &flannel.Registry{KV: m.KV()}})
			select {
			case a := <-local:
				if a.String() != x.local {
					t.Errorf("the tunnel is at %v, want %s", a, x.local)
				}
			case <-time.After(10 * time.Second):
				t.Error("no tunnel")
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// runIn runs a daemon in a host. stop ends it, and returns what Run has returned.
func runIn(t *testing.T, h *netns.Host, c *Config, o *Options) (stop func() error) {
	t.Helper()
	d := check.Must(New(c, o))(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go h.Do(func() { ended <- d.Run(ctx) })
	stop = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() { stop() })
	return stop
}

// A daemon that is stopped while it waits for others ends at once, and without an error.
func TestStopped(t *testing.T) {
	const soon = 2 * time.Second
	n := netns.New(t)
	h := n.Host("h")
	n.Plug(h, "192.0.2.1/24", n.Switch("sw"))
	x, err := node.New(&node.Options{Owners: []string{flannel.DefaultOwner}, Listen: func(t *node.Tunnel) (vtep.Underlay, error) {
		return memory.NewNetwork(nil).Listen(t.AddrPort(), nil)
	}})
	check.OK(t, err)
	t.Cleanup(func() { x.Close() })
	wantSoon := func(t *testing.T, stop func() error) {
		t.Helper()
		begun := time.Now()
		if err := stop(); err != nil {
			t.Error(err)
		}
		if d := time.Since(begun); d > soon {
			t.Errorf("it has ended after %v", d)
		}
	}
	config := func() *Config {
		return &Config{Pods: 200, Iface: []string{"eth0"}, SubnetFile: filepath.Join(t.TempDir(), "subnet.env")}
	}
	t.Run("etcd with a user's name is away", func(t *testing.T) {
		c := config()
		c.Endpoints, c.Username, c.Password = []string{"http://192.0.2.9:2379"}, "node", "pod"
		c.Timeout = 4 * time.Second
		begun := time.Now()
		stop := runIn(t, h, c, &Options{Node: x})
		time.Sleep(300 * time.Millisecond)
		wantSoon(t, stop)
		time.Sleep(c.Timeout - time.Since(begun)) // until nothing is left of the try
	})
	t.Run("nft takes its time", func(t *testing.T) {
		dir := t.TempDir()
		begun := filepath.Join(dir, "begun")
		check.OK(t, os.WriteFile(filepath.Join(dir, "nft"), []byte("#!/bin/sh\n>"+begun+"\nexec sleep 8\n"), 0o755))
		t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
		m := flannel.NewMemory(vxlanJSON)
		defer m.Close()
		c := config()
		c.IPMasq = true
		stop := runIn(t, h, c, &Options{Node: x, Store: &flannel.Registry{KV: m.KV()}})
		h.Until("nft runs", func() bool { _, err := os.Stat(begun); return err == nil })
		wantSoon(t, stop)
	})
}

// Who asks for health and stays is not kept.
func TestHealthConnections(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check.OK(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { serve(ctx, l, func() bool { return true }) })
	t.Cleanup(func() { cancel(); running.Wait() })
	for name, request := range map[string]string{
		"idle":      "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
		"body":      "POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n",
		"no header": "GET /healthz HTTP/1.1\r\n",
		"silent":    "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := net.Dial("tcp", l.Addr().String())
			check.OK(t, err)
			defer c.Close()
			fmt.Fprint(c, request)
			c.SetReadDeadline(time.Now().Add(15 * time.Second))
			r := bufio.NewReader(c)
			if name == "idle" {
				resp, err := http.ReadResponse(r, nil)
				if err != nil || resp.StatusCode != http.StatusOK {
					t.Fatal(resp, err)
				}
			}
			for {
				if _, err := r.ReadByte(); err != nil {
					if e, ok := err.(net.Error); ok && e.Timeout() {
						t.Error("the connection is kept")
					}
					return
				}
			}
		})
	}
}

// An address on lo is one of the host: what leaves from it goes through another interface.
func TestLoopbackMTU(t *testing.T) {
	n := netns.New(t)
	h := n.Host("h")
	h.IP("address", "add", "192.0.2.7/32", "dev", "lo")
	h.IP("link", "set", "lo", "up")
	h.Do(func() {
		up, err := (&Config{Iface: []string{"192.0.2.7"}}).uplink()
		if err != nil || up.name != "lo" || up.ipv4.String() != "192.0.2.7" || up.mtu != 65535 {
			t.Errorf("%+v, %v", up, err)
		}
	})
}
