package metrics

import (
	"strconv"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
)

// A family is one metric name. The values of its labels come with each sample.
type family struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// families are the descriptions of all that were made.
type families []*prometheus.Desc

func (fs *families) counter(name, help string, labels ...string) family {
	return fs.add(prometheus.CounterValue, name+"_total", help, labels)
}

func (fs *families) gauge(name, help string, labels ...string) family {
	return fs.add(prometheus.GaugeValue, name, help, labels)
}

func (fs *families) add(kind prometheus.ValueType, name, help string, labels []string) family {
	d := prometheus.NewDesc("vxswitch_"+name, help, labels, nil)
	*fs = append(*fs, d)
	return family{d, kind}
}

// put sends one sample of f. Values above 2^53 are rounded: samples are floating point.
func put[N int | uint64](ch chan<- prometheus.Metric, f family, n N, labels ...string) {
	ch <- prometheus.MustNewConstMetric(f.desc, f.kind, float64(n), labels...)
}

// text returns s as the value of a label, which must be UTF-8: the names of Linux's devices
// may be any bytes.
func text(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strconv.QuoteToASCII(s)
}
