package underlay

import (
	"context"
	"encoding/binary"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
)

// What is on the wire, as tshark reads it.
func TestIPWireHeaders(t *testing.T) {
	a, b := wired(t)
	for _, local := range [][2]string{wired4, wired6} {
		ua, ub := both(t, a, b, local, &IPConfig{DefaultTTL: 50})
		eb := endpoint(t, ub.LocalAddr())
		c := b.Capture("eth0", "ip proto 4 or ip proto 41 or ip6 proto 4 or ip6 proto 41")
		p4, p6 := inside(t, 4, 1, 2, 60), inside(t, 6, 1, 2, 90)
		ds := []frame.Datagram{to(p4, 0, eb), to(p6, 0, eb)}
		ds[1].TOS, ds[1].TTL = 0xbb, 3
		for range 4 { // without DF
			d := to(p4, 0, eb)
			d.DF = false
			ds = append(ds, d)
		}
		send(t, ua, ds...)
		receiveFrom(t, ub, 0, 5)
		receiveFrom(t, ub, 1, 1)
		ps := c.Stop()
		if ua.Is4() {
			rows := netns.Fields(t, ps, "", "ip.proto", "ip.ttl", "ip.dsfield", "ip.flags.df", "ip.id", "ip.src", "ip.checksum.status")
			ids := map[string]bool{}
			for _, row := range rows {
				for i := range row { // the outer header
					row[i], _, _ = strings.Cut(row[i], ",")
				}
				if row[3] == "False" || row[3] == "0" {
					ids[row[4]] = true
				} else if row[4] != "0x0000" {
					t.Errorf("with DF: identification %s", row[4])
				}
				if row[5] != local[0] || row[6] != "1" && row[6] != "Good" {
					t.Errorf("%q", row)
				}
			}
			if len(rows) != 6 || len(ids) != 4 || ids["0x0000"] {
				t.Fatalf("%d packets, identifications without DF %v", len(rows), ids)
			}
			// Protocols are sent one after the other.
			slices.SortStableFunc(rows, func(a, b []string) int { return strings.Compare(b[0], a[0]) })
			if x := rows[0][:4]; x[0] != "41" || x[1] != "3" || x[2] != "0xbb" {
				t.Errorf("%q", x)
			}
			if x := rows[1][:4]; x[0] != "4" || x[1] != "50" || x[2] != "0x00" || x[3] == "False" || x[3] == "0" {
				t.Errorf("%q", x)
			}
		} else {
			var nxt, hops, class []string
			for _, row := range netns.Fields(t, ps, "", "ipv6.nxt", "ipv6.hlim", "ipv6.tclass", "ipv6.src", "ipv6.fragment") {
				nxt, hops, class = append(nxt, first(row[0])), append(hops, first(row[1])), append(class, first(row[2]))
				if first(row[3]) != local[0] || row[4] != "" {
					t.Errorf("%q", row)
				}
			}
			slices.Sort(nxt)
			slices.Sort(hops)
			if strings.Join(nxt, " ") != "4 4 4 4 4 41" || strings.Join(hops, " ") != "3 50 50 50 50 50" {
				t.Errorf("%q %q %q", nxt, hops, class)
			}
			if n := slices.IndexFunc(class, func(s string) bool { v, _ := strconv.ParseUint(s, 0, 8); return v == 0xbb }); n < 0 {
				t.Errorf("%q", class)
			}
		}
		ua.Close()
		ub.Close()
	}
}

func first(values string) string { s, _, _ := strings.Cut(values, ","); return s }

