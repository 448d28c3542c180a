package underlay

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/datagrams"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// A Reader of each underlay is brought into each state it can be in; then the underlay is paused
// or closed, or its interface deleted or moved away. Whatever comes of it comes as an error, and
// nothing is left behind.

// A state is what a Reader is doing when something happens.
type state string

const (
	stateNew     state = "never read"
	stateWaiting state = "waiting in Read"
	stateBetween state = "between two Reads"
	stateRest    state = "with a rest undelivered"
	stateBackOff state = "backing off"
)

var states = []state{stateNew, stateWaiting, stateBetween, stateRest, stateBackOff}

// A subject is one underlay, and its Reader that is brought into a state.
type subject struct {
	t    *testing.T
	name string
	u    network
	in   *datagrams.Inbox // nil for Memory
	rest func() bool      // something is received and not handed over
	r    frame.Reader
	b    *frame.Batch
	feed func() // has something sent to it; what it is comes in one or two messages of up to 64 datagrams

	failing atomic.Bool // every call of the kernel fails
	ended   chan error  // of a Read that waits
}

// An opener opens an underlay at host a at its own address, the k-th, and returns what
// feeds it, from host b.
type opener func(v *veth, k int) *subject

// stateKinds is all kinds of underlay.
var stateKinds = map[string]struct {
	lost   bool // it says that its interface is gone; others wait for another
	states []state
	open   opener
}{
	"UDP":              {false, states, func(v *veth, k int) *subject { return v.readUDP(k, false) }},
	"group":            {false, states, func(v *veth, k int) *subject { return v.readUDP(k, true) }},
	"IP":               {false, without(stateRest), (*veth).readIP},
	"Packet":           {true, states, func(v *veth, k int) *subject { return v.readPacket(k, 1) }},
	"Packet, 2 queues": {true, states, func(v *veth, k int) *subject { return v.readPacket(k, 2) }},
}

func without(not state) []state {
	return slices.DeleteFunc(slices.Clone(states), func(s state) bool { return s == not })
}

// nth returns address n of the network the hosts share.
func (v *veth) nth(n int) netip.AddrPort { return v.at(n, 4789) }

// mine gives host a one more address.
func (v *veth) mine(n int) netip.AddrPort {
	a := v.nth(n)
	args := []string{"addr", "add", a.Addr().String() + "/24", "dev", "eth0"}
	if v.ip6 {
		args = []string{"addr", "add", a.Addr().String() + "/64", "dev", "eth0", "nodad"}
	}
	v.a.IP(args...)
	return a
}

func (v *veth) readUDP(k int, group bool) *subject {
	n := 110 + k
	if group {
		n += 20
	}
	a := v.mine(n)
	to := endpoint(v.t, a)
	var u *UDP
	v.a.Do(func() { u = listen(v.t, a.String(), nil) })
	x := &subject{u: u, in: &u.readers[0].Inbox, r: u.Readers()[0]}
	r := u.readers[0]
	if group {
		g := netip.AddrFrom4([4]byte{239, 1, 1, byte(k)})
		if v.ip6 {
			g = netip.MustParseAddr(fmt.Sprintf("ff05::%d", k+1))
		}
		if err := u.Join(g); err != nil {
			v.t.Fatal(err)
		}
		to = endpoint(v.t, netip.AddrPortFrom(g, 4789))
		x.in, x.r, r = &u.groups.rx.Inbox, u.Readers()[1], u.groups.rx.reader
	}
	call := r.call
	r.call = func(fd uintptr) bool { return x.fails() || call(fd) }
	x.feed = v.feeder(to, group)
	return x
}

func (v *veth) readIP(k int) *subject {
	a := v.mine(120 + k)
	u := v.ip(v.a, a.Addr())
	x := &subject{u: u, in: &u.readers[0].Inbox, r: u.Readers()[0]}
	call := u.readers[0].call
	u.readers[0].call = func(fd uintptr) bool { return x.fails() || call(fd) }
	inner := make([]byte, 20)
	inner[0] = 0x45
	d := []frame.Datagram{{Parts: [][]byte{inner}, To: []frame.Endpoint{endpoint(v.t, netip.AddrPortFrom(a.Addr(), 0))}, DF: true}}
	x.feed = func() { send(v.t, v.fromIP, d...) }
	return x
}

