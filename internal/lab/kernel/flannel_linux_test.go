package kernel

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// The kernel's node in the form that flanneld gives it: a device with an address of its own prefix length (/32, /128), and for the
// other node one route over it, one permanent neighbour, one FDB entry; no flood list, no learning. Ours is the same with a TAP, or
// its gateway routes for a pod. Hosts of both reach each other, and nobody ever asks for an address through the tunnel.
func TestFlannelForm(t *testing.T) {
	for _, f := range []flannelForm{
		{"IPv4", "198.51.100.1", "198.51.100.2", "/24", "10.244.1.", "10.244.2.", "0", 24, 32},
		{"IPv6", "fd51::1", "fd51::2", "/64", "fd00:244:0:1::", "fd00:244:0:2::", "", 64, 128},
	} {
		t.Run(f.name+"/TAP", func(t *testing.T) { testFlannelForm(t, f, f.hosted) })
		t.Run(f.name+"/gateway", func(t *testing.T) { testFlannelForm(t, f, f.routed) })
	}
}

type flannelForm struct {
	name, near, far, linkBits string
	ours, kernels             string // pod prefixes, without the host part
	base                      string // host part of a node's own address
	bits, whole               int
}

const flannelVNI = 1

var ourFlannel, kernelFlannel = frame.MAC{2, 0, 0, 0, 0x24, 1}, frame.MAC{2, 0, 0, 0, 0x24, 2}

func testFlannelForm(t *testing.T, f flannelForm, open func(t *testing.T, n *netns.Net, a *netns.Host) (pod *netns.Host, ttl int)) {
	n := netns.New(t)
	a, k := n.Host("a"), n.Host("k")
	n.Link(a, f.near+f.linkBits, k, f.far+f.linkBits)
	a.Ready()
	k.Ready()
	wire := a.Capture("eth0", "udp dst port 8472")
	k.IP("link", "add", "flannel.1", "address", kernelFlannel.String(), "type", "vxlan", "id", fmt.Sprint(flannelVNI),
		"dev", "eth0", "local", f.far, "dstport", "8472", "nolearning")
	f.device(k, f.kernels, f.ours, ourFlannel)
	k.Run("bridge", "fdb", "append", ourFlannel.String(), "dev", "flannel.1", "dst", f.near)
	pod, ttl := open(t, n, a)
	k.Up("lo")
	k.Addr("lo", f.kernels+"5/"+fmt.Sprint(f.whole))
	for _, h := range []*netns.Host{a, k} {
		h.Ready()
	}
	from := func(h *netns.Host, src, dst string) string {
		return h.Run("ping", "-n", "-c", "1", "-W", "5", "-I", src, dst)
	}
	out := from(pod, f.ours+"5", f.kernels+"5")
	check.True(t, strings.Contains(out, fmt.Sprintf("ttl=%d ", ttl)), "TTL is not %d:\n%s", ttl, out)
	from(k, f.kernels+"5", f.ours+"5")
	from(pod, f.ours+"5", f.kernels+f.base)
	from(k, f.kernels+f.base, f.ours+"5")
	from(k, f.kernels+f.base, f.ours+f.base)
	dst := netip.AddrPortFrom(netip.MustParseAddr(f.kernels+"5"), 9000)
	pod.Transfer(k, dst.String(), 2<<20)
	ps := wire.Stop()
	check.True(t, len(ps) > 100, "%d packets on the wire", len(ps))
	frames := 14 + 20 + 8 + 8
	if f.whole == 128 {
		frames += 20
	}
	for _, p := range ps {
		inner := gopacket.NewPacket(p.Data[frames:], layers.LayerTypeEthernet, gopacket.Default)
		if inner.Layer(layers.LayerTypeARP) != nil || inner.Layer(layers.LayerTypeICMPv6NeighborSolicitation) != nil || inner.Layer(layers.LayerTypeEthernet) == nil {
			t.Errorf("in the tunnel: %v", inner)
		}
	}
}

