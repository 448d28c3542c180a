package calico

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// A told is a Datastore of what a test says.
type told struct {
	keys map[string]string // "" = wrong
	more chan func(r Reader)
}

func (d *told) Follow(ctx context.Context, prefixes []string, r Reader) error {
	r.Reset()
	for k, v := range d.keys {
		if v == "" {
			r.Wrong(k, errors.New("an annotation is wrong"))
		} else {
			r.Put(k, []byte(v))
		}
	}
	for {
		if err := r.Done(ctx); err != nil {
			return err
		}
		select {
		case f := <-d.more:
			f(r)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Another datastore than etcd is followed as etcd is, and one takes the place of the other while a Plane runs.
func TestDatastore(t *testing.T) {
	cluster := func(vtep string) *told {
		return &told{more: make(chan func(Reader)), keys: map[string]string{
			v3 + "nodes/a":           value("Node", "a", `{"bgp":{"ipv4Address":"192.0.2.1/24"},"ipv4VXLANTunnelAddr":"10.65.1.0"}`),
			v3 + "nodes/b":           value("Node", "b", `{"bgp":{"ipv4Address":"`+vtep+`/24"},"ipv4VXLANTunnelAddr":"10.65.2.0"}`),
			v3 + "nodes/c":           "",
			v3 + "ippools/default":   value("IPPool", "default", `{"cidr":"10.65.0.0/16","vxlanMode":"Always"}`),
			blockKey("10.65.2.0/26"): `{"cidr":"10.65.2.0/26","affinity":"host:b","allocations":[],"attributes":[]}`,
		}}
	}
	r := &rig{t: t}
	one := cluster("192.0.2.2")
	c := &Config{Node: "a", VRF: "v", VXLAN: Tunnel{Segment: 4096}, NoBGP: true, Datastore: one}
	r.with(c)
	stop := r.run()
	r.wait("rows", r.rows, "10.65.2.0/26 192.0.2.2")
	problems := func() string { return fmt.Sprint(r.plane.Status().Problems) }
	if got := problems(); !strings.Contains(got, "nodes/c: an annotation is wrong") {
		t.Errorf("problems %s", got)
	}
	one.more <- func(r Reader) { r.Wrong(v3+"nodes/b", errors.New("no longer")) }
	r.wait("rows", r.rows, "")
	r.wait("problems", func() string { return fmt.Sprint(strings.Contains(problems(), "nodes/b: no longer")) }, "true")
	one.more <- func(r Reader) { r.Put(v3+"nodes/b", []byte(one.keys[v3+"nodes/b"])) }
	r.wait("rows", r.rows, "10.65.2.0/26 192.0.2.2")
	next := *c
	next.Datastore = cluster("192.0.2.22")
	check.OK(t, r.plane.Configure(&next))
	r.wait("rows", r.rows, "10.65.2.0/26 192.0.2.22")
	stop()
	check.ErrorHas(t, r.plane.Run(t.Context()), "calico: Plane.Run: it was called before; make a new Plane")
}

// The VNI and the port that FelixConfigurations say are named where the tunnel has others, and logged once.
func TestOtherVXLAN(t *testing.T) {
	net := memory.NewNetwork(nil)
	n := check.Must(node.New(&node.Options{Owners: []string{DefaultOwner}, Listen: func(t *node.Tunnel) (vtep.Underlay, error) { return net.Listen(t.AddrPort(), nil) }}))(t)
	t.Cleanup(func() { n.Close() })
	check.Must(n.Tunnel("vx", node.Tunnel{Local: netip.MustParseAddr("192.0.2.1")}))(t)
	check.Must(n.Segment(4096, &node.Segment{Tunnel: "vx"}))(t)
	d := &told{more: make(chan func(Reader)), keys: map[string]string{
		v3 + "nodes/a":                     value("Node", "a", `{"bgp":{"ipv4Address":"192.0.2.1/24"},"ipv4VXLANTunnelAddr":"10.65.1.0"}`),
		v3 + "felixconfigurations/default": value("FelixConfiguration", "default", `{"vxlanVNI":4097}`),
		v3 + "felixconfigurations/node.a":  value("FelixConfiguration", "node.a", `{"vxlanPort":4444}`),
	}}
	var log check.Log
	c := &Config{Node: "a", VRF: "v", VXLAN: Tunnel{Segment: 4096}, NoBGP: true, Datastore: d, Log: slog.New(slog.NewTextHandler(&log, nil))}
	r := &rig{t: t, node: n, plane: check.Must(New(n, c))(t)}
	r.run()
	problems := func() string { return fmt.Sprint(r.plane.Status().Problems) }
	vni, port := `felixconfigurations/default: spec.vxlanVNI 4097 is not carried: tunnel "vx" has VNI 4096`, `felixconfigurations/node.a: spec.vxlanPort 4444 is not carried: tunnel "vx" has port 4789`
	r.wait("problems", problems, "["+vni+" "+port+"]")
	d.more <- func(r Reader) {
		r.Put(v3+"felixconfigurations/default", []byte(value("FelixConfiguration", "default", `{"vxlanVNI":4096}`)))
	}
	r.wait("the VNI of the segment", problems, "["+port+"]")
	d.more <- func(r Reader) { r.Delete(v3 + "felixconfigurations/node.a") }
	r.wait("the port of the tunnel", problems, "[]")
	check.Equal(t, "lines of the log", log.Count("is not carried"), 2)
}
