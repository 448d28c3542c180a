package main

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/internal/lab/packets"
)

// An end is where a frame comes from or goes to.
type end struct{ mac, ip string }

func (e end) hardware() net.HardwareAddr { m, _ := net.ParseMAC(e.mac); return m }
func (e end) addr() net.IP               { return net.ParseIP(e.ip).To4() }

func layer3(a, b end, p layers.IPProtocol) *layers.IPv4 {
	return &layers.IPv4{Version: 4, TTL: 64, Protocol: p, SrcIP: a.addr(), DstIP: b.addr()}
}

// datagram is a packet with a text, to the port that l.listen hears.
func datagram(a, b end, text string) []gopacket.SerializableLayer {
	ip := layer3(a, b, layers.IPProtocolUDP)
	u := &layers.UDP{SrcPort: 5000, DstPort: 5000}
	u.SetNetworkLayerForChecksum(ip)
	return []gopacket.SerializableLayer{ip, u, gopacket.Payload(text)}
}

func ethernet(a, b end, inside ...gopacket.SerializableLayer) []gopacket.SerializableLayer {
	return append([]gopacket.SerializableLayer{&layers.Ethernet{SrcMAC: a.hardware(), DstMAC: b.hardware(), EthernetType: layers.EthernetTypeIPv4}}, inside...)
}

// tunnelled are frames with a packet in IP, and with one in VXLAN of Calico.
func tunnelled(a, b end, mac string, from, to end, text string) [][]byte {
	ip := layer3(a, b, layers.IPProtocolUDP)
	u := &layers.UDP{SrcPort: 5000, DstPort: 4789}
	u.SetNetworkLayerForChecksum(ip)
	gateway := end{mac: mac}
	return [][]byte{
		packets.Of(ethernet(a, b, append([]gopacket.SerializableLayer{layer3(a, b, layers.IPProtocolIPv4)}, datagram(from, to, text+" in IP")...)...)...),
		packets.Of(ethernet(a, b, append([]gopacket.SerializableLayer{ip, u, &layers.VXLAN{ValidIDFlag: true, VNI: 4096}}, ethernet(gateway, gateway, datagram(from, to, text+" in VXLAN")...)...)...)...),
	}
}

// heard is what a pod has heard.
type heard struct {
	mu   sync.Mutex
	text strings.Builder
}

func (x *heard) has(text string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return strings.Contains(x.text.String(), text+";")
}

// listen hears what is sent to port 5000 of a pod.
func (l *calicoLab) listen(pod *netns.Host) *heard {
	x := new(heard)
	c := netns.Open(l.t, pod, func() (net.PacketConn, error) { return net.ListenPacket("udp4", ":5000") })
	go func() {
		b := make([]byte, 200)
		for {
			n, _, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			x.mu.Lock()
			x.text.WriteString(string(b[:n]) + ";")
			x.mu.Unlock()
		}
	}()
	return x
}

// asks sends a text until a pod hears it.
func (l *calicoLab) asks(from *netns.Host, to string, by *heard, text string) {
	l.t.Helper()
	c := netns.Open(l.t, from, func() (net.Conn, error) { return net.Dial("udp4", to+":5000") })
	from.Until("who hears "+text, func() bool {
		c.Write([]byte(text))
		return by.has(text)
	})
}

// counted is a number in what vxsctl says, 0 while there is none.
func (s *system) counted(words, pattern string) int {
	s.t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(s.ctl(words))
	if m == nil {
		return 0
	}
	n, err := strconv.Atoi(m[1])
	must(s.t, err)
	return n
}

