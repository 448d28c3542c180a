package offload

import (
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/policy"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// TestFilters: behind a guard and a stateless policy at both slots, TCP, UDP and pings over IPv4 and IPv6 between the host and a
// kernel's vxlan device are carried, what rules deny is not, and each frame is counted by its rule once at each slot.
func TestFilters(t *testing.T) {
	a, b := two(t)
	s := newSite(t, a, 1, 2)
	b.VXLAN("vx0", netns.VXLAN{ID: vni, Local: "192.0.2.2", Remote: "192.0.2.1", Addr: guest(2) + "/24", Keep: true, Args: []string{"noudpcsum"}})
	a.Addr("tap0", "fd00::1/64")
	b.Addr("vx0", "fd00::2/64")
	for _, h := range []*netns.Host{a, b} {
		h.Ready()
	}
	iperf := []policy.PortRange{policy.Port(5201)}
	cfg := &policy.Config{Stateless: true, Default: policy.Deny, Rules: []policy.Rule{
		{Name: "there", DstPorts: iperf}, {Name: "back", SrcPorts: iperf}, {Name: "ping", Protocol: 1}, {Name: "ping6", Protocol: 58},
		{Name: "no", Action: policy.Deny, Protocol: 17, DstPorts: []policy.PortRange{policy.Port(9)}},
	}}
	in, out := check.Must(policy.New(cfg))(t), check.Must(policy.New(cfg))(t)
	g := check.Must(policy.NewGuard(nil))(t)
	check.OK(t, s.vsi.Configure(vswitch.VSIConfig{Slots: vswitch.Slots{Ingress: vswitch.Chain(g, in.Ingress()), Egress: out.Egress()}}))
	b.Ping(guest(1), 1)

	total := func(p *policy.Policy) (n policy.Count) {
		st := p.Stats()
		st.Rules["default"], st.Rules["neighbours"] = st.Default, st.Neighbours
		for _, c := range st.Rules {
			n.Packets += c.Packets
			n.Bytes += c.Bytes
		}
		return n
	}
	ports := func() (rx, tx policy.Count) {
		for _, p := range s.sw.Stats().Ports {
			rx.Packets, rx.Bytes = rx.Packets+p.Rx.Frames, rx.Bytes+p.Rx.Bytes
			tx.Packets, tx.Bytes = tx.Packets+p.Tx.Frames, tx.Bytes+p.Tx.Bytes
		}
		return rx, tx
	}
	// What came before the filters.
	rx0, tx0 := ports()
	minus := func(a, b policy.Count) policy.Count {
		return policy.Count{Packets: a.Packets - b.Packets, Bytes: a.Bytes - b.Bytes}
	}
	rx0, tx0 = minus(rx0, total(in)), minus(tx0, total(out))
	counted := func(what string) {
		t.Helper()
		var x, y, rx, tx policy.Count
		for i := 0; i == 0 || i < 50 && (x != rx || y != tx); i++ {
			time.Sleep(100 * time.Millisecond)
			s.stats() // takes the programs' counters in
			x, y = total(in), total(out)
			rx, tx = ports()
			rx, tx = minus(rx, rx0), minus(tx, tx0)
		}
		if x != rx || y != tx {
			t.Errorf("%s: counted by rules %v, by the ports %v; at the way out %v and %v", what, x, rx, y, tx)
		}
	}
	for _, c := range []struct {
		name, to string
		args     []string
	}{
		{"TCP", guest(2), []string{"-n", "200M"}}, {"TCP back", guest(2), []string{"-n", "200M", "-R"}}, {"TCP 6", "fd00::2", []string{"-n", "200M"}},
		{"UDP", guest(2), []string{"-u", "-b", "100M", "-l", "1000", "-n", "20M"}},
	} {
		before, rules := s.stats().Carried.Bytes, total(in).Bytes
		a.IPerf(b, c.to, c.args...)
		counted(c.name)
		carried, judged := s.stats().Carried.Bytes-before, total(in).Bytes-rules
		if carried < judged*9/10 || judged < 20<<20 {
			t.Errorf("%s: %d bytes carried of %d: %+v", c.name, carried, judged, s.stats())
		}
	}
	for _, to := range []string{guest(2), "fd00::2"} {
		before := s.stats().Carried.Frames
		a.Ping(to, 40)
		if n := s.stats().Carried.Frames - before; n < 40 {
			t.Errorf("%d of 80 packets of pings to %s carried", n, to)
		}
	}
	counted("pings")
	for e := range s.o.Flows() {
		if e.Tuple.String() == "" {
			t.Errorf("carried whatever the policy says: %+v", e)
		}
	}

	// What is denied stays in the switch, which counts it by name.
	was := in.Stats().Rules["no"].Packets
	a.Run("bash", "-c", "for i in {1..50}; do echo >/dev/udp/"+guest(2)+"/9; done")
	a.Until("50 datagrams denied", func() bool { return in.Stats().Rules["no"].Packets-was == 50 })
	for e := range s.o.Flows() {
		if e.Tuple.DstPort == 9 {
			t.Errorf("carried: %+v", e)
		}
	}
	counted("denied datagrams")

	// With flows tracked, nothing is carried.
	cfg.Stateless, cfg.PickUp = false, true
	check.OK(t, in.Update(cfg))
	s.flows(0)
	a.IPerf(b, guest(2), "-n", "20M")
	if st := s.stats(); st.Flows != 0 {
		t.Errorf("%+v", st)
	}
}
