package underlay

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/lab/underlaytest"
)

// A run arrives as the datagrams it stands for, wherever its parts end, with the
// kernel's help or without, and the counters say which.
func TestUDPRuns(t *testing.T) {
	families(t, func(t *testing.T, la, lb string) {
		most := datagrams.MaxPacket - 48
		for _, tc := range []struct {
			name   string
			n, seg int
			parts  []int // lengths, the last for the rest; nil: two for each segment
			runs   int   // messages with several datagrams
			lone   int   // messages with one
		}{
			{"one", 8, 8, nil, 0, 1},
			{"shorter than a segment", 5, 8, nil, 0, 1},
			{"empty", 0, 8, nil, 0, 1},
			{"two", 9, 8, nil, 1, 0},
			{"sixty-four", 640, 10, nil, 1, 0},
			{"sixty-five", 650, 10, nil, 1, 1},
			{"sixty-five and a bit", 659, 10, nil, 2, 0},
			{"longer than an IP packet", 60 * 1400, 1400, nil, 2, 0},
			{"segments of half an IP packet", 3 * (most / 2), most / 2, nil, 1, 1},
			{"segments that fill an IP packet", 2 * most, most, nil, 0, 2},
			{"more pieces than a message takes", 700, 100, slices.Repeat([]int{1}, 700), 1, 0},
			{"many more", 3000, 500, slices.Repeat([]int{1}, 3000), 3, 0},
			{"parts that end anywhere", 40, 7, []int{1, 0, 20, 3}, 1, 0},
		} {
			for _, off := range []bool{false, true} {
				a, b := listen(t, la, &UDPConfig{NoOffload: off}), listen(t, lb, &UDPConfig{MaxDatagram: 65535})
				c := listen(t, lb, &UDPConfig{MaxDatagram: 65535})
				d, want := runOf(tc.n, tc.seg, 3, 77, endpoint(t, b.LocalAddr()), endpoint(t, c.LocalAddr()))
				if tc.n == 0 {
					want = []string{""}
				}
				if tc.parts != nil {
					all := slices.Concat(d.Parts...)
					d.Parts = nil
					for _, n := range tc.parts {
						d.Parts = append(d.Parts, all[:n:n])
						all = all[n:]
					}
					d.Parts = append(d.Parts, all)
				}
				d.TOS, d.TTL = 0xb9, 9
				ds := []frame.Datagram{d}
				send(t, a, ds...)
				if ds[0].Lost != 0 {
					t.Errorf("%s: lost %d: %v", tc.name, ds[0].Lost, ds[0].Drop)
				}
				for _, u := range []*UDP{b, c} {
					rs := receive(t, u, len(want))
					if !slices.Equal(payloads(rs), want) {
						t.Errorf("%s, NoOffload %v: %d datagrams arrived changed", tc.name, off, len(rs))
					}
					for _, r := range rs {
						if r.Outer.TOS != 0xb9 || r.Outer.TTL != 9 || r.Outer.Src.Port != rs[0].Outer.Src.Port {
							t.Errorf("%s: %+v", tc.name, r.Outer)
						}
					}
				}
				st := a.Stats()
				w := Stats{TxDatagrams: uint64(2 * len(want)), TxRuns: uint64(2 * tc.runs), TxSegments: uint64(2 * (len(want) - tc.lone))}
				if off {
					w.TxRuns, w.TxSegments = 0, 0
				}
				if st.TxDatagrams != w.TxDatagrams || st.TxRuns != w.TxRuns || st.TxSegments != w.TxSegments || st.Lost() != 0 {
					t.Errorf("%s, NoOffload %v: %d datagrams, %d in %d runs; want %d, %d in %d", tc.name, off,
						st.TxDatagrams, st.TxSegments, st.TxRuns, w.TxDatagrams, w.TxSegments, w.TxRuns)
				}
			}
		}
	})
}

