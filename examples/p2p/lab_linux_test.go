package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/carry"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/offload"
)

var folder string // for the program, removed when all tests have run

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if folder, err = os.MkdirTemp("", "p2p-test"); err != nil {
			panic(err)
		}
		defer os.RemoveAll(folder)
		os.Chmod(folder, 0o755) // for the test without privileges
		if code := (carry.Suite{M: m}).Run(); code != 0 {
			return code
		}
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}())
}

// program builds p2p once and returns its path.
var program = sync.OnceValues(func() (string, error) {
	path := filepath.Join(folder, "p2p")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", path, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// start runs p2p inside a host and waits until it is ready.
func start(t *testing.T, h *netns.Host, ready string, args ...string) *netns.Proc {
	t.Helper()
	path, err := program()
	must(t, err)
	if carry.Kernel() && !slices.Contains(args, "-datapath") && !slices.Contains(args, "-type") {
		args = append(args, "-datapath", "kernel")
	}
	p := h.Start(path, args...)
	t.Cleanup(func() { p.Stop() }) // a subtest that has failed leaves no device to the next
	p.Want("\n")
	if got := p.Output(); got != ready+"\n" {
		t.Fatalf("got %q, want %q", got, ready)
	}
	return p
}

// stop ends p2p and returns its last statistics.
func stop(t *testing.T, p *netns.Proc) line {
	t.Helper()
	n := strings.Count(p.Output(), "\n")
	if err := p.Stop(); err != nil {
		t.Errorf("SIGTERM: %v", err)
	}
	l := lineAt(t, p, n)
	if l.Offload != nil {
		carry.Count(t, int(l.Offload.Carried.Frames))
	}
	return l
}

// ask has p2p print its statistics.
func ask(t *testing.T, p *netns.Proc) line {
	t.Helper()
	n := strings.Count(p.Output(), "\n")
	p.Signal(syscall.SIGUSR1)
	for end := time.Now().Add(5 * time.Second); strings.Count(p.Output(), "\n") == n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no stats line after SIGUSR1")
		}
	}
	return lineAt(t, p, n)
}

// settle asks until rx and tx are what the kernels' devices vx0 sent and received: a
// worker counts a frame a moment after it has arrived.
func settle(t *testing.T, p *netns.Proc, peers ...*netns.Host) (l line) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); ; {
		rx, tx := 0, 0
		for _, h := range peers {
			rx += h.Counter("vx0", "tx_packets")
			tx += h.Counter("vx0", "rx_packets")
		}
		l = ask(t, p)
		if l.Rx.Frames == rx && l.Tx.Frames == tx {
			return l
		}
		if time.Now().After(end) {
			t.Fatalf("rx %+v, tx %+v, but the kernels sent %d and received %d", l.Rx, l.Tx, rx, tx)
		}
	}
}

// line is a stats line as users read it.
type line struct {
	TooBig frame.TooBigStats
	Rx, Tx struct{ Frames, Bytes int }
	Flood  struct{ Broadcast, Multicast, Unknown int }
	Drops  map[string]int
	FDB    []struct {
		VNI    int
		MAC    string
		Dest   string
		Origin string
		Age    float64
	}
	Neigh []struct {
		VNI                    int
		IP, MAC, Origin, State string
	}
	Peers []struct {
		Addr   string
		Rx, Tx int
	}
	Counts *struct {
		ARP, ND map[string]int
		Asked   int
		Table   map[string]int
	} `json:"neigh_counts"`
	Datapath string
	Offload  *offload.Stats
}

func lineAt(t *testing.T, p *netns.Proc, n int) (l line) {
	t.Helper()
	lines := strings.Split(p.Output(), "\n")
	if len(lines) != n+2 || lines[n+1] != "" {
		t.Fatalf("not one line more than %d:\n%s", n, p.Output())
	}
	text, ok := strings.CutPrefix(lines[n], "stats ")
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); !ok || err != nil {
		t.Fatalf("%q: %v", lines[n], err)
	}
	if l.FDB == nil || l.Neigh == nil || l.Peers == nil || l.Drops == nil {
		t.Errorf("null in %s", text)
	}
	return l
}

// dest returns where a MAC is, "" if it is not in the table.
func (l *line) dest(mac string) string {
	for _, e := range l.FDB {
		if e.MAC == mac {
			return e.Dest
		}
	}
	return ""
}

func (l *line) wantDrops(t *testing.T, allowed ...string) {
	t.Helper()
	drops := map[string]int{}
	for name, n := range l.Drops {
		drops[name] = n
	}
	for _, name := range allowed {
		if n := drops[name]; n > 0 {
			t.Logf("drops %s: %d", name, n)
		}
		delete(drops, name)
	}
	if len(drops) > 0 {
		t.Errorf("drops %v", drops)
	}
}

// gone reports whether a host has no such device.
func gone(t *testing.T, h *netns.Host, dev string) bool {
	_, err := h.Try(t.Context(), "ip", "link", "show", dev)
	return err != nil
}

// family is an address family of the underlay: two hosts, and the MTU it leaves inside a
// tunnel of 1500.
type family struct {
	name          string
	local, remote string
	bits          string
	brackets      string // of an address with a port
	mtu           int
}

var families = []family{
	{"IPv4", "10.0.0.1", "10.0.0.2", "/24", "%s", 1450},
	{"IPv6", "fd00::1", "fd00::2", "/64", "[%s]", 1430},
}

func (f *family) ready(dev string, id, mtu int) string {
	return fmt.Sprintf("ready dev=%s type=vxlan id=%d local="+f.brackets+":4789 mtu=%d", dev, id, f.local, mtu)
}

// hosts returns two hosts with a link between them.
func (f *family) hosts(t *testing.T) (a, b *netns.Host) {
	n := netns.New(t)
	a, b = n.Host("a"), n.Host("b")
	n.Link(a, f.local+f.bits, b, f.remote+f.bits)
	return a, b
}

// peers returns two hosts; b has the kernel's device vx0, by default of network 9
// and at 192.168.7.2.
func (f *family) peers(t *testing.T, v netns.VXLAN) (a, b *netns.Host) {
	a, b = f.hosts(t)
	f.kernel(b, v)
	return a, b
}

func (f *family) kernel(b *netns.Host, v netns.VXLAN) {
	v.ID, v.Local, v.Remote, v.Addr = cmp.Or(v.ID, 9), f.remote, f.local, cmp.Or(v.Addr, "192.168.7.2/24")
	b.VXLAN("vx0", v)
}

// start runs p2p in host a as the other end of network 9.
func (f *family) start(t *testing.T, a *netns.Host, mtu int, args string) *netns.Proc {
	t.Helper()
	return start(t, a, f.ready("vxs0", 9, mtu), strings.Fields("-local "+f.local+" -remote "+f.remote+" -id 9 "+args)...)
}
