package main

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/bench/tool"
)

// Who takes part in what, the first of them being the base of the ratios.
func TestAmong(t *testing.T) {
	general := "kernel,vxswitch,vxswitch-flows,kernel-vxswitch,vxswitch-kernel,kernel-flows,flows-kernel,veth,ovs"
	special := map[string]string{"host": "kernel-host,vxswitch-host,vxswitch-flows-host", "ovs": "ovs,ovs-vxswitch,vxswitch-ovs", "gpe": "vxswitch,gpe", "portable": "udp,portable", "tun": "kernel-gpe,gpe-tun", "ipip": "ipip-lone,ipip-plain,ipip", "packet": "udp,packet", "pairs": "flows-one,flows-many"}
	for _, k := range cases() {
		kind, _, _ := strings.Cut(k.name, "-")
		want := special[kind]
		if want == "" {
			want = general
		}
		got := tool.Names(k.of(contenders()))
		if strings.Join(got, ",") != want || k.base() != got[0] {
			t.Errorf("%s: %v, base %s; want %s", k.name, got, k.base(), want)
		}
		if got := tool.Names(k.of([]contender{{name: "new"}, {name: "other", special: true}})); slices.Contains(got, "new") != (want == general) || slices.Contains(got, "other") {
			t.Errorf("%s: %v", k.name, got)
		}
	}
}

// came is a second in which so much was sent and so much came through.
func came(out, in float64) flood {
	return flood{sent: sent{Sent: uint64(out), Seconds: 1}, received: received{Received: uint64(in), Seconds: 1}}
}

// A path that carries so much and no more.
func TestLossless(t *testing.T) {
	const above = 1000
	for _, capacity := range []float64{40, 100, 333, 999} {
		tries := 0
		got, err := lossless(above, func(kpps float64) (flood, error) {
			tries++
			through := min(kpps, capacity)
			return came(kpps*1e3, through*1e3), nil
		})
		if err != nil || got > capacity*1.0001 || got < capacity*0.94 || tries > 2*probes {
			t.Errorf("capacity %v: %v after %d tries, %v", capacity, got, tries, err)
		}
	}
}

// A loss that does not come again is not the path's.
func TestLosslessOnce(t *testing.T) {
	tries := 0
	got, err := lossless(1000, func(kpps float64) (flood, error) {
		tries++
		if tries%2 == 1 {
			return came(kpps*1e3, kpps*500), nil
		}
		return came(kpps*1e3, kpps*1e3), nil
	})
	if err != nil || got < 940 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestLosslessNever(t *testing.T) {
	got, err := lossless(1000, func(kpps float64) (flood, error) {
		return came(100, 50), nil
	})
	if err != nil || !math.IsNaN(got) {
		t.Errorf("%v, %v", got, err)
	}
	bad := errors.New("bad")
	if _, err := lossless(1000, func(float64) (flood, error) { return flood{}, bad }); !errors.Is(err, bad) {
		t.Error(err)
	}
}
