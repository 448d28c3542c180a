package kernel

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
)

// Twenty datagrams that a guest sends in one piece (UDP_SEGMENT) stay one piece: its kernel leaves them uncut to the TAP, they leave
// the node as one run, and the guest at the other end gets them in one message (UDP_GRO). Without offloads each of them is a packet.
// Over both address families inside and outside, from both kinds of devices and over both underlays.
func TestUDPInOnePiece(t *testing.T) {
	const seg, segs = 1200, 20
	for _, x := range underlays {
		for _, typ := range []node.PortType{node.PortTAP, node.PortVeth} {
			for _, off := range []bool{false, true} {
				if off && (x.packet || typ == node.PortVeth) {
					continue
				}
				t.Run(fmt.Sprintf("%s/%v/%v", x.name(), typ, !off), func(t *testing.T) {
					n := netns.New(t)
					var homes, pods [2]*netns.Host
					for i := range homes {
						homes[i], pods[i] = n.Host(fmt.Sprint("node", i)), n.Host(fmt.Sprint("pod", i))
					}
					ends := [2]string{x.fam.near, x.fam.far}
					n.Link(homes[0], ends[0]+x.fam.bits, homes[1], ends[1]+x.fam.bits)
					for i, h := range homes {
						h.Ready()
						tunnel := node.Tunnel{Local: netip.MustParseAddr(ends[i])}
						tunnel.Name, tunnel.NoOffload = "vx", off
						if x.packet {
							tunnel.Underlay, tunnel.Device = node.UnderlayPacket, "eth0"
						}
						y := running(t, nil)
						h.Do(func() {
							check.OK(t, y.Apply(&node.Config{
								Tunnels:  []node.Tunnel{tunnel},
								Ports:    []node.Port{{Name: "pod", Type: typ, DeviceConfig: port.DeviceConfig{Namespace: pods[i].NS, NoOffload: off}}},
								Segments: []node.Segment{{VNI: vni, Members: []node.Member{{Port: "pod"}}, Tunnels: []node.SegmentTunnel{{Tunnel: "vx", Flood: []netip.Addr{netip.MustParseAddr(ends[1-i])}}}}},
							}))
						})
						pods[i].Addr("pod", fmt.Sprintf("192.168.7.%d/24", 1+i))
						pods[i].Addr("pod", fmt.Sprintf("fd07::%d/64", 1+i))
						pods[i].Ready()
					}
					offered := strings.Contains(pods[0].Run("ethtool", "-k", "pod"), "tx-udp-segmentation: on")
					check.Equal(t, "tx-udp-segmentation", offered, !off)
					for _, to := range []string{"192.168.7.2", "fd07::2"} {
						pods[0].Ping(to, 1)
						wire := homes[1].Capture("eth0", "udp dst port 4789")
						payload := make([]byte, seg*segs)
						for i := range payload {
							payload[i] = byte(i / seg)
						}
						got, size := inOnePiece(t, pods[0], pods[1], to, payload, seg)
						check.True(t, bytes.Equal(got, payload[:len(got)]), "other bytes arrive")
						inner := 14 + 20 + 8
						if strings.Contains(to, ":") {
							inner += 20
						}
						outer := 14 + 20 + 8
						if x.fam.v6 {
							outer += 20
						}
						long := func(p netns.Packet) bool { return len(p.Data) > 1000 }
						if off {
							wire.Want(segs, long)
							check.Equal(t, "bytes received at once", len(got), seg)
							continue
						}
						run := wire.Want(1, long)
						check.Equal(t, "bytes on the wire", len(run[0].Data), outer+segs*(8+inner+seg))
						check.True(t, len(got) == seg*segs && size == seg, "%s: %d bytes received at once, in segments of %d", to, len(got), size)
					}
				})
			}
		}
	}
}

// inOnePiece sends a payload as datagrams of seg bytes, and returns the first message that is received, and the size of its segments.
func inOnePiece(t *testing.T, from, to *netns.Host, addr string, payload []byte, seg int) (got []byte, size int) {
	t.Helper()
	option := func(c net.Conn, name, value int) {
		t.Helper()
		var err error
		raw := check.Must(c.(*net.UDPConn).SyscallConn())(t)
		check.OK(t, raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_UDP, name, value) }))
		check.OK(t, err)
	}
	var in *net.UDPConn
	to.Do(func() { in = check.Must(net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(addr), Port: 9000}))(t) })
	defer in.Close()
	option(in, unix.UDP_GRO, 1)
	var out net.Conn
	from.Do(func() { out = check.Must(net.Dial("udp", net.JoinHostPort(addr, "9000")))(t) })
	defer out.Close()
	option(out, unix.UDP_SEGMENT, seg)
	check.Must(out.Write(payload))(t)
	check.OK(t, in.SetReadDeadline(time.Now().Add(5*time.Second)))
	got, oob := make([]byte, 1<<16), make([]byte, 64)
	n, m, _, _, err := in.ReadMsgUDP(got, oob)
	check.OK(t, err)
	for _, c := range check.Must(unix.ParseSocketControlMessage(oob[:m]))(t) {
		if c.Header.Level == unix.SOL_UDP && c.Header.Type == unix.UDP_GRO {
			size = int(uint32(c.Data[0]) | uint32(c.Data[1])<<8)
		}
	}
	return got[:n], size
}
