package underlay

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// kindsOfUnderlay runs a test with two underlays of each sort the system has.
func kindsOfUnderlay(t *testing.T, f func(t *testing.T, a, b ported)) {
	t.Run("Memory", func(t *testing.T) {
		n := NewNetwork(nil)
		f(t, member(t, n, "192.0.2.1:4789", nil), member(t, n, "192.0.2.2:4789", nil))
	})
	udpPair(t, f)
}

func TestSockets(t *testing.T) {
	kindsOfUnderlay(t, func(t *testing.T, a, b ported) {
		eb := endpoint(t, b.LocalAddr())
		number := func(c TxConfig) uint8 {
			t.Helper()
			n, err := a.Sockets(c)
			if err != nil {
				t.Fatalf("%+v: %v", c, err)
			}
			return n
		}
		low := TxConfig{SrcPorts: PortRange{20000, 20999}}
		ln := number(low)
		for _, tc := range []struct {
			c    TxConfig
			want uint8
		}{{TxConfig{}, 0}, {TxConfig{SrcPorts: PortRange{49152, 65535}}, 0}, {low, ln}} {
			if n := number(tc.c); n != tc.want {
				t.Errorf("%+v: %d, want %d", tc.c, n, tc.want)
			}
		}
		on := number(TxConfig{Checksum: ChecksumOn})
		if ln == 0 || on == 0 || on == ln {
			t.Errorf("numbers %d and %d", ln, on)
		}
		// Both ways with and without DF, and runs; what has no set is lost.
		var ds []frame.Datagram
		for _, set := range []uint8{0, ln, on} {
			for _, df := range []bool{true, false} {
				d := to("lone", 1000, eb)
				r := frame.Datagram{Parts: [][]byte{[]byte("abcde")}, Seg: 3, To: []frame.Endpoint{eb}, Flow: 1000}
				d.Set, d.DF, r.Set, r.DF = set, df, set, df
				ds = append(ds, d, r)
			}
		}
		for _, set := range []uint8{on + 1, 31, 32, 255} {
			d := to("none", 1000, eb, eb)
			d.Set = set
			ds = append(ds, d)
		}
		send(t, a, ds...)
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
		for _, r := range receive(t, b, 3*2*3) {
			ports[r.outer.Src.Port]++
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
		for field, c := range map[string]TxConfig{
			"SrcPorts": {SrcPorts: PortRange{9, 8}},
			"Checksum": {Checksum: 9},
		} {
			if _, err := a.Sockets(c); err == nil || !strings.HasPrefix(err.Error(), "underlay: TxConfig."+field+": ") {
				t.Errorf("%s: %v", field, err)
			}
		}
		for i := range uint16(MaxSets - 1) {
			if n, err := a.Sockets(TxConfig{SrcPorts: PortRange{30000 + i, 30000 + i}}); err != nil || n != uint8(i)+1 {
				t.Fatalf("set %d: %d, %v", i+1, n, err)
			}
		}
		if _, err := a.Sockets(TxConfig{SrcPorts: PortRange{1, 2}}); err == nil {
			t.Error("one set too many")
		}
		if n, err := a.Sockets(TxConfig{SrcPorts: PortRange{30003, 30003}}); err != nil || n != 4 {
			t.Errorf("one that is there: %d, %v", n, err)
		}
		a.Close()
		if _, err := a.Sockets(TxConfig{}); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
}
