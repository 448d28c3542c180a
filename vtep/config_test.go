package vtep

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// Errors of New name the field, or what is wrong with the underlays.
func TestNewErrors(t *testing.T) {
	for _, c := range []struct {
		name, want string
		cfg        *Config
		us         []Underlay
	}{
		{"negative", "Config.MaxPeers", &Config{MaxPeers: -1}, []Underlay{fake4()}},
		{"too many", "Config.MaxPeers", &Config{MaxPeers: 65_001}, []Underlay{fake4()}},
		{"policy", "Config.Peers", &Config{Peers: 3}, []Underlay{fake4()}},
		{"MTU of one frame's headers", "Config.MTU", &Config{MTU: 36 + 13}, []Underlay{fake4()}},
		{"MTU above that of IP", "Config.MTU: 65536: must be at most 65535", &Config{MTU: 65536}, []Underlay{fake4()}},
		{"MTU over IPv6", "Config.MTU", &Config{MTU: 56 + 13}, []Underlay{fake6()}},
		{"no underlay", "underlay", nil, nil},
		{"two of a family", "family", nil, []Underlay{fake4(), fake4()}},
		{"no address", "address", nil, []Underlay{&fake{mtu: 1500}}},
	} {
		v, err := New(c.cfg, c.us...)
		if err == nil || v != nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "vtep: ") {
			t.Errorf("%s: %v, want something about %s", c.name, err, c.want)
		}
	}
}

func TestDefaults(t *testing.T) {
	v := newVTEP(t, nil, fake4(), fake6())
	if v.Name() != "vtep" || v.header.ttl != 64 || v.cfg.MaxPeers != DefaultMaxPeers || v.header.tos != (tos{}) || !v.header.df {
		t.Errorf("%+v", v.cfg)
	}
	check.Equal(t, "readers", len(v.Readers()), 2)
	// RFC 7348, section 5: 20 or 40 of IP, 8 of UDP, 8 of VXLAN.
	check.Equal(t, "MTU of floods", v.MTU(0), 1500-56)
	p4, p6 := addPeer(t, v, at(1)), addPeer(t, v, at6(1))
	if v.MTU(p4) != 1500-36 || v.MTU(p6) != 1500-56 {
		t.Errorf("MTUs %d, %d", v.MTU(p4), v.MTU(p6))
	}
	if v := newVTEP(t, &Config{MTU: 9000, Name: "x"}, fake4()); v.MTU(0) != 9000-36 || v.Name() != "x" {
		t.Errorf("MTU %d", v.MTU(0))
	}
}

func TestTableErrors(t *testing.T) {
	v := newVTEP(t, nil, fake4())
	wild := newVTEP(t, nil, &fake{local: netip.MustParseAddrPort("0.0.0.0:4789"), mtu: 1500})
	peer := func(s string) error { _, err := v.AddPeer(netip.MustParseAddrPort(s)); return err }
	hop := func(s string, n frame.VNI) error { _, err := v.NextHop(netip.MustParseAddrPort(s), n); return err }
	group := func(n ...uint16) error { _, err := v.Group(n...); return err }
	_, zero := v.AddPeer(netip.AddrPort{})
	for _, c := range []struct {
		name, want string
		err        error
	}{
		{"own address", "own address", peer("192.0.2.1:4789")},
		{"own address, other port", "own address", peer("192.0.2.1:1")},
		{"own address in IPv6 form", "own address", peer("[::ffff:192.0.2.1]:4789")},
		{"other family", "address family", peer("[2001:db8::2]:4789")},
		{"wildcard", "must be the address of one host", peer("0.0.0.0:4789")},
		{"group address", "must be the address of one host", peer("239.1.1.1:4789")},
		{"no address", "invalid", zero},
		{"next hop without a VNI", "VNI 0", hop("192.0.2.2:0", 0)},
		{"next hop with too large a VNI", "VNI 16777216", hop("192.0.2.2:0", 1<<24)},
		{"next hop of another family", "address family", hop("[2001:db8::2]:0", 5)},
		{"empty group", "at least one peer is needed", group()},
		{"group of nobody", "there is no peer 9", group(9)},
		{"group of 0", "there is no peer 0", group(0)},
		{"flood list, VNI", "VNI 16777216", v.SetFlood(1<<24, at(2))},
		{"flood list, family", "address family", v.SetFlood(vni, at(2), at6(2))},
		{"open", "VNI 16777216", v.Control().Open(1 << 24)},
	} {
		check.ErrorHas(t, c.err, "vtep: ", c.want)
	}
	if st := v.Stats(); len(st.Peers) != 0 || st.Learned != 0 || len(v.Flood(vni)) != 0 {
		t.Errorf("errors have left %+v, %v", st, v.Flood(vni))
	}
	if _, err := wild.AddPeer(local4); err != nil { // bound to all addresses: cannot tell
		t.Error(err)
	}
}

func TestPeerNumbersRunOut(t *testing.T) {
	v := newVTEP(t, nil, fake4())
	for i := range 1<<16 - 1 {
		if n, err := v.NextHop(at(i%200), frame.VNI(i+1)); err != nil || int(n) != i+1 {
			t.Fatalf("next hop %d: %d, %v", i, n, err)
		}
	}
	if n, err := v.NextHop(at(1), 5); !errors.Is(err, ErrFull) || n != 0 {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := v.AddPeer(at(1)); !errors.Is(err, ErrFull) {
		t.Error(err)
	}
	if _, err := v.Group(1, 2); !errors.Is(err, ErrFull) {
		t.Error(err)
	}
	check.OK(t, v.Control().Open(vni))
	if err := v.SetFlood(vni, at(1)); !errors.Is(err, ErrFull) {
		t.Error(err)
	}
	v.DeletePeer(77)
	v.Control().Free(v.Control().Retire(func(uint16) bool { return false }))
	if n, err := v.AddPeer(at(1)); n != 77 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

func TestPauseResumeClose(t *testing.T) {
	a, b := fake4(), fake6()
	v := newVTEP(t, nil, a, b)
	v.Pause()
	v.Resume()
	v.Resume()
	for range 2 {
		check.OK(t, v.Close())
	}
	for _, u := range []*fake{a, b} {
		check.True(t, u.paused == 1 && u.resumed == 2 && u.closed == 1, "%+v", u)
	}
	one := fake4()
	v = newVTEP(t, nil, one)
	v.Pause()
	v.Resume()
	check.OK(t, v.Close())
	check.True(t, one.paused == 1 && one.resumed == 1 && one.closed == 1, "%+v", one)
}