// spoofs has the first pod, and a host that is no node, send packets in IP and in VXLAN, with packets of their own and of others in
// them: pods hear none of them, and vxsctl counts each. Each packet goes to a node, to a pod, and to nobody. The tunnels of the first node end at an address, and
// frames to it at a MAC.
func (l *calicoLab) spoofs(what, addr, mac string) {
	t, a := l.t, l.nodes[0]
	t.Helper()
	one, two := l.listen(l.pods[0]), l.listen(l.pods[1])
	pools := []string{"10.65", "10.66"}
	for _, pool := range pools {
		l.asks(l.pods[0], pool+".2.5", two, what+" normal "+pool)
		l.asks(l.pods[1], pool+".1.5", one, what+" back "+pool)
	}
	pod := l.pods[0].MAC("eth0")
	tunnels := func() int { return a.counted("calico", `\ndropped, workload pod1 +tunnel: (\d+)\n`) }
	others := func() int { return a.counted("calico", `\ndropped, workload pod1 +address: (\d+)\n`) }
	var frames, asOthers [][]byte
	for _, pool := range pools {
		for _, outer := range []string{"192.0.2.12", "192.0.2.37", "10.192.0.3", pool + ".2.5"} {
			for _, inside := range []string{pool + ".1.5", pool + ".2.9", "192.0.2.12"} {
				to := end{"02:00:00:ee:00:01", outer}
				frames = append(frames, tunnelled(end{pod, pool + ".1.5"}, to, calicoMAC("node2"), end{ip: inside}, end{ip: pool + ".2.5"}, what+" spoofed")...)
				asOthers = append(asOthers, tunnelled(end{pod, addr}, to, calicoMAC("node2"), end{ip: inside}, end{ip: pool + ".2.5"}, what+" spoofed")...)
			}
		}
	}
	t0, o0 := tunnels(), others()
	l.pods[0].Inject("eth0", frames...)
	l.pods[0].Inject("eth0", asOthers...)
	a.Until(what+": what workloads send in tunnels", func() bool { return tunnels() == t0+len(frames) && others() == o0+len(asOthers) })

	stranger := end{l.stranger().MAC("eth0"), "192.0.2.99"}
	unknown := func() int {
		return a.counted("drops", `\nvxlan0 +rx +unknown-peer +(\d+)\n`) + a.counted("drops", `\nipip0 +rx +unknown-peer +(\d+)\n`)
	}
	frames, u0 := nil, unknown()
	for _, pool := range pools {
		for _, inside := range []string{pool + ".2.5", pool + ".1.9", "192.0.2.99"} {
			frames = append(frames, tunnelled(stranger, end{mac, addr}, calicoMAC("node1"), end{ip: inside}, end{ip: pool + ".1.5"}, what+" strange")...)
		}
	}
	l.stranger().Inject("eth0", frames...)
	a.Until(what+": what strangers send in tunnels", func() bool { return unknown() >= u0+len(frames) })

	for _, pool := range pools { // behind all others
		l.asks(l.pods[0], pool+".2.5", two, what+" last "+pool)
		l.asks(l.pods[1], pool+".1.5", one, what+" last back "+pool)
	}
	for _, kind := range []string{"IP", "VXLAN"} {
		for _, h := range []*heard{one, two} {
			if h.has(what+" spoofed in "+kind) || h.has(what+" strange in "+kind) {
				t.Errorf("%s: a pod hears what is forged in %s", what, kind)
			}
		}
	}
}

// stranger is a host on the wire that is no node.
func (l *calicoLab) stranger() *netns.Host {
	if l.other == nil {
		l.other = l.net.Host("stranger")
		l.net.Plug(l.other, "192.0.2.99/24", l.wire)
	}
	return l.other
}

// workloads makes the first two pods workloads that everything is allowed to, with addresses.
func (l *calicoLab) workloads(texts [2]string, addrs ...string) {
	l.put("Profile", "profiles", "kns.default", `{"ingress":[{"action":"Allow"}],"egress":[{"action":"Allow"}]}`)
	for i, s := range l.nodes {
		name := fmt.Sprint("node", i+1)
		var nets []string
		for _, a := range addrs {
			nets = append(nets, fmt.Sprintf("%q", netip.PrefixFrom(netip.MustParseAddr(fmt.Sprintf("%s.%d.5", a, i+1)), 32)))
		}
		l.put("WorkloadEndpoint", "workloadendpoints/default", name+"-k8s-pod-eth0", fmt.Sprintf(`{"node":%q,"orchestrator":"k8s","pod":"pod","endpoint":"eth0","interfaceName":"pod%d","profiles":["kns.default"],"mac":%q,"ipNetworks":[%s]}`,
			name, i+1, l.pods[i].MAC("eth0"), strings.Join(nets, ",")))
		s.reload(strings.Replace(texts[i], fmt.Sprintf(`"node": %q,`, name), fmt.Sprintf(`"node": %q, "workloads": {"prefixes": ["pod"]},`, name), 1))
		s.says("calico", `\nworkload pod\d +default/node\d-k8s-pod-eth0: profiles/kns\.default\n`)
	}
}

// Packets in tunnels that workloads and hosts that are no nodes make, in pools of both kinds: Calico's tests of spoofed IP in IP and VXLAN.
func TestCalicoSpoof(t *testing.T) {
	t.Parallel()
	l := newCalicoLab(t)
	l.all()
	l.workloads([2]string{sample(t, "calico-etcd/node1.json"), sample(t, "calico-etcd/node2.json")}, "10.65", "10.66")
	l.spoofs("Always", "192.0.2.11", l.nodes[0].MAC("eth0"))
}

// The same with pools of CrossSubnet, and tunnels over packet sockets.
func TestCalicoSpoofCrossSubnet(t *testing.T) {
	t.Parallel()
	l := newMixedLab(t)
	l.workloads(l.texts, "10.65", "10.66", "10.67")
	l.spoofs("CrossSubnet", "192.0.2.21", "02:00:00:ca:00:01")
}
