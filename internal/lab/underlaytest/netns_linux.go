package underlaytest

import (
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// InNamespace runs f on a thread of its own in a new network namespace: loopback
// and a veth pair va-vb are up, va has 10.9.0.1/24, fd09::1/64 and fe80::9, and
// neighbours .2 and ::2, which are not there, so that what is sent to them can be
// seen at vb.
func InNamespace(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	netns.RequireRoot(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			t.Errorf("unshare: %v", err)
			return
		}
		// Else link-local addresses wait for a second or two.
		if err := os.WriteFile("/proc/sys/net/ipv6/conf/default/accept_dad", []byte("0"), 0); err != nil {
			t.Error(err)
			return
		}
		for _, c := range []string{
			"link set lo up",
			"link add va address 02:00:00:00:00:01 type veth peer name vb address 02:00:00:00:00:02",
			"link set va up", "link set vb up",
			"addr add 10.9.0.1/24 dev va", "addr add fd09::1/64 dev va nodad", "addr add fe80::9/64 dev va nodad",
			"neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev va", "neigh add fd09::2 lladdr 02:00:00:00:00:02 dev va",
		} {
			if !IP(t, c) {
				return
			}
		}
		if !linkUp("va") {
			t.Error("va did not come up")
			return
		}
		f(t)
	}()
	<-done
}

// linkUp waits until the kernel has noticed, in its own time, that a link is up:
// before, what is sent to an IPv6 address of it goes nowhere.
func linkUp(dev string) bool {
	for range 500 {
		link, _ := exec.Command("ip", "link", "show", dev).Output()
		addr, _ := exec.Command("ip", "-6", "addr", "show", dev).Output()
		if strings.Contains(string(link), "state UP") && strings.Contains(string(addr), "fe80::ff:fe00:1/") &&
			!strings.Contains(string(addr), "tentative") {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

// IP runs ip(8) with these arguments, in the thread's namespace, and reports whether it worked.
func IP(t *testing.T, args string) bool {
	out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput()
	if err != nil {
		t.Errorf("ip %s: %v: %s", args, err, out)
	}
	return err == nil
}

// A Capture is a packet socket on an interface, for the IP packets of
// UDP datagrams that come in there.
type Capture int

// NewCapture opens one.
func NewCapture(t *testing.T, device string) Capture {
	const all = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL<<8&0xff00 // in network order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, all)
	if err != nil {
		t.Error(err)
		runtime.Goexit()
	}
	t.Cleanup(func() { unix.Close(fd) })
	ifi, err := net.InterfaceByName(device)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: ifi.Index})
	}
	if err == nil {
		err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 5})
	}
	if err != nil {
		t.Error(err)
		runtime.Goexit()
	}
	return Capture(fd)
}

// Packet returns the next.
func (c Capture) Packet(t *testing.T) []byte {
	b := make([]byte, 65536)
	for {
		n, err := unix.Read(int(c), b)
		if err != nil {
			t.Errorf("capture: %v", err)
			runtime.Goexit()
		}
		p := b[14:n]
		switch {
		case b[12] == 0x08 && b[13] == 0 && p[9] == unix.IPPROTO_UDP:
			return p
		case b[12] == 0x86 && b[13] == 0xdd && p[6] == unix.IPPROTO_UDP:
			return p
		}
	}
}
