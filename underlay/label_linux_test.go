package underlay

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// Over IPv6 each inner flow has its flow label (RFC 6438), whatever the host does for other sockets, in datagrams and in runs. While
// somebody in the namespace has an exclusive lease of a label, the kernel refuses ours; then datagrams are sent without.
func TestFlowLabels(t *testing.T) {
	a, b := wired(t)
	a.Sysctl("net.ipv6.auto_flowlabels", "0")
	leased := false
	labels := func(u, to network, filter string, ds ...frame.Datagram) []string {
		t.Helper()
		c := b.Capture("eth0", filter)
		want := 0
		for i := range ds {
			ds[i].To = []frame.Endpoint{endpoint(t, to.LocalAddr())}
			want += max(1, len(ds[i].Parts)/2)
		}
		send(t, u, ds...)
		for i, d := range ds {
			if d.Lost != 0 {
				t.Errorf("%s: datagram %d is lost: %v", filter, i, d.Drop)
			}
		}
		receive(t, to, want)
		var seen []string
		for _, row := range netns.Fields(t, c.Stop(), "", "ipv6.flow") {
			seen = append(seen, row[0])
		}
		return seen
	}
	check := func(udp, ip [2]network) {
		t.Helper()
		var ds, packets []frame.Datagram
		var want []string
		for i := range 20 {
			flow := uint16(i * 1999)
			ds, packets = append(ds, to("x", flow)), append(packets, to(inside(t, 4, 1, 2, 60), flow))
			label := "0x000000"
			if !leased {
				label = fmt.Sprintf("0x%06x", 0x80000|int(flow))
			}
			want = append(want, label)
		}
		got := labels(udp[0], udp[1], "udp port 4789", ds...)
		slices.Sort(got) // they are sent port by port
		if sorted := slices.Sorted(slices.Values(want)); !slices.Equal(got, sorted) {
			t.Errorf("UDP, leased %v: labels %v, want %v", leased, got, sorted)
		}
		if got := labels(ip[0], ip[1], "ip6 proto 4", packets...); !slices.Equal(got, want) {
			t.Errorf("IP-in-IP, leased %v: labels %v, want %v", leased, got, want)
		}
		run, _ := runOf(80, 20, 3, 1999)
		run.TOS, run.TTL = 0xb8, 9
		if got := labels(udp[0], udp[1], "udp port 4789", run); slices.ContainsFunc(got, func(l string) bool { return l != want[1] }) {
			t.Errorf("run, leased %v: labels %v, want %v", leased, got, want[1])
		}
	}
	open := func() (udp, ip [2]network) {
		for i, h := range []*netns.Host{a, b} {
			h.Do(func() { udp[i], ip[i] = listen(t, "["+wired6[i]+"]:4789", nil), listenIP(t, wired6[i], nil) })
		}
		return udp, ip
	}
	udp, ip := open()
	check(udp, ip)
	a.Do(func() { lease(t) })
	leased = true
	check(udp, ip)
}

// lease takes an exclusive lease of a flow label in the thread's namespace.
func lease(t *testing.T) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	const manager, get, exclusive, create = 32, 0, 1, 1 // linux/in6.h
	var r [32]byte                                      // struct in6_flowlabel_req
	copy(r[:], []byte{0: 0xfd, 15: 2})
	binary.BigEndian.PutUint32(r[16:], 77)
	r[20], r[21] = get, exclusive
	binary.NativeEndian.PutUint16(r[22:], create)
	_, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.IPPROTO_IPV6, manager, uintptr(unsafe.Pointer(&r)), uintptr(len(r)), 0)
	if errno != 0 {
		t.Fatalf("IPV6_FLOWLABEL_MGR: %v", errno)
	}
}

// After a refusal datagrams go without labels for a time, and then with them again.
func TestLabelsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var u base
		for range 2 {
			u.refused()
			time.Sleep(noLabelFor - time.Nanosecond)
			u.refused() // while they go without, this changes nothing
			if !u.noLabels.Load() {
				t.Error("labels before it is time")
			}
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			if u.noLabels.Load() {
				t.Error("no labels again")
			}
		}
	})
}