// Above the interface's MTU a packet with DF is lost, over IPv6 any; one without leaves in
// fragments, and arrives whole.
func TestIPTooLong(t *testing.T) {
	a, b := wired(t)
	for _, tc := range []struct {
		local [2]string
		fits  int
	}{{wired4, 1480}, {wired6, 1460}} {
		ua, ub := both(t, a, b, tc.local, nil)
		eb := endpoint(t, ub.LocalAddr())
		var told reports
		ua.PathMTU(told.PathMTU)
		p, long, longest := inside(t, 4, 1, 2, tc.fits), inside(t, 4, 1, 2, tc.fits+1), inside(t, 4, 1, 2, 65515)
		ds := []frame.Datagram{to(long, 0, eb, eb), to(p, 0, eb), to(long, 0, eb), to(longest, 0, eb), to(p, 0, eb)}
		ds[2].DF, ds[3].DF = false, false
		want := []uint16{2, 0, 0, 0, 0}
		if !ua.Is4() {
			want = []uint16{2, 0, 1, 1, 0}
		}
		send(t, ua, ds...)
		var arrive []string
		for i := range ds {
			if ds[i].Lost != want[i] || want[i] > 0 && ds[i].Drop != frame.TooBig {
				t.Errorf("%v: datagram %d: lost %d, %v", tc.local, i, ds[i].Lost, ds[i].Drop)
			}
			if ds[i].Lost == 0 {
				arrive = append(arrive, string(ds[i].Parts[0]))
			}
		}
		got := payloads(receive(t, ub, len(arrive)))
		slices.Sort(got) // fragments are overtaken
		slices.Sort(arrive)
		if !slices.Equal(got, arrive) {
			t.Errorf("%v: not what was sent", tc.local)
		}
		all := told.Take()
		for _, x := range all {
			if x.To != eb || x.MTU != 1500 || x.Quoted != "" {
				t.Errorf("%v: %+v", tc.local, x)
			}
		}
		if len(all) == 0 {
			t.Errorf("%v: nobody was told", tc.local)
		}
		ua.Close()
		ub.Close()
	}
}

// Segments of one TCP flow that the kernel joins on the way arrive as one packet, whole.
func TestIPJoinedOnTheWay(t *testing.T) {
	a, b := wired(t)
	// A veth joins only what came without segmentation offload, and only within one poll
	// unless it is told to wait.
	a.TxOff("eth0")
	b.Run("ethtool", "-K", "eth0", "gro", "on")
	b.Run("sh", "-c", "echo 2000000 >/sys/class/net/eth0/gro_flush_timeout")
	for _, local := range [][2]string{wired4, wired6} {
		ua, ub := both(t, a, b, local, nil)
		eb := endpoint(t, ub.LocalAddr())
		const segs, size = 40, 1400
		data := pattern(segs * size)
		longest, finished := 0, true
		for range 50 { // until it happens
			var ds []frame.Datagram
			for i := range segs {
				ds = append(ds, to(tcpInside(t, 1+uint32(i*size), data[i*size:(i+1)*size]), 0, eb))
			}
			send(t, ua, ds...)
			have := map[uint32]string{}
			for n := 0; n < len(data); {
				r := read(t, ub)
				for _, x := range r {
					p := gopacket.NewPacket([]byte(x.Payload), layers.LayerTypeIPv4, gopacket.Default)
					tcp, ok := p.Layer(layers.LayerTypeTCP).(*layers.TCP)
					if !ok || x.Drop != 0 || p.ErrorLayer() != nil {
						t.Fatalf("%v, %v: %d bytes", p.ErrorLayer(), x.Drop, len(x.Payload))
					}
					have[tcp.Seq] = string(tcp.Payload)
					n += len(tcp.Payload)
					if len(x.Payload) > 1500 {
						finished = finished && checksumRight(t, p, tcp)
					}
					longest = max(longest, len(x.Payload))
				}
			}
			whole := ""
			for seq := uint32(1); len(whole) < len(data) && have[seq] != ""; {
				s := have[seq]
				whole += s
				seq += uint32(len(s))
			}
			if whole != string(data) {
				t.Fatal("not the bytes that were sent")
			}
			if longest > 1500 {
				break
			}
		}
		t.Logf("over %s: up to %d bytes at once; checksums finished: %v", local[0], longest, finished)
		if longest <= 1500 {
			t.Errorf("over %s: nothing was joined", local[0])
		}
		ua.Close()
		ub.Close()
	}
}

