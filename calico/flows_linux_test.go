package calico

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
)

// A cluster is a node of one segment with three workloads, each in a namespace behind a TAP:
//
//	prod/client 10.65.1.1   prod/web 10.65.1.2   data/db 10.65.1.3
//	     cali1                   cali2                cali3
//
// On each of them, TCP 8080 and 9090 and UDP 5353 are answered.
type cluster struct {
	*rig
	hosts map[string]*netns.Host
	seg   *node.VSI
	taps  map[string]*port.Device
}

var workloadAt = map[string]int{"client": 1, "web": 2, "db": 3}

// newCluster makes the ports, which are closed, and no Plane runs.
func newCluster(t *testing.T) *cluster {
	netns.RequireRoot(t)
	c := &cluster{rig: newRig(t), hosts: map[string]*netns.Host{}, taps: map[string]*port.Device{}}
	c.make(Workloads{Prefixes: []string{"cali"}, Ports: map[string]string{"cali3": "data/a-k8s-db-eth0"}})
	check.Run(t, c.node.Run)
	c.seg = check.Must(c.node.Segment(10, nil))(t)
	l := netns.New(t)
	for name, i := range workloadAt {
		h := l.Host(name)
		h.Quiet()
		c.hosts[name] = h
		c.plug(name)
		for _, p := range []int{8080, 9090} {
			l := netns.Open(t, h, func() (net.Listener, error) { return net.Listen("tcp4", fmt.Sprintf("10.65.1.%d:%d", i, p)) })
			go echo(l)
		}
		u := netns.Open(t, h, func() (net.PacketConn, error) { return net.ListenPacket("udp4", fmt.Sprintf("10.65.1.%d:5353", i)) })
		go func() {
			b := make([]byte, 100)
			for {
				n, from, err := u.ReadFrom(b)
				if err != nil {
					return
				}
				u.WriteTo(b[:n], from)
			}
		}()
	}
	return c
}

// plug gives a workload its port.
func (c *cluster) plug(name string) {
	c.t.Helper()
	h, dev := c.hosts[name], c.dev(name)
	var tap *port.Device
	var err error
	h.Do(func() {
		tap, err = port.OpenTAP(dev, &port.DeviceConfig{MAC: frame.MAC{2, 0, 0, 0, 0, byte(workloadAt[name])}})
	})
	check.OK(c.t, err)
	check.OK(c.t, c.seg.Add(tap, nil))
	c.taps[name] = tap
	h.Addr(dev, fmt.Sprintf("10.65.1.%d/24", workloadAt[name]))
	h.Up(dev)
}

func echo(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() { io.Copy(c, c); c.Close() }()
	}
}

// drops are what policies have dropped of what came from one workload or went to another.
func (c *cluster) drops(from, to string) (n uint64) {
	for _, p := range c.node.Switch().Stats().Ports {
		switch p.Name {
		case c.dev(from):
			n += p.RxDrops[frame.Policy]
		case c.dev(to):
			n += p.TxDrops[frame.Policy]
		}
	}
	return n
}

func (c *cluster) dev(name string) string { return fmt.Sprintf("cali%d", workloadAt[name]) }

// try reports whether a flow such as "client > web tcp 8080" has an answer, false when policies have dropped some of it.
func (c *cluster) try(flow string) bool {
	c.t.Helper()
	words := strings.Fields(flow)
	from, to := c.hosts[words[0]], fmt.Sprintf("10.65.1.%d", workloadAt[words[2]])
	was := c.drops(words[0], words[2])
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	done := make(chan bool, 1)
	go func() { done <- ask(ctx, from, to, words[3:]) }()
	for {
		select {
		case ok := <-done:
			return ok
		case <-time.After(5 * time.Millisecond):
			if c.drops(words[0], words[2]) != was {
				cancel()
			}
		}
	}
}

// ask sends something, and reports whether it is answered before ctx ends. It asks again each second: an answer may be dropped that is on its
// way while policies change.
func ask(ctx context.Context, h *netns.Host, to string, how []string) bool {
	if how[0] == "icmp" {
		_, err := h.Try(ctx, "ping", "-c", "1", "-w", "60", to)
		return err == nil
	}
	var conn net.Conn
	var err error
	h.Do(func() { conn, err = new(net.Dialer).DialContext(ctx, how[0]+"4", to+":"+how[1]) })
	if err != nil {
		return false
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	for {
		if how[0] == "udp" {
			conn.SetReadDeadline(time.Now().Add(time.Second))
		}
		if _, err := conn.Write([]byte("ask")); err != nil {
			return false
		}
		_, err := io.ReadFull(conn, make([]byte, 3))
		if ctx.Err() != nil || how[0] != "udp" || !errors.Is(err, os.ErrDeadlineExceeded) {
			return err == nil
		}
	}
}

// want waits until flows pass, and others do not.
func (c *cluster) want(what string, flows map[string]bool) {
	c.t.Helper()
	end := time.Now().Add(time.Minute)
	for flow, passes := range flows {
		for same := 0; same < 2; same++ { // what comes late of a connection before may be dropped meanwhile
			if c.try(flow) != passes {
				same = -1
			}
			if time.Now().After(end) {
				c.t.Fatalf("%s: %s: passes %v, want %v\nstatus %+v", what, flow, !passes, passes, c.plane.Status().Workloads)
			}
		}
	}
}

// A connection of TCP that is open.
type connection struct {
	net.Conn
	t *testing.T
}

// open connects two workloads.
func (c *cluster) open(from, to string) *connection {
	c.t.Helper()
	x := &connection{netns.Open(c.t, c.hosts[from], func() (net.Conn, error) {
		return net.DialTimeout("tcp4", fmt.Sprintf("10.65.1.%d:9090", workloadAt[to]), time.Minute)
	}), c.t}
	x.alive("just opened")
	return x
}

// alive wants an answer.
func (x *connection) alive(what string) {
	x.t.Helper()
	x.SetDeadline(time.Now().Add(time.Minute))
	if _, err := x.Write([]byte("ask")); err != nil {
		x.t.Fatalf("%s: %v", what, err)
	}
	if _, err := io.ReadFull(x, make([]byte, 3)); err != nil {
		x.t.Fatalf("%s: %v", what, err)
	}
}

// workload writes an endpoint, as Calico's CNI plugin does.
func (c *cluster) workload(namespace, name, labels, more string) {
	c.put(fmt.Sprintf("workloadendpoints/%s/a-k8s-%s-eth0", namespace, name), endpoint(namespace, name, labels, workloadAt[name], more))
}

// three writes profiles that allow everything, and the endpoints.
func (c *cluster) three() {
	for _, namespace := range []string{"prod", "data"} {
		c.put("profiles/kns."+namespace, value("Profile", "kns."+namespace, allowAll+"}"))
	}
	c.workload("prod", "client", `"app":"client"`, "")
	c.workload("prod", "web", `"app":"web"`, "")
	c.workload("data", "db", `"app":"db"`, "")
}

// of is what is known of a port; zero if that is nothing.
func (c *cluster) of(name string) (w Workload) {
	for _, x := range c.plane.Status().Workloads {
		if x.Port == c.dev(name) {
			w = x
		}
	}
	return w
}

func (c *cluster) policies(name string) func() string {
	return func() string { w := c.of(name); return fmt.Sprint(w.Endpoint, " ", w.Policies, " ", w.Closed) }
}
