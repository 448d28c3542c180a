package main

import (
	"math"
	"strings"
	"testing"
)

// What iperf3 3.12 prints, shortened.
const (
	iperfTCP = `{"start": {}, "end": {"sum_sent": {"seconds": 2.0, "bytes": 3000000000, "sender": true},
		"sum_received": {"start": 0, "end": 2.5, "seconds": 2.5, "bytes": 2500000000, "bits_per_second": 8e9, "sender": true}}}`
	iperfUDP = `{"end": {"sum_received": {"seconds": 2, "bytes": 5760000, "lost_packets": 10000, "packets": 100000}}}`
)

func TestReadIPerf(t *testing.T) {
	r, err := readIPerf([]byte(iperfTCP))
	if err != nil || r.gigabits() != 8 {
		t.Errorf("%+v: %v Gbit/s, %v", r, r.gigabits(), err)
	}
	r, err = readIPerf([]byte(iperfUDP))
	if err != nil || r.kilopacks() != 45 || r.loss() != 0.1 {
		t.Errorf("%+v: %v kpps, loss %v, %v", r, r.kilopacks(), r.loss(), err)
	}
	for out, want := range map[string]string{
		`{"end": {}, "error": "unable to connect"}`: "unable to connect",
		`{"end": {}}`:    "nothing was received",
		"no JSON at all": "no JSON at all",
	} {
		if _, err := readIPerf([]byte(out)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", out, err)
		}
	}
}

func TestPerGB(t *testing.T) {
	r := transfer{Seconds: 1, Bytes: 2e9, cpu: cpu{all: 3, own: 1}}
	if all, own := (&lab{}).perGB(r); all != 1.5 || !math.IsNaN(own) {
		t.Errorf("without a process: %v, %v", all, own)
	}
	if all, own := (&lab{tunnels: make([]*process, 2)}).perGB(r); all != 1.5 || own != 0.5 {
		t.Errorf("with processes: %v, %v", all, own)
	}
}