// checksumRight reports whether a TCP segment has the checksum that gopacket gives it.
func checksumRight(t *testing.T, p gopacket.Packet, tcp *layers.TCP) bool {
	t.Helper()
	again := *tcp
	b := gopacket.NewSerializeBuffer()
	err := again.SetNetworkLayerForChecksum(p.NetworkLayer())
	if err == nil {
		err = gopacket.SerializeLayers(b, gopacket.SerializeOptions{ComputeChecksums: true}, &again, gopacket.Payload(tcp.Payload))
	}
	must(t, err)
	return again.Checksum == tcp.Checksum
}

// tcpInside makes an IPv4 packet with a TCP segment.
func tcpInside(t *testing.T, seq uint32, payload []byte) string {
	t.Helper()
	ip := &layers.IPv4{Version: 4, TTL: 9, Flags: layers.IPv4DontFragment, Protocol: layers.IPProtocolTCP, SrcIP: net.IPv4(172, 16, 0, 1), DstIP: net.IPv4(172, 17, 0, 1)}
	tcp := &layers.TCP{SrcPort: 1, DstPort: 2, Seq: seq, Ack: 1, ACK: true, Window: 1000}
	tcp.SetNetworkLayerForChecksum(ip)
	return string(packets.Of(ip, tcp, gopacket.Payload(payload)))
}

// Options in the outer header, the tunnel encapsulation limit above all (RFC 2473, section
// 4.1.1), are not in the way.
func TestIPOuterOptions(t *testing.T) {
	a, b := wired(t)
	mac := func(h *netns.Host) []byte {
		m, err := net.ParseMAC(h.MAC("eth0"))
		must(t, err)
		return m
	}
	p4, p6 := inside(t, 4, 1, 2, 60), inside(t, 6, 1, 2, 90)

	_, u6 := both(t, a, b, wired6, nil)
	for i, p := range []string{p4, p6} {
		protocol := byte(4)
		if i == datagrams.Carries6 {
			protocol = 41
		}
		x := slices.Concat(mac(b), mac(a), []byte{0x86, 0xdd, 0x60, 0, 0, 0}, binary.BigEndian.AppendUint16(nil, uint16(8+len(p))), []byte{60, 33},
			net.ParseIP(wired6[0]), net.ParseIP(wired6[1]), []byte{protocol, 0, 4, 1, 4, 1, 1, 0}, []byte(p))
		a.Inject("eth0", x)
		if r := receiveFrom(t, u6, i, 1)[0]; r.Payload != p || r.Outer.TTL != 33 || r.Kind != datagrams.Kind(i) || r.Drop != 0 {
			t.Errorf("%+v", r)
		}
	}

	_, u4 := both(t, a, b, wired4, nil)
	ip := &layers.IPv4{Version: 4, TTL: 33, Protocol: 4, SrcIP: net.ParseIP(wired4[0]).To4(), DstIP: net.ParseIP(wired4[1]).To4(),
		Options: []layers.IPv4Option{{OptionType: 1}, {OptionType: 1}, {OptionType: 148, OptionLength: 4, OptionData: []byte{0, 0}}}} // router alert
	buf := packets.Of(&layers.Ethernet{SrcMAC: mac(a), DstMAC: mac(b), EthernetType: layers.EthernetTypeIPv4}, ip, gopacket.Payload(p4))
	if h := buf[14] & 15; h <= 5 {
		t.Fatalf("a header of %d words", h)
	}
	a.Inject("eth0", buf)
	if r := receiveFrom(t, u4, datagrams.Carries4, 1)[0]; r.Payload != p4 || r.Outer.TTL != 33 || r.Drop != 0 {
		t.Errorf("%+v", r)
	}
	// Nothing inside is delivered as nothing: it is the VTEP's to drop.
	send(t, u4, frame.Datagram{}) // nobody to send to
	ip.Options = nil
	buf = packets.Of(&layers.Ethernet{SrcMAC: mac(a), DstMAC: mac(b), EthernetType: layers.EthernetTypeIPv4}, ip)
	a.Inject("eth0", buf)
	if r := receiveFrom(t, u4, datagrams.Carries4, 1)[0]; r.Payload != "" || r.Drop != 0 {
		t.Errorf("%+v", r)
	}
}

