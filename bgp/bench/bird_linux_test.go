package bench

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/internal/lab/bird"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// A feeder is BIRD with blocks, and one more that is not announced yet.
type feeder struct {
	t *testing.T
	*bird.BIRD
	log string
}

func startFeeder(t *testing.T, h *netns.Host, routes int) *feeder {
	f := &feeder{t: t, log: filepath.Join(t.TempDir(), "log")}
	var blocks strings.Builder
	for i := range routes {
		fmt.Fprintf(&blocks, "route %v blackhole;\n", block(i))
	}
	f.BIRD = bird.Start(t, h, fmt.Sprintf(`log %q all;
timeformat log iso long us;
router id %v;
protocol device { }
protocol static blocks { ipv4;
%s}
protocol static one { disabled; ipv4; route %v blackhole; }
protocol bgp leaf { debug { states }; local %v as %d; neighbor %v as %[6]d; passive; ipv4 { import none; export all; next hop self; }; }
`, f.log, feederAddr, blocks.String(), block(routes), feederAddr, as, leafAddr))
	return f
}

// set announces the blocks of a protocol, or withdraws them.
func (f *feeder) set(protocol string, is bool) {
	f.t.Helper()
	f.Do(map[bool]string{true: "enable", false: "disable"}[is], protocol)
}

// wake waits until the session is established, and goes on asking: BIRD 2.0 may otherwise do nothing for three seconds.
func (f *feeder) wake() {
	f.t.Helper()
	after := 0
	for end := time.Now().Add(soon); after < 3; {
		if strings.Contains(f.Try("show", "protocols", "leaf"), "Established") {
			after++
		}
		if time.Now().After(end) {
			f.t.Fatalf("no session within %v", soon)
		}
	}
}

// established returns when the session was.
func (f *feeder) established() time.Time {
	f.t.Helper()
	for line := range strings.Lines(string(check.Must(os.ReadFile(f.log))(f.t))) {
		if at, _, ok := strings.Cut(line, " <TRACE> leaf: State changed to up"); ok {
			return check.Must(time.ParseInLocation("2006-01-02 15:04:05.000000", at, time.Local))(f.t)
		}
	}
	f.t.Fatalf("no session: %s", check.Must(os.ReadFile(f.log))(f.t))
	return time.Time{}
}

// theirs is BIRD that writes into the kernel.
type theirs struct {
	t *testing.T
	*bird.BIRD
	fd   int    // of a socket for questions about routes
	stat string // the file that says how many there are
	base int    // of others
}

func startBIRD(t *testing.T, h *netns.Host) contender {
	b := &theirs{t: t}
	var err error
	h.Do(func() { b.fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE) })
	check.OK(t, err)
	t.Cleanup(func() { unix.Close(b.fd) })
	b.BIRD = bird.Start(t, h, fmt.Sprintf(`router id %v;
protocol device { }
protocol direct { ipv4; }
protocol kernel { scan time 600; ipv4 { import none; export where source = RTS_BGP; }; }
protocol bgp feeder { local %[1]v as %d; neighbor %v as %[2]d; connect delay time 1; ipv4 { import all; export none; }; }
`, leafAddr, as, feederAddr))
	b.stat = fmt.Sprintf("/proc/%d/net/fib_triestat", b.PID())
	b.base = b.count()
	return b
}

func (b *theirs) pid() int { return b.PID() }

func (b *theirs) wait(first, n int, there bool) time.Time {
	b.t.Helper()
	end := time.Now().Add(soon)
	until := func(what string, ok func() bool) {
		for {
			begun := time.Now()
			if ok() {
				return
			}
			if begun.After(end) {
				b.t.Fatalf("not within %v: %s: %v", soon, what, there)
			}
			time.Sleep(max(time.Millisecond, 10*time.Since(begun)))
		}
	}
	for i := first; i < first+n; i += max(1, n/1000) {
		until(block(i).String(), func() bool { return b.has(block(i)) == there })
	}
	if n > 1 {
		want := b.base
		if there {
			want += n
		}
		until(fmt.Sprint(n, " blocks"), func() bool { return b.count() == want })
	}
	return time.Now()
}

// count returns how many routes the kernel has.
func (b *theirs) count() int {
	b.t.Helper()
	_, rest, _ := strings.Cut(string(check.Must(os.ReadFile(b.stat))(b.t)), "Prefixes:")
	return check.Must(strconv.Atoi(strings.Fields(rest)[0]))(b.t)
}

// has asks the kernel whether there is a way to the first address of a prefix.
func (b *theirs) has(p netip.Prefix) bool {
	b.t.Helper()
	const head, family, attribute = unix.SizeofNlMsghdr, unix.SizeofRtMsg, 8
	m := make([]byte, head+family+attribute)
	binary.NativeEndian.PutUint32(m, uint32(len(m)))
	binary.NativeEndian.PutUint16(m[4:], unix.RTM_GETROUTE)
	binary.NativeEndian.PutUint16(m[6:], unix.NLM_F_REQUEST)
	m[head], m[head+1] = unix.AF_INET, 32
	binary.NativeEndian.PutUint16(m[head+family:], attribute)
	binary.NativeEndian.PutUint16(m[head+family+2:], unix.RTA_DST)
	copy(m[head+family+4:], p.Addr().AsSlice())
	check.OK(b.t, unix.Sendto(b.fd, m, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}))
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(b.fd, answer, 0)
	check.OK(b.t, err)
	return n >= head && binary.NativeEndian.Uint16(answer[4:]) == unix.RTM_NEWROUTE
}
