package snoop

import (
	"bytes"
	"slices"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
)

// Whatever a frame holds, it is not changed, the tables stay within their limits, and IGMPv3 and MLDv2 say to us what they say to
// gopacket.
func FuzzProcess(f *testing.F) {
	for _, b := range [][]byte{
		old(igmpReport2, groupA), old(igmpLeave, groupA), old(mldReport1, group6), old(mldDone, group6), asks(host4, 125), asks(host6, 200),
		report3(record(toExclude, groupA), record(toInclude, groupB, host4)), report3(record(modeIsExclude, group6)), packet4(host4, groupA, 17, make([]byte, 8)),
	} {
		f.Add(b, uint8(1))
	}
	f.Fuzz(func(t *testing.T, b []byte, place uint8) {
		l := newLab(t, Config{Querier: true, Limit: 8})
		l.pass(13)
		l.from(port2, old(igmpReport2, groupA))
		was := bytes.Clone(b)
		d := frame.NewDest(uint16(place%4)+1, 0)
		v := l.from(d, b)
		l.to(b)
		if !bytes.Equal(b, was) {
			t.Fatal("the frame has changed")
		}
		if a := v.Action(); a != frame.ActContinue && a != frame.ActDrop {
			t.Fatal(v)
		}
		st := l.Stats()
		if st.Listeners > 8 || st.Groups > st.Listeners {
			t.Fatalf("%+v", st)
		}
		if v == frame.Continue && st.Reports == 2 && st.Crowded == 0 {
			compare(t, l, b, d)
		}
		l.pass(4000)
		if st = l.Stats(); st.Listeners != 0 || st.Crowded != 0 {
			t.Fatalf("after an hour: %+v", st)
		}
	})
}

// compare checks that the groups of a report are known, as gopacket reads it.
func compare(t *testing.T, l *lab, b []byte, d frame.Dest) {
	p := gopacket.NewPacket(b, layers.LayerTypeEthernet, gopacket.Default)
	var joined [][]byte
	if m, ok := p.Layer(layers.LayerTypeIGMP).(*layers.IGMP); ok {
		for _, r := range m.GroupRecords {
			if r.Type == layers.IGMPToEx || r.Type == layers.IGMPIsEx {
				joined = append(joined, r.MulticastAddress.To4())
			}
		}
	}
	if m, ok := p.Layer(layers.LayerTypeMLDv2MulticastListenerReport).(*layers.MLDv2MulticastListenerReportMessage); ok {
		for _, r := range m.MulticastAddressRecords {
			if r.RecordType == layers.MLDv2MulticastAddressRecordTypeModeIsExcluded || r.RecordType == layers.MLDv2MulticastAddressRecordTypeChangeToExcludeMode {
				joined = append(joined, r.MulticastAddress.To16())
			}
		}
	}
	for _, a := range joined {
		g := mapped(a)
		if list, _ := l.joined.Load(g); g.isMulticast() && !g.flooded() && !slices.Contains(list, d) && l.Stats().Leaves == 0 {
			t.Fatalf("%v has joined %v, known are %v", d, a, list)
		}
	}
}