// A flow keeps its port and its order when lone datagrams, runs and datagrams without DF
// take turns, whatever sockets these need.
func TestUDPRunsKeepOrder(t *testing.T) {
	families(t, func(t *testing.T, la, lb string) {
		for _, sum := range []Checksum{ChecksumAuto, ChecksumOn, ChecksumOff} {
			a := listen(t, la, &UDPConfig{Checksum: sum})
			b := listen(t, lb, &UDPConfig{ZeroChecksum6RX: true})
			eb := endpoint(t, b.LocalAddr())
			var ds []frame.Datagram
			want := make(map[uint16][]string)
			for i := range 60 {
				flow := uint16(i % 3 * 20000)
				d, s := runOf(25, 10, 4, flow, eb)
				if i%2 == 0 {
					d = to(fmt.Sprint("lone ", i), flow, eb)
					s = []string{fmt.Sprint("lone ", i)}
				}
				d.DF = i%5 != 0
				ds, want[flow] = append(ds, d), append(want[flow], s...)
			}
			send(t, a, ds...)
			seen := make(map[uint16][]string)
			for _, r := range receive(t, b, 30+30*3) {
				seen[r.Outer.Src.Port] = append(seen[r.Outer.Src.Port], r.Payload)
			}
			if len(seen) != 3 {
				t.Errorf("mode %d: %d source ports", sum, len(seen))
			}
			for flow, w := range want {
				if s := seen[txPort(a, datagrams.Index(flow, 16))]; !slices.Equal(s, w) {
					t.Errorf("mode %d: flow %d: %q, want %q", sum, flow, s, w)
				}
			}
			if st := a.Stats(); (st.TxRuns == 0) != (sum == ChecksumOff) || st.TxDatagrams != 120 {
				t.Errorf("mode %d: %+v", sum, st)
			}
		}
	})
}

// Runs have a checksum, and lone datagrams are as they are without runs.
func TestWireRunChecksum(t *testing.T) {
	underlaytest.InNamespace(t, func(t *testing.T) {
		dst := frame.Endpoint{IP: [16]byte{10: 0xff, 11: 0xff, 12: 10, 13: 9, 14: 0, 15: 2}, Port: 4789}
		c := underlaytest.NewCapture(t, "vb")
		for _, tc := range []struct {
			sum       Checksum
			run, lone bool // have a checksum
		}{{ChecksumAuto, true, false}, {ChecksumOn, true, true}, {ChecksumOff, false, false}} {
			u := listen(t, "10.9.0.1:4789", &UDPConfig{Checksum: tc.sum, NoOffload: false})
			underlaytest.IP(t, "link set va gso_max_segs 1") // so that the capture shows datagrams
			d, want := runOf(20, 8, 8, 5, dst)
			send(t, u, to("lone", 5, dst), d)
			for i, w := range append([]string{"lone"}, want...) {
				p := c.Packet(t)
				has := p[26] != 0 || p[27] != 0
				if string(p[28:]) != w || p[6] != 0x40 || has != (i == 0 && tc.lone || i > 0 && tc.run) {
					t.Errorf("mode %d: datagram %d: % x", tc.sum, i, p)
				}
			}
			u.Close()
		}
	})
}

// A run the kernel refuses leaves as single datagrams, and what is wrong with one of
// them is told for it alone. Segments above the interface's MTU are such a case.
func TestUDPRefusedRun(t *testing.T) {
	underlaytest.InNamespace(t, func(t *testing.T) {
		underlaytest.IP(t, "link set va mtu 1400")
		u := listen(t, "10.9.0.1:4789", &UDPConfig{Checksum: ChecksumOn})
		near := frame.Endpoint{IP: [16]byte{10: 0xff, 11: 0xff, 12: 10, 13: 9, 14: 0, 15: 2}, Port: 4789}
		var said reports
		u.PathMTU(said.PathMTU)
		long, _ := runOf(3*1380+100, 1380, 8, 1, near)
		fits, _ := runOf(3*1300+100, 1300, 8, 1, near)
		ds := []frame.Datagram{fits, long, fits, to("x", 1, near)}
		send(t, u, ds...)
		for i, want := range []frame.Reason{0, frame.TooBig, 0, 0} {
			if ds[i].Drop != want || (ds[i].Lost == 1) != (want != 0) {
				t.Errorf("datagram %d: lost %d, %v", i, ds[i].Lost, ds[i].Drop)
			}
		}
		// The last of the long run is short, and was sent.
		if st := u.Stats(); st.TxLost[frame.TooBig] != 3 || st.TxDatagrams != 4+1+4+1 || st.TxRuns != 2 || st.TxSegments != 8 {
			t.Errorf("%+v", st)
		}
		said.WantMTU(t, 1400)
	})
}

