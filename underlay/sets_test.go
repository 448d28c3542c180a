package underlay_test

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/underlaytest"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/underlay/memory"
)

// ported is an underlay that has ports.
type ported interface {
	underlaytest.Underlay
	Stats() underlay.Stats
	Sockets(c underlay.TxConfig) (uint8, error)
}

// kindsOfUnderlay runs a test with two underlays of each sort the system has.
func kindsOfUnderlay(t *testing.T, f func(t *testing.T, a, b ported)) {
	n := memory.NewNetwork(nil)
	inMemory := func(ap netip.AddrPort) (ported, error) { return n.Listen(ap, nil) }
	udp := func(ap netip.AddrPort) (ported, error) { return underlay.ListenUDP(ap, nil) }
	portable := func(ap netip.AddrPort) (ported, error) { return underlay.ListenPortable(ap, nil) }
	for name, kind := range map[string]struct {
		listen func(netip.AddrPort) (ported, error)
		a, b   string
	}{
		"Memory":    {inMemory, "192.0.2.1:4789", "192.0.2.2:4789"},
		"UDP, IPv4": {udp, "127.0.0.1:0", "127.0.0.2:0"},
		"UDP, IPv6": {udp, "[::1]:0", "[::1]:0"},

		"Portable, IPv4": {portable, "127.0.0.1:0", "127.0.0.2:0"},
		"Portable, IPv6": {portable, "[::1]:0", "[::1]:0"},
	} {
		t.Run(name, func(t *testing.T) {
			var pair []ported
			for _, at := range []string{kind.a, kind.b} {
				u, err := kind.listen(netip.MustParseAddrPort(at))
				if errors.Is(err, errors.ErrUnsupported) {
					t.Skip(err)
				}
				check.OK(t, err)
				defer u.Close()
				pair = append(pair, u)
			}
			f(t, pair[0], pair[1])
		})
	}
}

func TestSockets(t *testing.T) {
	kindsOfUnderlay(t, func(t *testing.T, a, b ported) {
		eb := underlaytest.Endpoint(t, b.LocalAddr())
		number := func(c underlay.TxConfig) uint8 {
			t.Helper()
			n, err := a.Sockets(c)
			if err != nil {
				t.Fatalf("%+v: %v", c, err)
			}
			return n
		}
		low := underlay.TxConfig{SrcPorts: underlay.PortRange{Lo: 20000, Hi: 20999}}
		ln := number(low)
		for _, tc := range []struct {
			c    underlay.TxConfig
			want uint8
		}{{underlay.TxConfig{}, 0}, {underlay.TxConfig{SrcPorts: underlay.PortRange{Lo: 49152, Hi: 65535}}, 0}, {low, ln}} {
			if n := number(tc.c); n != tc.want {
				t.Errorf("%+v: %d, want %d", tc.c, n, tc.want)
			}
		}
		on := number(underlay.TxConfig{Checksum: underlay.ChecksumOn})
		_, one := a.(*underlay.Portable) // has one checksum mode
		if ln == 0 || (on == 0) != one || on == ln {
			t.Errorf("numbers %d and %d", ln, on)
		}
		// Both ways with and without DF, and runs; what has no set is lost.
		var ds []frame.Datagram
		for _, set := range []uint8{0, ln, on} {
			for _, df := range []bool{true, false} {
				d := underlaytest.To("lone", 1000, eb)
				r := frame.Datagram{Parts: [][]byte{[]byte("abcde")}, Seg: 3, To: []frame.Endpoint{eb}, Flow: 1000}
				d.Set, d.DF, r.Set, r.DF = set, df, set, df
				ds = append(ds, d, r)
			}
		}
		for _, set := range []uint8{max(ln, on) + 1, 31, 32, 255} {
			d := underlaytest.To("none", 1000, eb, eb)
			d.Set = set
			ds = append(ds, d)
		}
		underlaytest.Send(t, a, ds...)
		for i := range ds {
			want := frame.NotDropped
			if i >= 12 {
				want = frame.SendFailed
			}
			if ds[i].Drop != want || want != 0 && ds[i].Lost != 2 {
				t.Errorf("datagram %d: lost %d, %v", i, ds[i].Lost, ds[i].Drop)
			}
		}
		ports := make(map[uint16]int)
		for _, r := range underlaytest.Receive(t, b, 3*2*3) {
			ports[r.Outer.Src.Port]++
		}
		if len(ports) != 2 {
			t.Errorf("source ports %v: one for each range", ports)
		}
		for p, n := range ports {
			if p >= 20000 && p < 21000 && n != 6 || p >= 49152 && n != 12 || p < 20000 || p > 20999 && p < 49152 {
				t.Errorf("source ports %v", ports)
			}
		}
		if st := a.Stats(); st.TxLost[frame.SendFailed] != 8 || st.TxDatagrams != 18 {
			t.Errorf("%+v", st)
		}
	})
}

func TestSocketsErrors(t *testing.T) {
	kindsOfUnderlay(t, func(t *testing.T, a, b ported) {
		for field, c := range map[string]underlay.TxConfig{
			"SrcPorts": {SrcPorts: underlay.PortRange{Lo: 9, Hi: 8}},
			"Checksum": {Checksum: 9},
		} {
			if _, err := a.Sockets(c); err == nil || !strings.HasPrefix(err.Error(), "underlay: TxConfig."+field+": ") {
				t.Errorf("%s: %v", field, err)
			}
		}
		for i := range uint16(underlay.MaxSets - 1) {
			if n, err := a.Sockets(underlay.TxConfig{SrcPorts: underlay.PortRange{Lo: 30000 + i, Hi: 30000 + i}}); err != nil || n != uint8(i)+1 {
				t.Fatalf("set %d: %d, %v", i+1, n, err)
			}
		}
		if _, err := a.Sockets(underlay.TxConfig{SrcPorts: underlay.PortRange{Lo: 1, Hi: 2}}); err == nil {
			t.Error("one set too many")
		}
		if n, err := a.Sockets(underlay.TxConfig{SrcPorts: underlay.PortRange{Lo: 30003, Hi: 30003}}); err != nil || n != 4 {
			t.Errorf("one that is there: %d, %v", n, err)
		}
		a.Close()
		if _, err := a.Sockets(underlay.TxConfig{}); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
}
