package netns

import (
	"encoding/json"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Switch makes a host that is an Ethernet switch: a bridge of the kernel called br0,
// without addresses, silent. Plug joins hosts to it.
func (n *Net) Switch(name string) *Host {
	n.t.Helper()
	sw := n.Host(name)
	sw.Quiet()
	sw.Bridge("br0")
	return sw
}

// Plug joins a host to a switch and gives the host's end the addresses, as [Net.Link]
// does. It returns the names of the devices, the host's first, when the switch forwards what comes.
func (n *Net) Plug(h *Host, addr string, sw *Host) (dev, port string) {
	n.t.Helper()
	dev, port = n.Link(h, addr, sw, "")
	sw.Join(port, "br0")
	return dev, port
}

// Join makes a device a port of a bridge. Both are up. It returns when the bridge forwards what comes: on a busy machine
// the port is disabled for seconds.
func (h *Host) Join(port, bridge string) {
	h.t.Helper()
	h.IP("link", "set", port, "master", bridge)
	h.Until(port+" forwards", func() bool { return h.file("/sys/class/net/"+port+"/brport/state") == "3" })
}

// Router makes a host that forwards IPv4 and IPv6.
func (n *Net) Router(name string) *Host {
	n.t.Helper()
	r := n.Host(name)
	r.Sysctl("net.ipv4.ip_forward", "1")
	r.Sysctl("net.ipv6.conf.all.forwarding", "1")
	return r
}

// SetMAC gives a device another MAC address.
func (h *Host) SetMAC(dev, mac string) {
	h.t.Helper()
	h.IP("link", "set", dev, "address", mac)
}

// Neighbour makes a permanent entry: nobody is asked for addr on dev.
func (h *Host) Neighbour(dev, addr, mac string) {
	h.t.Helper()
	h.IP("neigh", "replace", addr, "lladdr", mac, "dev", dev, "nud", "permanent")
}

// A Neigh is one entry of the kernel's neighbour table.
type Neigh struct {
	Addr  netip.Addr `json:"dst"`
	MAC   string     `json:"lladdr"` // "" = not known
	State []string   // such as REACHABLE
}

// Neighbours returns the neighbour table of a device.
func (h *Host) Neighbours(dev string) (ns []Neigh) {
	h.t.Helper()
	h.decode(h.IP("-j", "neigh", "show", "dev", dev), &ns)
	return ns
}

// An FDBEntry is one entry of the kernel's MAC table: of a bridge's port, or of a
// vxlan device, which has a Dst.
type FDBEntry struct {
	MAC    string
	Dst    string // peer, of a vxlan device
	Master string // bridge whose entry it is, "" = of the device itself
	State  string // "", "permanent", "static", "stale"
	Flags  []string
}

// FDB returns what "bridge fdb show dev" does.
func (h *Host) FDB(dev string) (es []FDBEntry) {
	h.t.Helper()
	h.decode(h.Run("bridge", "-j", "fdb", "show", "dev", dev), &es)
	return es
}

// Peers returns the peers a vxlan device has for a MAC.
func (h *Host) Peers(dev, mac string) (dst []string) {
	h.t.Helper()
	for _, e := range h.FDB(dev) {
		if e.MAC == mac && e.Dst != "" {
			dst = append(dst, e.Dst)
		}
	}
	return dst
}

// Nstat returns the counters of the host's IP, UDP and TCP, by the names nstat uses:
// "UdpInCsumErrors", "Ip6InReceives".
func (h *Host) Nstat() map[string]int {
	h.t.Helper()
	var all struct{ Kernel map[string]int }
	h.decode(h.Run("nstat", "-asz", "-j"), &all)
	return all.Kernel
}

func (h *Host) decode(text string, to any) {
	h.t.Helper()
	if err := json.Unmarshal([]byte(text), to); err != nil {
		h.t.Fatalf("lab: host %s: %v in\n%s", h.Name, err, text)
	}
}

var ttlOf = regexp.MustCompile(`bytes from .* ttl=(\d+)`)

// PingTTL sends one echo request, which must be answered, and returns the answer's TTL.
func (h *Host) PingTTL(to string) int {
	h.t.Helper()
	out := h.Run("ping", "-n", "-c", "1", "-W", "5", to)
	m := ttlOf.FindStringSubmatch(out)
	if m == nil {
		h.t.Fatalf("lab: host %s: %s", h.Name, out)
	}
	ttl, _ := strconv.Atoi(m[1])
	return ttl
}

// Traceroute returns the hops to a host, a star for one that is silent. It sends one probe
// at a time: Linux hosts bound how many errors they send.
func (h *Host) Traceroute(to string) (hops []string) {
	h.t.Helper()
	for line := range strings.Lines(h.Run("traceroute", "-n", "-q", "1", "-N", "1", "-w", "2", "-m", "5", to)) {
		if w := strings.Fields(line); len(w) > 1 && w[0] != "traceroute" {
			hops = append(hops, w[1])
		}
	}
	return hops
}

// Until waits until ok, and ends the test when it is not within [Timeout]. What is
// waited for is in the message. It asks seldom where a question takes long, so that the
// questions leave processors to those who are waited for.
func (h *Host) Until(what string, ok func() bool) {
	h.t.Helper()
	for end := time.Now().Add(Timeout); ; {
		asked := time.Now()
		if ok() {
			return
		}
		if asked.After(end) {
			h.t.Fatalf("lab: host %s: not within %v: %s", h.Name, Timeout, what)
		}
		time.Sleep(min(max(2*time.Millisecond, 4*time.Since(asked)), 50*time.Millisecond))
	}
}

// Ready waits until the links of the host carry packets: one that has just come up drops
// IPv6 for a moment.
func (h *Host) Ready() {
	h.t.Helper()
	for _, dev := range h.links {
		h.Until(dev+" is up", func() bool { return h.file("/sys/class/net/"+dev+"/operstate") == "up" })
	}
}
