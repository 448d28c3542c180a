package main

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/vxswitch/vxswitch/bench/tool"
)

// judgement makes a report of one round of fabricated figures and returns its lines.
func judgement(figures map[string]map[string]float64) (lines []string) {
	var cs []contender
	for _, c := range contenders() {
		if c.name != "veth" {
			cs = append(cs, c)
		}
	}
	o := options{}
	for _, k := range cases() {
		if figures[k.name] != nil {
			o.cases = append(o.cases, k)
		}
	}
	r := newReport(o, cs)
	for name, of := range figures {
		for who, v := range of {
			r.add(name, who, []float64{v})
		}
	}
	r.finish(0)
	for _, j := range r.Limits {
		lines = append(lines, j.String())
	}
	return lines
}

func TestLimits(t *testing.T) {
	type f = map[string]float64
	for _, c := range []struct {
		name    string
		figures map[string]f
		want    []string
	}{
		{"all", map[string]f{
			"tcp1":     {"kernel": 10, "vxswitch": 6, "vxswitch-kernel": 5, "kernel-vxswitch": 7, "ovs": 1},
			"tcp4":     {"kernel": 20, "vxswitch": 3.98},
			"tcp1-off": {"kernel": 5, "vxswitch": 2.45},
			"udp64":    {"kernel": 100, "vxswitch": 130, "ovs": 40},
			"rr":       {"kernel": 9000, "vxswitch": 3000},
			"pairs":    {"flows-one": 200, "flows-many": 179},
			"idle":     {"vxswitch": 12.25, "ovs": 90},

			"gpe-tcp1":   {"vxswitch": 7, "gpe": 7.7},
			"gpe-udp64":  {"vxswitch": 220, "gpe": 198},
			"tun-tcp1":   {"kernel-gpe": 14, "gpe-tun": 7},
			"ipip-tcp1":  {"ipip-lone": 0.5, "ipip-plain": 2, "ipip": 1.5},
			"ipip-udp64": {"ipip-lone": 50, "ipip-plain": 60, "ipip": 99},
		}, []string{
			"tcp1: 0.6 of kernel in Gbit/s, at least 0.6: met",
			"tcp1: 6 of ovs in Gbit/s, at least 5: met",
			"tcp1: vxswitch-kernel 0.5 of kernel in Gbit/s, at least 0.4: met",
			"tcp1: kernel-vxswitch 0.7 of kernel in Gbit/s, at least 0.75: missed",
			"tcp4: 0.199 of kernel in Gbit/s, at least 0.2: missed",
			"tcp1-off: 0.49 of kernel in Gbit/s, at least 0.5: missed",
			"udp64: 1.3 of kernel in kpps, at least 1.2: met",
			"udp64: 3.25 of ovs in kpps, at least 4: missed",
			"rr: 0.333 of kernel in transactions/s, at least 0.33: met",
			"pairs: flows-many 0.895 of flows-one in kpps, at least 0.9: missed",
			"idle: 12.2 MiB resident, at most 40: met",
			"gpe-tcp1: gpe 1.1 of vxswitch in Gbit/s, at least 0.909: met",
			"gpe-udp64: gpe 0.9 of vxswitch in kpps, at least 0.909: missed",
			"ipip-tcp1: ipip 3 of ipip-lone in Gbit/s, at least 2: met",
			"ipip-udp64: ipip 1.98 of ipip-lone in kpps, at least 2: missed",
		}},
		{"no other beside it", map[string]f{"ipip-tcp1": {"ipip": 1, "ipip-plain": 1}}, nil},
		{"too much memory", map[string]f{"idle": {"vxswitch": 40.25}}, []string{"idle: 40.2 MiB resident, at most 40: missed"}},
		{"a case without a limit", map[string]f{"udp1400": {"kernel": 1, "vxswitch": 1}}, nil},
		{"another contender", map[string]f{"udp64": {"kernel": 10, "vxswitch-kernel": 1, "ovs": 1}}, nil},
		{"no kernel", map[string]f{"tcp1": {"vxswitch": 10, "ovs": 2}}, []string{"tcp1: 5 of ovs in Gbit/s, at least 5: met"}},
		{"no value", map[string]f{"idle": {"vxswitch": math.NaN()}}, nil},
		{"the kernel at 0", map[string]f{"rr": {"kernel": 0, "vxswitch": 1}}, nil},
	} {
		if got := judgement(c.figures); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%q, want\n%q", c.name, got, c.want)
		}
	}
}

// Every limit is of a case that there is, and of contenders that take part in it.
func TestLimitsOfCases(t *testing.T) {
	for _, j := range limits() {
		some, err := tool.Pick(cases(), j.Case)
		if err != nil {
			t.Error(err)
			continue
		}
		who := tool.Names(some[0].of(contenders()))
		if !slices.Contains(who, cmp.Or(j.Of, judged)) || j.Beside != "" && !slices.Contains(who, j.Beside) || j.Limit <= 0 {
			t.Errorf("%+v among %v", j, who)
		}
	}
}

// Without limits there is no heading either.
func TestNoVerdicts(t *testing.T) {
	var b bytes.Buffer
	if new(report).verdicts(&b); b.Len() > 0 {
		t.Errorf("%q", &b)
	}
}
