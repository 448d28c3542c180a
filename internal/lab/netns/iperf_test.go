package netns

import (
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// What iperf3 3.12 prints, shortened.
const iperfTCP = `{"start": {}, "end": {"sum_sent": {"seconds": 2.0, "bytes": 3000000000, "retransmits": 3, "sender": true},
		"sum_received": {"start": 0, "end": 2.5, "seconds": 2.5, "bytes": 2500000000, "bits_per_second": 8e9, "sender": true}}}`

func TestReadIPerf(t *testing.T) {
	r, err := ReadIPerf([]byte(iperfTCP))
	if err != nil || r != (Throughput{BitsPerSecond: 8e9, Bytes: 2_500_000_000, Retransmits: 3}) {
		t.Errorf("%+v, %v", r, err)
	}
	for out, want := range map[string]string{
		`{"end": {}, "error": "unable to connect"}`: "unable to connect",
		"no JSON at all": "no JSON at all",
	} {
		check.ErrorHas(t, check.Err(ReadIPerf([]byte(out))), "", want)
	}
}
