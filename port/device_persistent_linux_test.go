package port

import (
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// A Persistent TAP stays with its neighbours and routes when it is closed, and when it is opened again with the same MAC.
func TestPersistent(t *testing.T) {
	h := netns.New(t).Host("h")
	cfg := &DeviceConfig{Persistent: true, MAC: frame.MAC{2, 0, 0, 0, 0, 1}}
	d := openTAP(t, h, "stay0", cfg)
	h.IP("addr", "add", "10.1.0.1/32", "dev", "stay0")
	h.IP("neigh", "add", "10.1.1.0", "lladdr", "02:00:00:00:00:02", "dev", "stay0", "nud", "permanent")
	h.IP("route", "add", "10.1.1.0/24", "via", "10.1.1.0", "dev", "stay0", "onlink")
	state := func() string {
		return strings.ReplaceAll(h.IP("route")+h.IP("neigh", "show", "10.1.1.0"), " linkdown", "")
	}
	was := state()
	must(t, d.Close())
	if got := state(); got != was {
		t.Errorf("closed: %s, before %s", got, was)
	}
	for _, feature := range strings.Split(h.Run("ethtool", "-k", "stay0"), "\n") { // who opens it next may not know of them
		if strings.HasPrefix(feature, "tcp-segmentation-offload: on") || strings.HasPrefix(feature, "tx-checksumming: on") {
			t.Errorf("closed: %s", feature)
		}
	}
	d = openTAP(t, h, "stay0", cfg)
	if got := state(); got != was || !d.Existed() {
		t.Errorf("open again: %s, before %s; there before: %v", got, was, d.Existed())
	}
	must(t, d.Close())
	if h.IP("link", "delete", "stay0"); strings.Contains(h.IP("link"), "stay0") {
		t.Error("it is there still")
	}
}
