package metrics

import (
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vxswitch/vxswitch/frame"
)

// A sink describes families, one metric name each, or sends their samples. All samples have its
// labels.
type sink struct {
	descs  map[string]*prometheus.Desc // by name
	to     chan<- prometheus.Metric    // nil: describe
	labels []string                    // names of labels
	values []string
}

// with returns a sink with labels, given as names and values.
func (s sink) with(labels ...string) sink {
	for i := 0; i < len(labels); i += 2 {
		s.labels, s.values = append(s.labels, labels[i]), append(s.values, labels[i+1])
	}
	return s
}

// A put sends one sample, with the values of the family's own labels. Samples are floating point:
// values above 2^53 are rounded.
type put func(n uint64, values ...string)

// drops sends a sample for each reason that is not zero.
func (p put) drops(d frame.Drops, values ...string) {
	for r, n := range d.All() {
		p(n, append(slices.Clip(values), r.String())...)
	}
}

func (s sink) counter(name, help string, labels ...string) put {
	return s.family(prometheus.CounterValue, name+"_total", help, labels)
}

func (s sink) gauge(name, help string, labels ...string) put {
	return s.family(prometheus.GaugeValue, name, help, labels)
}

// family returns the put of a family.
func (s sink) family(kind prometheus.ValueType, name, help string, labels []string) put {
	if s.to == nil {
		s.descs[name] = prometheus.NewDesc("vxswitch_"+name, help, slices.Concat(s.labels, labels), nil)
		return func(uint64, ...string) {}
	}
	return func(n uint64, values ...string) {
		s.to <- prometheus.MustNewConstMetric(s.descs[name], kind, float64(n), slices.Concat(s.values, values)...)
	}
}

// text returns s as the value of a label, which must be UTF-8: the names of Linux's devices
// may be any bytes.
func text(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strconv.QuoteToASCII(s)
}