// The outer header of an IPv4 packet, whatever the kernel hands over.
func TestIPPullHeader(t *testing.T) {
	header := func(first byte, n int) []byte { return append([]byte{first}, make([]byte, n-1)...) }
	for _, tc := range []struct {
		p    []byte
		left int // -1: refused
	}{
		{header(0x45, 20), 0}, {header(0x45, 21), 1}, {header(0x46, 24), 0}, {header(0x4f, 60), 0}, {header(0x4f, 61), 1},
		{nil, -1}, {header(0x45, 1), -1}, {header(0x45, 19), -1}, {header(0x44, 40), -1}, {header(0x40, 40), -1},
		{header(0x46, 23), -1}, {header(0x4f, 59), -1}, {header(0x65, 40), -1}, {header(0x05, 40), -1},
	} {
		r := newReader(&base{raw: true, is4: true}, nil)
		r.N = 2
		arrival{data: tc.p}.put(r, 0)
		arrival{data: header(0x45, 22), trunc: true}.put(r, 1)
		b := frame.NewBatch(nil)
		r.deliver(b)
		f := &b.Frames[0]
		if tc.left < 0 {
			if f.Drop != frame.BadHeader || f.Len() != len(tc.p) {
				t.Errorf("% x: %v, %d bytes", tc.p, f.Drop, f.Len())
			}
		} else if f.Drop != frame.NotDropped || f.Len() != tc.left {
			t.Errorf("% x: %v, %d bytes", tc.p, f.Drop, f.Len())
		}
		if f := &b.Frames[1]; f.Drop != frame.TooBig || f.Len() != 2 {
			t.Errorf("cut: %v, %d bytes", f.Drop, f.Len())
		}
	}
}

// A tunnel whose sending end is the kernel's: segment routing over IPv6 with a single segment
// and reduced encapsulation is IPv4 or IPv6 in IPv6, and nothing else (RFC 8986, section 5.2).
func TestIPFromTheKernel(t *testing.T) {
	a, b := wired(t)
	_, ub := both(t, a, b, wired6, nil)
	a.Addr("lo", "172.16.0.1/32,fd77::1/128")
	a.Route("172.17.0.0/16", "encap", "seg6", "mode", "encap.red", "segs", wired6[1], "dev", "eth0", "src", "172.16.0.1")
	a.Route("fd78::/64", "encap", "seg6", "mode", "encap.red", "segs", wired6[1], "dev", "eth0", "src", "fd77::1")
	for i, dst := range []string{"172.17.0.9", "fd78::9"} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		_, _ = a.Try(ctx, "ping", "-n", "-c", "3", "-i", "0.2", "-W", "1", "-s", strconv.Itoa(700+i), dst) // nobody answers
		cancel()
		for n, r := range receiveFrom(t, ub, i, 3) {
			p := gopacket.NewPacket([]byte(r.Payload), []gopacket.LayerType{layers.LayerTypeIPv4, layers.LayerTypeIPv6}[i], gopacket.Default)
			if p.ErrorLayer() != nil || p.NetworkLayer() == nil || p.NetworkLayer().NetworkFlow().Dst().String() != dst || r.Kind != datagrams.Kind(i) || r.Drop != 0 {
				t.Errorf("packet %d: %v, kind %v, %v", n, p, r.Kind, r.Drop)
			}
			if want := []int{700 + 28, 701 + 48}[i]; len(r.Payload) != want || r.Outer.Dst != endpoint(t, ub.LocalAddr()) {
				t.Errorf("%d bytes, want %d; %+v", len(r.Payload), want, r.Outer)
			}
		}
	}
}