// device completes flannel.1 of a host whose pods are in own, for the other node.
func (f flannelForm) device(h *netns.Host, own, other string, mac frame.MAC) {
	h.Addr("flannel.1", fmt.Sprintf("%s%s/%d", own, f.base, f.whole))
	h.Up("flannel.1")
	h.Route(fmt.Sprintf("%s%s/%d", other, f.base, f.bits), "via", other+f.base, "dev", "flannel.1", "onlink")
	h.Neighbour("flannel.1", other+f.base, mac.String())
}

// segment is the fabric's, with the FDB entry for the kernel's node.
func (f flannelForm) segment() node.Segment {
	no := vswitch.Broadcast | vswitch.Multicast | vswitch.UnknownUnicast
	return node.Segment{
		VNI: flannelVNI, Tunnel: "flannel", VSIConfig: vswitch.VSIConfig{NoLearn: true, NoFlood: no},
		FDB: []node.FDB{{MAC: kernelFlannel, Remote: netip.MustParseAddr(f.far)}},
	}
}

func (f flannelForm) tunnel() []node.Tunnel {
	return []node.Tunnel{{Config: vtep.Config{Name: "flannel", Port: 8472}, Local: netip.MustParseAddr(f.near)}}
}

// hosted is the kernel's form with a TAP.
func (f flannelForm) hosted(t *testing.T, n *netns.Net, a *netns.Host) (pod *netns.Host, ttl int) {
	s := f.segment()
	s.Members = []node.Member{{Port: "flannel.1"}}
	s.FDB = append(s.FDB, node.FDB{MAC: ourFlannel, Port: "flannel.1"})
	x := running(t, nil)
	a.Do(func() {
		check.OK(t, x.Apply(&node.Config{
			Tunnels: f.tunnel(), Segments: []node.Segment{s},
			Ports: []node.Port{{Name: "flannel.1", DeviceConfig: port.DeviceConfig{MAC: ourFlannel}}},
		}))
	})
	f.device(a, f.ours, f.kernels, kernelFlannel)
	a.Up("lo")
	a.Addr("lo", f.ours+"5/"+fmt.Sprint(f.whole))
	return a, 64
}

// routed is a gateway with the address of the node, and a pod behind another.
func (f flannelForm) routed(t *testing.T, n *netns.Net, a *netns.Host) (pod *netns.Host, ttl int) {
	pod = n.Host("pod")
	prefix := func(host string, bits int) netip.Prefix {
		return netip.MustParsePrefix(fmt.Sprintf("%s%s/%d", f.ours, host, bits))
	}
	s := f.segment()
	gateway := func(mac frame.MAC, at netip.Prefix) *node.SegmentGateway {
		return &node.SegmentGateway{VRF: "red", Gateway: node.Gateway{MAC: mac, Addresses: []netip.Prefix{at}}}
	}
	s.Gateway = gateway(ourFlannel, prefix(f.base, f.whole))
	s.Gateway.NoAsk = true
	x := running(t, nil)
	a.Do(func() {
		check.OK(t, x.Apply(&node.Config{
			Tunnels: f.tunnel(), Ports: []node.Port{{Name: "pod", DeviceConfig: port.DeviceConfig{Namespace: pod.NS}}},
			Segments: []node.Segment{s, {VNI: 2, Members: []node.Member{{Port: "pod"}}, Gateway: gateway(frame.MAC{2, 0, 0, 0, 0x24, 9}, prefix("1", f.bits))}},
			VRFs: []node.VRF{{Name: "red", Routes: []node.Route{{
				Prefix: netip.MustParsePrefix(fmt.Sprintf("%s%s/%d", f.kernels, f.base, f.bits)),
				Via:    []node.Hop{{Segment: flannelVNI, MAC: kernelFlannel, Remote: netip.MustParseAddr(f.far)}},
			}}}},
		}))
	})
	pod.Addr("pod", fmt.Sprintf("%s5/%d", f.ours, f.bits))
	pod.Route("default", "via", f.ours+"1")
	return pod, 63
}
