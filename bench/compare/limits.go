package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
)

// judged is the contender that the limits are for, but for those that name another.
const judged = "vxswitch"

// A limit is what the first metric of a case has to reach.
type limit struct {
	Case   string  `json:"case"`
	Of     string  `json:"of,omitzero"` // the contender, "" for the one that is judged
	Metric string  `json:"metric"`
	Beside string  `json:"beside,omitzero"` // the contender by whose median it is divided, "" for none
	Limit  float64 `json:"limit"`           // at least if beside another, else at most
	Value  float64 `json:"value"`
	Met    bool    `json:"met"`
}

func limits() []limit {
	return []limit{
		{Case: "tcp1", Beside: "kernel", Limit: 0.60},
		{Case: "tcp1", Beside: "ovs", Limit: 5},
		{Case: "tcp1", Of: "vxswitch-kernel", Beside: "kernel", Limit: 0.40},
		{Case: "tcp1", Of: "kernel-vxswitch", Beside: "kernel", Limit: 0.75},
		{Case: "tcp1", Of: "flows-kernel", Beside: "kernel", Limit: 0.90},
		{Case: "tcp1", Of: "kernel-flows", Beside: "kernel", Limit: 0.90},
		{Case: "tcp4", Beside: "kernel", Limit: 0.20},
		{Case: "tcp4", Of: "vxswitch-kernel", Beside: "kernel", Limit: 0.40},
		{Case: "tcp4", Of: "kernel-vxswitch", Beside: "kernel", Limit: 0.75},
		{Case: "tcp4", Of: "flows-kernel", Beside: "kernel", Limit: 0.90},
		{Case: "tcp4", Of: "kernel-flows", Beside: "kernel", Limit: 0.90},
		{Case: "tcp1-off", Beside: "kernel", Limit: 0.50},
		{Case: "udp64", Beside: "kernel", Limit: 1.2},
		{Case: "udp64", Beside: "ovs", Limit: 4},
		{Case: "rr", Beside: "kernel", Limit: 0.33},
		{Case: "pairs", Of: "flows-many", Beside: "flows-one", Limit: 0.9},
		{Case: "idle", Limit: 40},
		{Case: "ovs-tcp1", Of: "vxswitch-ovs", Beside: "ovs", Limit: 0.40},
		{Case: "ovs-tcp1", Of: "ovs-vxswitch", Beside: "ovs", Limit: 0.75},
		{Case: "ovs-tcp4", Of: "vxswitch-ovs", Beside: "ovs", Limit: 0.40},
		{Case: "ovs-tcp4", Of: "ovs-vxswitch", Beside: "ovs", Limit: 0.75},
		{Case: "gpe-tcp1", Of: "gpe", Beside: judged, Limit: 1 / 1.1},
		{Case: "gpe-udp64", Of: "gpe", Beside: judged, Limit: 1 / 1.1},
		{Case: "ipip-tcp1", Of: "ipip", Beside: "ipip-lone", Limit: 2},
		{Case: "ipip-udp64", Of: "ipip", Beside: "ipip-lone", Limit: 2},
	}
}

// judge returns the limits whose cases ran, with what was reached.
func (r *report) judge() (js []limit) {
	for _, j := range limits() {
		b := r.block(j.Case)
		if b == nil {
			continue
		}
		own := b.first(cmp.Or(j.Of, judged))
		if own == nil {
			continue
		}
		j.Metric, j.Value = b.Metrics[0], own.Median
		if j.Beside == "" {
			j.Met = j.Value <= j.Limit
		} else {
			other := b.first(j.Beside)
			if other == nil || other.Median <= 0 {
				continue
			}
			j.Value /= other.Median
			j.Met = j.Value >= j.Limit
		}
		js = append(js, j)
	}
	return js
}

func (j limit) String() string {
	verdict := "missed"
	if j.Met {
		verdict = "met"
	}
	// Three digits: "0.60, at least 0.6: missed" would be hard to believe.
	value, bound := strconv.FormatFloat(j.Value, 'g', 3, 64), strconv.FormatFloat(j.Limit, 'g', 3, 64)
	if j.Of != "" {
		value = j.Of + " " + value
	}
	if j.Beside == "" {
		return fmt.Sprintf("%s: %s %s, at most %s: %s", j.Case, value, j.Metric, bound, verdict)
	}
	return fmt.Sprintf("%s: %s of %s in %s, at least %s: %s", j.Case, value, j.Beside, j.Metric, bound, verdict)
}

// verdicts prints how the figures stand against the limits.
func (r *report) verdicts(out io.Writer) {
	if len(r.Limits) == 0 {
		return
	}
	fmt.Fprintf(out, "\nlimits of %s, ratios of medians of this run\n", judged)
	for _, j := range r.Limits {
		fmt.Fprintf(out, "  %s\n", j)
	}
}

// block returns the block of a case, nil if it did not run.
func (r *report) block(name string) *block {
	for i := range r.Cases {
		if r.Cases[i].Name == name {
			return &r.Cases[i]
		}
	}
	return nil
}

// first returns a contender's cell of the first metric, nil if it has no samples.
func (b *block) first(contender string) *cell {
	for _, w := range b.Rows {
		if w.Name == contender && len(w.Cells[0].Samples) > 0 {
			return &w.Cells[0]
		}
	}
	return nil
}
