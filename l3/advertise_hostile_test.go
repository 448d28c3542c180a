package l3

import (
	"net/netip"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// Between two advertisements to all hosts are 3 s at least (RFC 4861, section 6.2.1: MinRtrAdvInterval).
func TestAdvertisedNotTooOften(t *testing.T) {
	l := newLab(t, nil)
	i, _ := l.advertising(false, &RouterAdvertisements{Interval: 4 * time.Second})
	last := -10
	for now := range 1000 {
		n := len(l.injected)
		if i.Housekeep(frame.Tick(now + 1)); len(l.injected) > n {
			if now-last < 3 {
				t.Fatalf("%d s after the one before", now-last)
			}
			last = now
		}
	}
}

// Hosts hear once that they have lost their router: another gateway may have come since.
func TestRetiredOnce(t *testing.T) {
	l := newLab(t, nil)
	i, _ := l.advertising(false, &RouterAdvertisements{})
	check.OK(t, i.Hold())
	check.Equal(t, "frames", len(l.injected), 0)
	l.advertising(false, &RouterAdvertisements{})
	check.OK(t, i.Close())
	check.Equal(t, "frames of an interface that is closed", len(l.injected), 0)
}

// What is accepted fits the smallest MTU of IPv6: a longer advertisement would be dropped on its way.
func TestAdvertisementFits(t *testing.T) {
	l := newLab(t, nil)
	c := l.i10.Config()
	c.VNI = 77
	for n := range 128 {
		ra := &RouterAdvertisements{}
		for k := range n {
			ra.DNS = append(ra.DNS, netip.AddrFrom16([16]byte{0xfd, 15: byte(k + 1)}))
		}
		c.RouterAdvertisements = ra
		if err := c.Check(); err != nil {
			check.True(t, n > 60, "%v", err)
			check.ErrorHas(t, err, "InterfaceConfig.RouterAdvertisements: takes ")
			continue
		}
		i := &Interface{cfg: c}
		i.SetHostMTU(1500)
		got := len(i.advertisement(false)) - 14
		check.Equal(t, "size", ra.size(&c), got)
		check.True(t, got <= MinHostMTU, "%d DNS servers: %d bytes", n, got)
	}
}
