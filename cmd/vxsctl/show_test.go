package main

import (
	"strings"
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

// A list of a section that has nothing in it because of an error says so, once for all sections and lists.
func TestEmptyLists(t *testing.T) {
	f := newFake(t)
	for _, c := range commands {
		for op, l := range c.lists {
			f.answer(l.path, "[]\n")
			for state, want := range map[string]string{
				`{"state":"running","since":"2026-01-02T03:04:05Z"}`:                                                          "",
				`{"state":"starting","since":"2026-01-02T03:04:05Z","error":"no node"}`:                                       "vxsctl: " + c.name + ": starting since 2026-01-02 03:04:05: no node\n",
				`{"state":"failed","since":"2026-01-02T03:04:05Z","again":"2026-01-02T03:04:06Z","error":"listen: not ours"}`: "vxsctl: " + c.name + ": failed since 2026-01-02 03:04:05, again at 2026-01-02 03:04:06: listen: not ours\n",
				`404 {"error":"gone"}`: "",
			} {
				f.answer("/v1/"+c.name, state)
				code, out, errs := do(t.Context(), "-socket", f.socket, c.name, op)
				if code != 0 || strings.Count(out, "\n") != 1 || errs != want {
					t.Errorf("%s %s: %d %q %q, want %q", c.name, op, code, out, errs, want)
				}
			}
		}
	}
	f.answer("/v1/bgp/peers", `[{"address":"192.0.2.2"}]`)
	f.answer("/v1/bgp", `{"state":"failed","error":"x"}`)
	if _, _, errs := do(t.Context(), "-socket", f.socket, "bgp", "peers"); errs != "" {
		t.Error(errs)
	}
}
