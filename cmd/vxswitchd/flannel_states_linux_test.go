package main

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/flannel"
	flanneld "github.com/vxswitch/vxswitch/flannel/daemon"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// What the socket, the metrics and /healthz say in each state of the section, with a store in memory.
func TestFlannelStates(t *testing.T) {
	net := netns.New(t)
	h := net.Host("h")
	net.Plug(h, "192.0.2.1/24", net.Switch("sw"))
	wire := memory.NewNetwork(nil)
	defer wire.Close()
	n, err := node.New(&node.Options{Owners: []string{owner, flannel.DefaultOwner}, Listen: func(t *node.Tunnel) (vtep.Underlay, error) { return wire.Listen(t.AddrPort(), nil) }})
	must(t, err)
	defer n.Close()
	must(t, n.Apply(&node.Config{Segments: []node.Segment{{VNI: 200}}}))
	m := flannel.NewMemory("")
	defer m.Close()
	for subnet, vni := range map[string]frame.VNI{"10.3.200.0-24": 1, "10.3.201.0-24": 9} {
		m.Put(subnet, (&flannel.Attrs{Type: "vxlan", IPv4: flannel.End{PublicIP: netip.MustParseAddr("192.0.2.2"), VNI: vni, MAC: frame.MAC{2, 0, 0, 0, 0, byte(vni)}}}).Value(), time.Hour)
	}

	s := newServer(n, silent, nil, nil)
	k := newFlannel(n, slog.New(slog.DiscardHandler))
	k.store = &flannel.Registry{KV: m.KV()}
	making := k.make
	k.make = func(c *flanneld.Config) (*flanneld.Daemon, error) {
		runtime.LockOSThread() // and not unlocked: the thread ends with the keeper's goroutine
		must(t, h.Enter())     // Run looks for the interface there
		return making(c)
	}
	s.flannel = k
	ask := func(f answer, to any) error {
		w := httptest.NewRecorder()
		if err := f(w, httptest.NewRequest("GET", "/", nil)); err != nil {
			return err
		}
		return json.Unmarshal(w.Body.Bytes(), to)
	}
	state := func() (f api.Flannel) {
		t.Helper()
		must(t, ask(s.getFlannel, &f))
		return f
	}
	metrics := func() map[string]float64 {
		t.Helper()
		r := prometheus.NewRegistry()
		r.MustRegister(flannelMetrics{k})
		families, err := r.Gather()
		must(t, err)
		if problems, err := promlint.NewWithMetricFamilies(families).Lint(); err != nil || len(problems) > 0 {
			t.Errorf("%v %v", problems, err)
		}
		all := map[string]float64{}
		for _, f := range families {
			for _, x := range f.Metric {
				name := strings.TrimPrefix(f.GetName(), "vxswitch_flannel_")
				for _, l := range x.Label {
					name += " " + l.GetValue()
				}
				all[name] = x.GetGauge().GetValue() + x.GetCounter().GetValue()
			}
		}
		return all
	}

	if err := ask(s.getFlannel, new(api.Flannel)); err == nil || err.Error() != "the configuration has no section flannel" || ask(s.getFlannelLeases, new([]any)) == nil || k.trouble() != "" || len(metrics()) != 0 {
		t.Errorf("without the section: %v", err)
	}
	k.change(&flanneld.Config{Pods: 200, Iface: []string{"eth0"}, SubnetFile: filepath.Join(t.TempDir(), "subnet.env")}, false)(true)
	defer k.end(false)
	fake.Until(t, "there is no network", func() bool { return state().Error != "" })
	if f := state(); f.State != "starting" || !strings.Contains(k.trouble(), "flannel is starting since ") || !strings.Contains(k.trouble(), "there is no network") || f.Lease != nil {
		t.Errorf("%+v, %s", f, k.trouble())
	}
	if got := metrics(); len(got) != 1 || got["ready"] != 0 {
		t.Errorf("%v", got)
	}

	m.SetNetwork(`{"Network": "10.3.0.0/16", "Backend": {"Type": "vxlan"}}`)
	fake.Until(t, "it is ready", func() bool { return state().State == "ready" })
	f := state()
	if f.Network == "" || f.Backend != "vxlan" || f.Lease.PublicIPs[0] != "192.0.2.1" || f.Leases != 2 || f.Refused["vni"] != 1 || f.Expires == nil || f.Mode != "l3" || k.trouble() != "" {
		t.Errorf("%+v, %s", f, k.trouble())
	}
	got := metrics()
	for name, want := range map[string]float64{"ready": 1, "lease_info vxlan " + f.Lease.Subnet: 1, "leases": 2, "refused_leases vni": 1, "misses_total": 0, "unanswered_misses_total": 0, "stale_seconds": 0} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s: %v, want %v, in %v", name, v, want, got)
		}
	}
	if left := got["lease_remaining_seconds"]; left < 86000 || left > 86400 {
		t.Errorf("%v s are left", left)
	}
	var leases []api.FlannelLease
	must(t, ask(s.getFlannelLeases, &leases))
	if len(leases) != 2 || leases[0].Way != "tunnel" || leases[0].MACs[0] != "02:00:00:00:00:01" || leases[1].Way != "" || len(leases[1].Refused) != 1 || leases[1].Refused[0].Reason != "vni" || leases[1].Refused[0].Detail != "9: must be 1" {
		t.Errorf("%+v", leases)
	}

	m.Fail(errors.New("away"))
	fake.Until(t, "it is stale", func() bool { return state().State == "stale" })
	if f := state(); f.Error == "" || f.Lease == nil || k.trouble() != "" {
		t.Errorf("%+v, %s", f, k.trouble())
	}
	fake.Until(t, "seconds", func() bool { return metrics()["stale_seconds"] > 0.01 })
	if metrics()["ready"] != 1 {
		t.Error("packets flow, and it is not ready")
	}
	m.Fail(nil)
	fake.Until(t, "it is ready again", func() bool { return state().State == "ready" })

	m.Remove(strings.Replace(f.Lease.Subnet, "/", "-", 1))
	fake.Until(t, "it is lost", func() bool { return state().State == "lost" })
	if f := state(); !strings.Contains(f.Error, "the lease is lost") || f.Again == nil || f.Lease != nil || !strings.Contains(k.trouble(), "flannel is lost since ") {
		t.Errorf("%+v, %s", f, k.trouble())
	}
	if got := metrics(); got["ready"] != 0 {
		t.Errorf("%v", got)
	}
	fake.Until(t, "it has a lease again", func() bool { return state().State == "ready" })
}

// The section may be removed while its state is read.
func TestFlannelReadWhileItChanges(t *testing.T) {
	k := newFlannel(nil, slog.New(slog.DiscardHandler))
	k.make = func(*flanneld.Config) (*flanneld.Daemon, error) { return nil, errors.New("none here") }
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range 50000 {
			k.change(&flanneld.Config{Pods: 200}, false)(true)
			k.change(nil, false)(true)
		}
	}()
	for n := 0; ; n++ {
		select {
		case <-ended:
			if n == 0 {
				t.Error("nothing was read")
			}
			return
		default:
		}
		if f, _, ok := k.read(); ok && f.Mode != "l3" {
			t.Fatalf("%+v", f)
		}
	}
}
