package bench

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/frr"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// theirs is FRR with a bridge and a VXLAN device for each VNI.
type theirs struct {
	t    *testing.T
	frr  *frr.FRR
	seen *kernel
}

func startFRR(t *testing.T, h *netns.Host) contender {
	for _, n := range []int{vni, l3vni} {
		br, vx := fmt.Sprint("br", n), fmt.Sprint("vx", n)
		h.IP("link", "add", br, "type", "bridge")
		h.IP("link", "add", vx, "type", "vxlan", "id", fmt.Sprint(n), "local", leafAddr.String(), "dstport", "4789", "nolearning")
		h.IP("link", "set", vx, "master", br)
		h.IP("link", "set", vx, "type", "bridge_slave", "neigh_suppress", "on", "learning", "off")
		h.Up(vx)
		h.Up(br)
	}
	h.IP("addr", "add", "172.15.0.1/8", "dev", fmt.Sprint("br", vni))
	for _, x := range []string{"gc_thresh1=4000000", "gc_thresh2=4000000", "gc_thresh3=4000000"} {
		h.Try(t.Context(), "sysctl", "-qw", "net.ipv4.neigh.default."+x) // of the whole machine: it may be read-only here
	}
	f := &theirs{t: t, seen: watchKernel(t, h)}
	f.frr = frr.Start(t, h, frr.Daemon{Name: "zebra", Config: fmt.Sprintf("vni %d\n", l3vni), Args: []string{"-s", "90000000"}}, frr.Daemon{Name: "bgpd", Config: fmt.Sprintf(`router bgp %d
 bgp router-id %v
 no bgp default ipv4-unicast
 neighbor %v remote-as %[1]d
 neighbor %[3]v timers connect 1
 neighbor %[4]v remote-as %[1]d
 neighbor %[4]v timers connect 1
 address-family l2vpn evpn
  neighbor %[3]v activate
  neighbor %[4]v activate
  advertise-all-vni
  advertise ipv4 unicast
  no dup-addr-detection
`, as, leafAddr, feederAddr, moverAddr)})
	return f
}

func (f *theirs) hosts(at netip.Addr, n int) time.Time {
	return f.seen.until(f.t, func() bool { return len(f.seen.fdb) == n && f.seen.count[at] == n && len(f.seen.neighbours) == n })
}

func (f *theirs) prefixes(n int) time.Time {
	return f.seen.until(f.t, func() bool { return len(f.seen.routes) == n })
}

func (f *theirs) host(mac frame.MAC, at netip.Addr) time.Time {
	return f.seen.until(f.t, func() bool { return f.seen.fdb[mac] == at })
}

func (f *theirs) pids() []int { return []int{f.frr.PID("zebra"), f.frr.PID("bgpd")} }
func (f *theirs) stop()       { f.frr.Kill("bgpd"); f.frr.Kill("zebra") }

// A kernel is what the kernel of a host has said of its tables.
type kernel struct {
	mu         sync.Mutex
	changed    chan struct{}
	at         time.Time // of the last change
	fdb        map[frame.MAC]netip.Addr
	count      map[netip.Addr]int
	neighbours map[netip.Addr]bool
	routes     map[netip.Prefix]bool
	err        error
}

// watchKernel reads the notifications of a host: of FDBs, neighbours and routes.
func watchKernel(t *testing.T, h *netns.Host) *kernel {
	k := &kernel{changed: make(chan struct{}), fdb: map[frame.MAC]netip.Addr{}, count: map[netip.Addr]int{}, neighbours: map[netip.Addr]bool{}, routes: map[netip.Prefix]bool{}}
	fd, err := -1, error(nil)
	h.Do(func() { fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE) })
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 256<<20)
	}
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: 1<<(unix.RTNLGRP_NEIGH-1) | 1<<(unix.RTNLGRP_IPV4_ROUTE-1)})
	}
	if err == nil {
		err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000})
	}
	if err != nil {
		t.Fatal(err)
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		b := make([]byte, 1<<16)
		for {
			n, _, err := unix.Recvfrom(fd, b, 0)
			select {
			case <-end:
				return
			default:
			}
			if err == nil {
				k.take(b[:n], time.Now())
			} else if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
				k.mu.Lock()
				k.err = err
				k.mu.Unlock()
				return
			}
		}
	}()
	t.Cleanup(func() {
		close(end)
		<-ended
		unix.Close(fd)
	})
	return k
}

