package underlaytest

import (
	"net"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// InNamespace runs f in a new network namespace: loopback
// and a veth pair va-vb are up, va has 10.9.0.1/24, fd09::1/64 and fe80::9, and
// neighbours .2 and ::2, which are not there, so that what is sent to them can be
// seen at vb.
func InNamespace(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	h := netns.New(t).Host("a")
	for _, c := range []string{
		"link add va address 02:00:00:00:00:01 type veth peer name vb address 02:00:00:00:00:02",
		"link set va up", "link set vb up",
		"addr add 10.9.0.1/24 dev va", "addr add fd09::1/64 dev va nodad", "addr add fe80::9/64 dev va nodad",
		"neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev va", "neigh add fd09::2 lladdr 02:00:00:00:00:02 dev va",
	} {
		h.IP(strings.Fields(c)...)
	}
	// Before the kernel has noticed, in its own time, that a link is up, what is sent to an IPv6
	// address of it goes nowhere.
	h.Until("va is up", func() bool {
		addr := h.IP("-6", "addr", "show", "dev", "va")
		route, _ := h.Try(t.Context(), "ip", "-6", "route", "get", "fe80::9", "oif", "va")
		return strings.Contains(h.IP("link", "show", "va"), "state UP") && strings.Contains(addr, "fe80::ff:fe00:1/") &&
			!strings.Contains(addr, "tentative") && strings.HasPrefix(route, "local ")
	})
	h.Do(func() { f(t) })
}

// IP runs ip(8) with these arguments, in the thread's namespace.
func IP(t *testing.T, args string) {
	t.Helper()
	if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v: %s", args, err, out)
	}
}

// A Capture is a packet socket on an interface, for the IP packets of
// UDP datagrams that come in there.
type Capture int

// NewCapture opens one.
func NewCapture(t *testing.T, device string) Capture {
	const all = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL<<8&0xff00 // in network order
	fd := check.Must(unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, all))(t)
	t.Cleanup(func() { unix.Close(fd) })
	ifi, err := net.InterfaceByName(device)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: ifi.Index})
	}
	if err == nil {
		err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 5})
	}
	check.OK(t, err)
	return Capture(fd)
}

// Packet returns the next.
func (c Capture) Packet(t *testing.T) []byte {
	b := make([]byte, 65536)
	for {
		n := check.Must(unix.Read(int(c), b))(t)
		p := b[14:n]
		switch {
		case b[12] == 0x08 && b[13] == 0 && p[9] == unix.IPPROTO_UDP:
			return p
		case b[12] == 0x86 && b[13] == 0xdd && p[6] == unix.IPPROTO_UDP:
			return p
		}
	}
}