func (v *veth) ip(h *netns.Host, a netip.Addr) (u *IP) {
	var err error
	h.Do(func() { u, err = ListenIP(a, nil) })
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() { u.Close() })
	return u
}

func (v *veth) readPacket(k, queues int) *subject {
	n := 10*queues + k
	p := v.packetAt(v.a, n, &PacketConfig{Queues: queues, SrcPorts: PortRange{1000, 1000}})
	x := &subject{u: p}
	// A flow goes to one of the queues: all Readers are in the state, and the one that the flow goes to is watched.
	b := v.from
	to := v.end(n)
	until(v.t, "the next hop answers", func() bool {
		send(v.t, b, frame.Datagram{Parts: [][]byte{{1}}, To: []frame.Endpoint{to}, DF: true})
		for i, q := range p.queues {
			_ = q.sock.Conn.Control(func(fd uintptr) {
				fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
				if n, _ := unix.Poll(fds, 0); n > 0 {
					x.in, x.r = &q.Inbox, p.Readers()[i]
					call := q.call
					q.call = func(fd uintptr) bool { return x.fails() || call(fd) }
				}
			})
		}
		return x.r != nil
	})
	send(v.t, b, frame.Datagram{Parts: [][]byte{[]byte("mark")}, To: []frame.Endpoint{to}, DF: true})
	for batch := frame.NewBatch(nil); len(batch.Frames) == 0 || string(batch.Frames[len(batch.Frames)-1].Bytes()) != "mark"; {
		if err := x.r.Read(batch); err != nil {
			v.t.Fatal(err)
		}
	}
	x.feed = v.feeder(to, false)
	return x
}

// feeder returns what sends two runs of 64 datagrams.
func (v *veth) feeder(to frame.Endpoint, group bool) func() {
	b := v.from
	ttl := uint8(64)
	if group {
		ttl = 1
	}
	run, _ := runOf(64*8, 8, 0, 0, to)
	run.TTL = ttl
	return func() { send(v.t, b, run, run) }
}

func (x *subject) fails() bool {
	if !x.failing.Load() {
		return false
	}
	x.in.Errno = unix.ENOMEM
	return true
}

// readInBackground is where goroutines are that inRead looks for.
func (x *subject) readInBackground() { x.ended <- x.r.Read(x.b) }

// inRead returns how many goroutines wait there.
func inRead() (n int) {
	buf := make([]byte, 1<<20)
	for g := range bytes.SplitSeq(buf[:runtime.Stack(buf, true)], []byte("\n\n")) {
		head, _, _ := bytes.Cut(g, []byte("\n"))
		for _, how := range []string{"[IO wait", "[sync.Cond.Wait", "[select"} {
			if bytes.Contains(head, []byte(how)) && bytes.Contains(g, []byte("readInBackground(")) {
				n++
			}
		}
	}
	return n
}

// enter brings the Reader into a state.
func (x *subject) enter(s state) {
	t := x.t
	if x.in != nil {
		x.rest = func() bool { return x.in.At < x.in.N }
	}
	x.b, x.ended = frame.NewBatch(new(frame.Arenas)), make(chan error, 1)
	switch s {
	case stateBackOff:
		x.failing.Store(true)
		fallthrough
	case stateWaiting:
		before := inRead()
		go x.readInBackground()
		until(t, "Read waits", func() bool { return inRead() > before })
	case stateBetween, stateRest:
		for range 100 {
			for x.feed(); ; {
				if err := x.r.Read(x.b); err != nil {
					t.Fatalf("%s: %v", x.name, err)
				}
				if s == stateRest || !x.rest() {
					break
				}
			}
			if x.rest() == (s == stateRest) {
				break
			}
		}
		if x.rest() != (s == stateRest) {
			t.Fatalf("%s: is not", x.name)
		}
		if x.in != nil && x.in.Blocks[0] == nil || len(x.b.Frames) == 0 {
			t.Fatalf("%s: holds no memory", x.name)
		}
	}
}