func (k *kernel) take(b []byte, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(b) >= unix.SizeofNlMsghdr {
		size, kind := int(binary.NativeEndian.Uint32(b)), binary.NativeEndian.Uint16(b[4:])
		if size < unix.SizeofNlMsghdr || size > len(b) {
			return
		}
		body := b[unix.SizeofNlMsghdr:size]
		switch kind {
		case unix.RTM_NEWNEIGH, unix.RTM_DELNEIGH:
			k.neighbour(body, kind == unix.RTM_NEWNEIGH)
		case unix.RTM_NEWROUTE, unix.RTM_DELROUTE:
			k.route(body, kind == unix.RTM_NEWROUTE)
		}
		b = b[min(len(b), (size+3)&^3):]
	}
	k.at = now
	close(k.changed)
	k.changed = make(chan struct{})
}

// attributes returns those of a message by their types.
func attributes(b []byte) map[uint16][]byte {
	m := map[uint16][]byte{}
	for len(b) >= 4 {
		size := int(binary.NativeEndian.Uint16(b))
		if size < 4 || size > len(b) {
			break
		}
		m[binary.NativeEndian.Uint16(b[2:])] = b[4:size]
		b = b[min(len(b), (size+3)&^3):]
	}
	return m
}

func (k *kernel) neighbour(b []byte, is bool) {
	const head = 12 // struct ndmsg
	if len(b) < head {
		return
	}
	a := attributes(b[head:])
	dst, _ := netip.AddrFromSlice(a[unix.NDA_DST])
	switch family, state := b[0], binary.NativeEndian.Uint16(b[8:]); {
	case family == unix.AF_BRIDGE && dst.IsValid() && len(a[unix.NDA_LLADDR]) == 6 && a[unix.NDA_LLADDR][0] == 2 && a[unix.NDA_LLADDR][1] == 1:
		m := frame.MAC(a[unix.NDA_LLADDR])
		if was, ok := k.fdb[m]; ok {
			if !is && was != dst {
				return // of a move
			}
			k.count[was]--
			delete(k.fdb, m)
		}
		if is {
			k.fdb[m] = dst
			k.count[dst]++
		}
	case family == unix.AF_INET && dst.As4()[0] == 172:
		if is && state&(unix.NUD_FAILED|unix.NUD_INCOMPLETE) == 0 {
			k.neighbours[dst] = true
		} else {
			delete(k.neighbours, dst)
		}
	}
}

func (k *kernel) route(b []byte, is bool) {
	const head = 12 // struct rtmsg
	if len(b) < head || b[0] != unix.AF_INET {
		return
	}
	dst, ok := netip.AddrFromSlice(attributes(b[head:])[unix.RTA_DST])
	if p := netip.PrefixFrom(dst, int(b[1])); !ok || dst.As4()[0] != 20 {
		return
	} else if is {
		k.routes[p] = true
	} else {
		delete(k.routes, p)
	}
}

// until waits until what is known is ok, and returns when it was.
func (k *kernel) until(t *testing.T, ok func() bool) time.Time {
	t.Helper()
	end := time.After(soon)
	for {
		k.mu.Lock()
		is, at, changed, err := ok(), k.at, k.changed, k.err
		k.mu.Unlock()
		if is {
			return at
		}
		if err != nil {
			t.Fatalf("notifications of the kernel: %v", err)
		}
		select {
		case <-changed:
		case <-end:
			k.mu.Lock()
			defer k.mu.Unlock()
			t.Fatalf("not within %v: %d MACs, %v, %d neighbours, %d routes", soon, len(k.fdb), k.count, len(k.neighbours), len(k.routes))
		}
	}
}
