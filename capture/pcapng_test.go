package capture

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// A file is the same, byte for byte, as gopacket writes it.
func TestPcapngAsGopacket(t *testing.T) {
	begun, ended := time.Unix(1234567890, 123456789), time.Unix(2345678901, 987654321)
	for _, filter := range []string{"", "x", "arp", "icmp or arp", strings.Repeat("long", 1000)} {
		for _, first := range []ngInterface{{name: "a", filter: filter, link: linkEthernet, snap: 262144}, {name: "tun 1", description: "it is described", filter: filter, link: linkRaw, snap: 1}} {
			var got, want bytes.Buffer
			theirs := pcapgo.NgInterface{Name: first.name, Description: first.description, Filter: filter, LinkType: layers.LinkType(first.link), SnapLength: uint32(first.snap)}
			w := check.Must(pcapgo.NewNgWriterInterface(&want, theirs, pcapgo.NgWriterOptions{SectionInfo: pcapgo.NgSectionInfo{Application: "vxswitch"}}))(t)
			p, err := newPcapng(&got)
			check.OK(t, err)
			p.addInterface(first)
			for range 2 {
				theirs.Name, first.name = theirs.Name+"b", first.name+"b"
				x, _ := w.AddInterface(theirs)
				if n, err := p.addInterface(first); n != x || err != nil {
					t.Fatal(n, err)
				}
			}
			for n := range 10 {
				data := bytes.Repeat([]byte{byte(n + 1)}, n*n)
				at := begun.Add(time.Duration(n) * time.Hour)
				w.WritePacket(gopacket.CaptureInfo{Timestamp: at, CaptureLength: len(data), Length: len(data) + n&1, InterfaceIndex: n % 3}, data)
				check.OK(t, p.packet(n%3, at.UnixNano(), data, len(data)+n&1))
			}
			w.WriteInterfaceStats(1, pcapgo.NgInterfaceStatistics{LastUpdate: ended, StartTime: begun, EndTime: ended, PacketsReceived: 1 << 33, PacketsDropped: 7})
			check.OK(t, p.statistics(1, begun, ended, 1<<33, 7))
			if w.Flush() != nil || p.flush() != nil || !bytes.Equal(got.Bytes(), want.Bytes()) {
				t.Errorf("filter of %d bytes:\n%x\nwant\n%x", len(filter), got.Bytes(), want.Bytes())
			}
		}
	}
}