// read is the Read that is under way, or another.
func (x *subject) read(s state) error {
	if s == stateWaiting || s == stateBackOff {
		select {
		case err := <-x.ended:
			return err
		case <-time.After(10 * time.Second):
			x.t.Fatalf("%s: Read waits", x.name)
		}
	}
	return x.r.Read(x.b)
}

// wantEnd reads until an error, which must be want then and ever after.
func (x *subject) wantEnd(s state, rest bool, want error) {
	x.t.Helper()
	err := x.read(s)
	for rest && err == nil {
		err = x.r.Read(x.b)
	}
	for range 2 {
		if !errors.Is(err, want) {
			x.t.Errorf("%s: %v, want %v", x.name, err, want)
		}
		if x.b.Frames != nil {
			x.t.Errorf("%s: the batch holds memory", x.name)
		}
		err = x.r.Read(x.b)
	}
	if want == frame.ErrPaused && s == stateRest || x.in == nil {
		return
	}
	if i := slices.IndexFunc(x.in.Blocks[:], func(b *frame.Block) bool { return b != nil }); i >= 0 || x.rest() {
		x.t.Errorf("%s: holds message memory", x.name)
	}
}

// paused checks that a pause ends what is under way, and that it ends.
func (x *subject) paused(s state) {
	x.wantEnd(s, false, frame.ErrPaused)
	x.failing.Store(false)
	x.u.Resume()
	if s != stateRest {
		x.feed()
	}
	if err := x.r.Read(x.b); err != nil || len(x.b.Frames) == 0 {
		x.t.Errorf("%s: after the pause %v, %d frames", x.name, err, len(x.b.Frames))
	}
}

func (x *subject) closed(s state) {
	if err := x.u.Close(); err != nil {
		x.t.Errorf("%s: Close: %v", x.name, err)
	}
	x.wantEnd(s, false, net.ErrClosed)
}

func TestReaderStates(t *testing.T) {
	for name, what := range map[string]struct {
		event func(v *veth) // to all at once
		then  func(x *subject, s state, lost bool)
	}{
		"Pause":             {func(*veth) {}, func(x *subject, s state, _ bool) { x.u.Pause(); x.paused(s) }},
		"Close":             {func(*veth) {}, func(x *subject, s state, _ bool) { x.closed(s) }},
		"interface deleted": {func(v *veth) { v.a.IP("link", "del", "eth0") }, (*subject).gone},
		"interface moved":   {func(v *veth) { v.a.IP("link", "set", "eth0", "netns", v.b.NS, "name", "gone0") }, (*subject).gone},
	} {
		t.Run(name, func(t *testing.T) {
			bothFamilies(t, func(t *testing.T, v *veth) {
				v.from, v.fromIP = v.udp(v.b, 2, &UDPConfig{Checksum: ChecksumOn}), v.ip(v.b, v.nth(2).Addr())
				if err := v.from.Join(netip.MustParseAddr(map[bool]string{false: "239.9.9.9", true: "ff05::99"}[v.ip6])); err != nil { // so that it sends to groups
					t.Fatal(err)
				}
				fds, goroutines := descriptors(t), goleak.IgnoreCurrent()
				var checks []func()
				for name, kind := range stateKinds {
					for k, s := range kind.states {
						x := kind.open(v, k)
						x.t, x.name = t, fmt.Sprintf("%s, %s", name, s)
						x.enter(s)
						checks = append(checks, func() {
							what.then(x, s, kind.lost)
							x.closed(stateNew)
						})
					}
				}
				what.event(v)
				for _, check := range checks {
					check()
				}
				if now := descriptors(t); now != fds {
					t.Errorf("%d descriptors before, %d after", fds, now)
				}
				goleak.VerifyNone(t, goroutines)
			})
		})
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// gone checks a Reader whose interface is gone: what it has it hands over, and then it says so,
// if it can see that; else it waits for another, and can be paused.
func (x *subject) gone(s state, lost bool) {
	want := error(unix.ENODEV)
	if !lost {
		x.u.Pause()
		want = frame.ErrPaused
	}
	x.wantEnd(s, lost, want)
	if lost {
		if err := x.r.Read(x.b); !strings.Contains(err.Error(), `"eth0"`) {
			x.t.Errorf("%s: %v", x.name, err)
		}
	}
}
