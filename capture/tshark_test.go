package capture_test

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/capture"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay/memory"
	"github.com/vxswitch/vxswitch/vtep"
)

// tshark decodes a capture file and returns the fields of the packets that match
// filter, one line each, with checksums verified.
func tshark(t *testing.T, file, filter string, fields ...string) []string {
	t.Helper()
	if _, err := exec.LookPath("tshark"); err != nil {
		t.Fatalf("%v: install the package tshark (apt-get install tshark)", err)
	}
	args := []string{"-r", file, "-Y", filter, "-T", "fields", "-E", "separator=|", "-E", "occurrence=a",
		"-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"}
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var errs bytes.Buffer
	c := exec.CommandContext(ctx, "tshark", args...)
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		t.Fatalf("tshark: %v\n%s", err, errs.String())
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

// datagram is an Ethernet frame with UDP inside, checksums right.
func datagram(t *testing.T, payload string) []byte {
	t.Helper()
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: []byte{10, 0, 0, 1}, DstIP: []byte{10, 0, 0, 2}}
	udp := &layers.UDP{SrcPort: 1000, DstPort: 2000}
	udp.SetNetworkLayerForChecksum(ip)
	return packets.Of(
		&layers.Ethernet{SrcMAC: []byte{2, 0, 0, 0, 0, 1}, DstMAC: []byte{2, 0, 0, 0, 0, 2}, EthernetType: layers.EthernetTypeIPv4},
		ip, udp, gopacket.Payload(payload))
}

// Two switches with a tunnel between them, and everything captured into one file:
// tshark sees the frame at each of its four stations.
func TestCaptureDecodedByTshark(t *testing.T) {
	for _, a := range [][2]string{{"192.0.2.1:4789", "192.0.2.2:4789"}, {"[2001:db8::1]:4789", "[2001:db8::2]:4789"}} {
		c := check.Must(capture.New(nil))(t)
		file := filepath.Join(t.TempDir(), "c.pcapng")
		f := check.Must(os.Create(file))(t)
		defer f.Close()
		check.OK(t, c.Start(f))
		net := memory.NewNetwork(nil)
		defer net.Close()
		var hosts [2]*port.Pipe
		for i := range a {
			u := check.Must(net.Listen(netip.MustParseAddrPort(a[i]), nil))(t)
			v := check.Must(vtep.New(nil, c.Underlay(u)))(t)
			sw := check.Must(vswitch.New(nil))(t)
			hosts[i] = port.NewPipe(&port.PipeConfig{Name: fmt.Sprintf("h%d", i+1)})
			p := check.Must(c.Port(hosts[i]))(t)
			vsi := check.Must(sw.VSI(4100, nil))(t)
			check.Must(vsi.Attach(v, 4100))(t)
			// The second host is on a trunk.
			check.Must(vsi.Attach(p, uint32(i)*7))(t)
			check.OK(t, v.SetFlood(4100, netip.MustParseAddrPort(a[1-i])))
			check.Run(t, sw.Run)
		}
		const n = 5
		for i := range n {
			// Odd and even lengths, for the checksum over pieces.
			check.OK(t, hosts[0].Send(datagram(t, strings.Repeat("x", 30+i))))
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			check.Must(hosts[1].Recv(ctx))(t)
			cancel()
		}
		check.OK(t, c.Close())
		if s := c.Stats(); s.Packets != 4*n || s.Dropped != 0 {
			t.Errorf("%+v", s)
		}

		ip, bad := "ip", "_ws.malformed || ip.checksum.status == 0 || udp.checksum.status == 0 || udp.checksum.zero"
		if a[0][0] == '[' {
			ip = "ipv6"
		}
		if lines := tshark(t, file, bad, "frame.number", "_ws.expert.message"); lines[0] != "" {
			t.Errorf("tshark finds fault with %q", lines)
		}
		got := tshark(t, file, "frame", "frame.interface_name", "frame.protocols", ip+".src", ip+".dst", "udp.dstport", "udp.length", "vxlan.vni", "vlan.id")
		src, dst := netip.MustParseAddrPort(a[0]).Addr(), netip.MustParseAddrPort(a[1]).Addr()
		var want []string
		for i := range n {
			udp := 8 + 30 + i
			inner, outer := "10.0.0.1|10.0.0.2", fmt.Sprintf("%v,10.0.0.1|%v,10.0.0.2", src, dst)
			plain, tagged := fmt.Sprintf("%s|2000|%d||", inner, udp), fmt.Sprintf("%s|2000|%d||7", inner, udp)
			if ip == "ipv6" {
				outer = fmt.Sprintf("%v|%v", src, dst)
				plain, tagged = fmt.Sprintf("||2000|%d||", udp), fmt.Sprintf("||2000|%d||7", udp)
			}
			tunnel := fmt.Sprintf("raw:%s:udp:vxlan:eth:ethertype:ip:udp:data|%s|4789,2000|%d,%d|4100|", ip, outer, 8+8+14+20+udp, udp)
			want = append(want,
				"h1|eth:ethertype:ip:udp:data|"+plain, a[0]+"|"+tunnel,
				a[1]+"|"+tunnel, "h2|eth:ethertype:vlan:ethertype:ip:udp:data|"+tagged)
		}
		if !slices.Equal(got, want) {
			t.Errorf("tshark decodes\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if ip == "ipv6" { // over IPv4 the checksum is left out, over IPv6 it was verified
			if lines := tshark(t, file, "vxlan && udp.checksum.status == 1", "frame.number"); len(lines) != 2*n {
				t.Errorf("%d packets with a right outer checksum, want %d", len(lines), 2*n)
			}
		}
	}
}
