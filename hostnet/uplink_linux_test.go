package hostnet

import (
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// An Uplink that is down stays so, and routes wait until it is up.
func TestUplink(t *testing.T) {
	t.Parallel()
	a := newAlone(t)
	a.IP("link", "set", dev, "down")
	cfg := leg()
	cfg.Uplink = true
	h := a.open(cfg)
	check.ErrorHas(t, h.SetRoutes(to("10.65.2.0/26")), "hostnet: route 10.65.2.0/26 src 10.65.1.60: the device vxhost0 is down")
	link := a.IP("link", "show", dev)
	check.True(t, !strings.Contains(link, "UP"), "it is up: %s", link)
	a.IP("link", "set", dev, "up")
	a.comes("10.65.2.0/26 dev vxhost0 scope link src 10.65.1.60")
}