// The kernel refuses every run on a socket without checksums: with EINVAL, which is said
// of single runs only, so that each is tried.
func TestUDPRunsThatAreAllRefused(t *testing.T) {
	a := listen(t, "127.0.0.1:0", nil)
	b := listen(t, "127.0.0.1:0", nil)
	a.sets.Get(0).run = 0 // the lone datagrams' sockets, which have SO_NO_CHECK
	d, want := runOf(95, 10, 4, 1, endpoint(t, b.LocalAddr()))
	d.TOS = 4
	ds := []frame.Datagram{d, d}
	send(t, a, ds...)
	if ds[0].Lost != 0 || ds[1].Lost != 0 {
		t.Errorf("%+v", ds)
	}
	rs := receive(t, b, 2*len(want))
	if !slices.Equal(payloads(rs), append(want, want...)) || rs[3].Outer.TOS != 4 {
		t.Errorf("%+v", rs)
	}
	if st := a.Stats(); st.TxRuns != 0 || st.TxDatagrams != uint64(2*len(want)) || st.Lost() != 0 {
		t.Errorf("%+v", st)
	}
}

// What is wrong with an endpoint costs each copy once, whatever it consisted of.
func TestUDPRunLost(t *testing.T) {
	a, b := listen(t, "127.0.0.1:0", nil), listen(t, "127.0.0.1:0", nil)
	eb := endpoint(t, b.LocalAddr())
	other := listen(t, "[::1]:0", nil)
	d, want := runOf(100*10, 10, 4, 1, eb.WithPort(0), eb, endpoint(t, other.LocalAddr()), eb.WithPort(0))
	huge := frame.Datagram{Parts: make([][]byte, 0, 1100), Seg: 1050, To: []frame.Endpoint{eb}, Flow: 1, DF: true}
	for range 1100 {
		huge.Parts = append(huge.Parts, []byte{1})
	}
	none := d
	none.Set = 7
	ds := []frame.Datagram{d, huge, none, to("end", 1, eb)}
	send(t, a, ds...)
	for i, w := range []struct {
		lost uint16
		why  frame.Reason
	}{{3, frame.Unreachable}, {1, frame.SendFailed}, {4, frame.SendFailed}, {0, 0}} {
		if ds[i].Lost != w.lost || ds[i].Drop != w.why {
			t.Errorf("datagram %d: lost %d, %v", i, ds[i].Lost, ds[i].Drop)
		}
	}
	rs := payloads(receive(t, b, 102))
	if !slices.Equal(rs[:100], want) || rs[100] != strings.Repeat("\x01", 50) || rs[101] != "end" {
		t.Errorf("%q", rs)
	}
	st := a.Stats()
	if st.TxLost[frame.Unreachable] != 300 || st.TxLost[frame.SendFailed] != 401 {
		t.Errorf("%d and %d datagrams lost", st.TxLost[frame.Unreachable], st.TxLost[frame.SendFailed])
	}
}

// Without offloads nothing leaves as a run; what the way out has refused leaves as single datagrams.
func TestUDPNoRuns(t *testing.T) {
	for _, off := range []bool{false, true} {
		a, b := listen(t, "127.0.0.1:0", &UDPConfig{NoOffload: off}), listen(t, "127.0.0.1:0", nil)
		d, want := runOf(95, 10, 4, 1, endpoint(t, b.LocalAddr()))
		for split, runs := range map[bool]uint64{true: 0, false: 1} {
			a.sets.Get(0).split.Store(split)
			before := a.Stats().TxRuns
			send(t, a, d)
			if !slices.Equal(payloads(receive(t, b, len(want))), want) {
				t.Errorf("no offload %v, refused %v", off, split)
			}
			if n := a.Stats().TxRuns - before; off && n != 0 || !off && n != runs {
				t.Errorf("no offload %v, refused %v: %d runs", off, split, n)
			}
		}
	}
}
