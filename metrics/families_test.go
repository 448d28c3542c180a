package metrics

import (
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/capture"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/policy"
	"github.com/vxswitch/vxswitch/port"
	"github.com/vxswitch/vxswitch/snoop"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

// A made Collector shows statistics that were made up: every number in them is another.
type made struct {
	*Collector
	fields map[float64]string // what holds the number
	next   uint64
}

func make1[T any](m *made) T {
	var s T
	v := reflect.ValueOf(&s).Elem()
	m.fill(v, v.Type().String())
	return s
}

// fill gives every number below v a value of its own.
func (m *made) fill(v reflect.Value, path string) {
	set := func() uint64 {
		m.next += 1 << 20 // no sum of few of them is another
		m.next++
		m.fields[float64(m.next)] = path
		return m.next
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				m.fill(v.Field(i), path+"."+v.Type().Field(i).Name)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Struct {
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			for i := range v.Len() {
				m.fill(v.Index(i), path)
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			m.fill(v.Index(i), path)
		}
	case reflect.Uint64:
		v.SetUint(set())
	case reflect.Int:
		v.SetInt(int64(set()))
	}
}

func newMade() *made {
	return &made{Collector: New(&Config{}), fields: map[float64]string{}}
}

func (m *made) Collect(ch chan<- prometheus.Metric) {
	s := m.sink(ch)
	sw := make1[vswitch.Stats](m)
	sw.Ports[1].Port, sw.VSIs[1].VNI = 1, 1
	for i := range sw.VSIs {
		sw.VSIs[i].Attachments[1].Tag = 1
	}
	s.ofSwitch(sw)
	v := make1[vtep.Stats](m)
	v.Peers[1].Peer, v.Peers[1].LastHeard = 1, time.Unix(1<<30, 0)
	s.vtep("vtep", v, true)
	s.underlay("v4", make1[underlay.Stats](m))
	n := make1[arp.Stats](m)
	n.Table.Entries += n.Table.Snooped
	s.neighbours("100", n)
	s.multicast("100", make1[snoop.Stats](m))
	s.gateway("tenant", "100", make1[l3.InterfaceStats](m))
	s.packet("eth0", make1[port.PacketStats](m))
	s.buffered("serial", make1[port.BufferedStats](m))
	s.capture("file", make1[capture.Stats](m))
	p := make1[policy.Stats](m)
	p.Rules = map[string]policy.Count{"web": make1[policy.Count](m)}
	s.policy("pods", p)
	s.guard("tap0", "100", make1[policy.GuardStats](m))
	s.up("tap0", true)
}

// Every number of every Stats is a sample: one that is added there has to be shown here.
func TestEveryNumber(t *testing.T) {
	m := newMade()
	seen := map[float64]bool{}
	families := gather(t, m)
	for _, f := range families {
		for _, s := range f.Metric {
			seen[value(s)] = true
		}
	}
	for n, field := range m.fields {
		if !seen[n] {
			t.Errorf("%s is not shown", field)
		}
	}
	if len(families) != len(m.descs) {
		t.Errorf("%d families of %d", len(families), len(m.descs))
	}
}

func TestLint(t *testing.T) {
	problems := check.Must(testutil.CollectAndLint(newMade()))(t)
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// gather returns what a registry that checks everything has to say.
func gather(t *testing.T, c prometheus.Collector) map[string]*dto.MetricFamily {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	check.OK(t, r.Register(c))
	list := check.Must(r.Gather())(t)
	all := map[string]*dto.MetricFamily{}
	for _, f := range list {
		all[f.GetName()] = f
	}
	return all
}

func value(m *dto.Metric) float64 {
	if m.Counter != nil {
		return m.Counter.GetValue()
	}
	return m.Gauge.GetValue()
}

// labels returns the labels each family has.
func labels(families map[string]*dto.MetricFamily) map[string][]string {
	all := map[string][]string{}
	for name, f := range families {
		set := map[string]bool{}
		for _, m := range f.Metric {
			for _, l := range m.Label {
				set[l.GetName()] = true
			}
		}
		all[name] = slices.Sorted(maps.Keys(set))
	}
	return all
}
