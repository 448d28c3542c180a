package netns

import (
	"os"
	"strconv"
	"strings"
)

// IP runs "ip -n NAMESPACE args..." and returns its output.
func (h *Host) IP(args ...string) string {
	h.t.Helper()
	out, err := ip(append([]string{"-n", h.NS}, args...)...)
	if err != nil {
		h.t.Fatalf("lab: host %s: %v\n%s", h.Name, err, out)
	}
	return out
}

// Link joins two hosts by a veth pair and brings it up. The ends get the addresses,
// in CIDR form, several with commas between them, "" for none; and the next free
// name of their host: eth0, eth1 and so on. Link returns these.
func (n *Net) Link(a *Host, aAddr string, b *Host, bAddr string) (aDev, bDev string) {
	n.t.Helper()
	aDev = a.nextLink()
	bDev = b.nextLink()
	a.IP("link", "add", aDev, "type", "veth", "peer", "name", bDev, "netns", b.NS)
	a.Up(aDev)
	b.Up(bDev)
	a.Addr(aDev, aAddr)
	b.Addr(bDev, bAddr)
	return aDev, bDev
}

func (h *Host) nextLink() string {
	h.links = append(h.links, "eth"+strconv.Itoa(len(h.links)))
	return h.links[len(h.links)-1]
}

// Up brings a device up.
func (h *Host) Up(dev string) {
	h.t.Helper()
	h.IP("link", "set", dev, "up")
}

// Addr gives a device addresses in CIDR form, several with commas between them. An
// IPv6 address can be used at once: there is no duplicate address detection.
func (h *Host) Addr(dev, cidr string) {
	h.t.Helper()
	for a := range strings.SplitSeq(cidr, ",") {
		switch {
		case a == "":
		case strings.Contains(a, ":"):
			h.IP("addr", "add", a, "dev", dev, "nodad")
		default:
			h.IP("addr", "add", a, "dev", dev)
		}
	}
}

// MTU sets the MTU of a device.
func (h *Host) MTU(dev string, mtu int) {
	h.t.Helper()
	h.IP("link", "set", dev, "mtu", strconv.Itoa(mtu))
}

// MAC returns the address of a device.
func (h *Host) MAC(dev string) string {
	h.t.Helper()
	return h.file("/sys/class/net/" + dev + "/address")
}

// Counter returns one of the statistics of a device, such as "rx_packets".
func (h *Host) Counter(dev, name string) int {
	h.t.Helper()
	n, err := strconv.Atoi(h.file("/sys/class/net/" + dev + "/statistics/" + name))
	if err != nil {
		h.t.Fatalf("lab: host %s: %v", h.Name, err)
	}
	return n
}

// file reads a file of sysfs, which "ip netns exec" mounts for the namespace.
func (h *Host) file(name string) string {
	h.t.Helper()
	return strings.TrimSpace(h.Run("cat", name))
}

// Sysctl sets a kernel variable of the namespace, such as
// "net.ipv6.conf.eth0.disable_ipv6".
func (h *Host) Sysctl(name, value string) {
	h.t.Helper()
	h.Do(func() {
		// The folder /proc/sys/net shows the namespace of the thread that opens it.
		if err := os.WriteFile("/proc/sys/"+strings.ReplaceAll(name, ".", "/"), []byte(value), 0); err != nil {
			h.t.Fatalf("lab: host %s: %v", h.Name, err)
		}
	})
}

// Quiet keeps the kernel from sending IPv6 packets of its own (router
// solicitations, multicast reports) on every device, those made later included.
func (h *Host) Quiet() {
	h.t.Helper()
	h.Sysctl("net.ipv6.conf.all.disable_ipv6", "1")
	h.Sysctl("net.ipv6.conf.default.disable_ipv6", "1")
}

// A VXLAN describes a VTEP of the kernel.
type VXLAN struct {
	ID     int      // VNI
	Local  string   // outer source address
	Remote string   // the one peer; "" with Flood or Group
	Flood  []string // head-end replication to these peers
	Group  string   // multicast group, with Dev
	Dev    string   // underlay device, "" = by route
	Port   int      // UDP destination port, 0 = 4789
	Addr   string   // overlay addresses of the device, CIDR, commas between them, "" for none
	Args   []string // more words for "ip link add ... type vxlan", such as "noudpcsum"
	Keep   bool     // the offloads of the host's veth devices
}

// VXLAN makes a vxlan device and brings it up.
//
// Unless told to Keep it, it also turns off transmit checksum offload on the host's veth
// devices. Over a veth the kernel leaves the inner checksum of what its own stack sends
// through vxlan, and superframes, to a network card that is not there: what is captured
// is then not what a wire would carry (Linux 6.18).
func (h *Host) VXLAN(dev string, v VXLAN) {
	h.t.Helper()
	if v.Port == 0 {
		v.Port = 4789
	}
	args := []string{"link", "add", dev, "type", "vxlan", "id", strconv.Itoa(v.ID), "dstport", strconv.Itoa(v.Port)}
	for _, o := range [][2]string{{"local", v.Local}, {"remote", v.Remote}, {"group", v.Group}, {"dev", v.Dev}} {
		if o[1] != "" {
			args = append(args, o[0], o[1])
		}
	}
	h.IP(append(args, v.Args...)...)
	for _, peer := range v.Flood {
		h.Run("bridge", "fdb", "append", "00:00:00:00:00:00", "dev", dev, "dst", peer)
	}
	for _, veth := range h.links {
		if !v.Keep {
			h.TxOff(veth)
		}
	}
	h.Up(dev)
	h.Addr(dev, v.Addr)
}

// TxOff turns off transmit checksum offload, and with it segmentation offload, on a
// device: packets leave it complete.
func (h *Host) TxOff(dev string) {
	h.t.Helper()
	h.Run("ethtool", "-K", dev, "tx", "off")
}

// Bridge makes a bridge of the kernel over the devices and brings all of them up.
// It does no multicast snooping: that sends IGMP reports of its own.
func (h *Host) Bridge(dev string, members ...string) {
	h.t.Helper()
	h.IP("link", "add", dev, "type", "bridge", "mcast_snooping", "0")
	for _, m := range members {
		h.IP("link", "set", m, "master", dev)
		h.Up(m)
	}
	h.Up(dev)
}

// Route adds a route: Route("192.168.8.0/24", "via", "10.0.0.2").
func (h *Host) Route(prefix string, how ...string) {
	h.t.Helper()
	h.IP(append([]string{"route", "add", prefix}, how...)...)
}

// Ping sends n echo requests to addr, one after the other, and ends the test unless each is
// answered within 5 s. Each is a ping of its own: one that has heard an answer waits no
// longer for the last than for twice the round trip before.
func (h *Host) Ping(addr string, n int) {
	h.t.Helper()
	for range n {
		out := h.Run("ping", "-n", "-c", "1", "-W", "5", addr)
		if !strings.Contains(out, " 1 received,") {
			h.t.Fatalf("lab: host %s: ping %s lost packets\n%s", h.Name, addr, out)
		}
	}
}
