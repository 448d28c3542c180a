package main

import (
	"testing"

	"github.com/vxswitch/vxswitch/api"
)

func TestSegments(t *testing.T) {
	for want, members := range map[string][]api.Member{
		"":                      nil,
		"100":                   {{VNI: 100}},
		"100-102,104":           {{VNI: 104}, {VNI: 101}, {VNI: 100}, {VNI: 102}},
		"7-8(vlan 7-8)":         {{VNI: 7, Tag: 7}, {VNI: 8, Tag: 8}},
		"10-12(vlan 110-112)":   {{VNI: 10, Tag: 110}, {VNI: 11, Tag: 111}, {VNI: 12, Tag: 112}},
		"10(vlan 5),11(vlan 3)": {{VNI: 10, Tag: 5}, {VNI: 11, Tag: 3}},
		"10(service 5),11(vlan 6),12-13(service 7-8)": {{VNI: 10, Tag: 5, Service: true}, {VNI: 11, Tag: 6}, {VNI: 12, Tag: 7, Service: true}, {VNI: 13, Tag: 8, Service: true}},
		"10,11(vlan 4)": {{VNI: 10}, {VNI: 11, Tag: 4}},
	} {
		if got := segments("tap", members); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, tunnel := range []string{"vxlan", "gpe", "ipip"} {
		if got := segments(tunnel, []api.Member{{VNI: 7, Tag: 7}, {VNI: 8, Tag: 8}}); got != "7-8" {
			t.Errorf("%s: %q", tunnel, got)
		}
	}
}
