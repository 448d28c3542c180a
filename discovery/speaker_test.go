package discovery

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/discovery/internal/hello"
	"github.com/vxswitch/vxswitch/discovery/internal/seal"
	"github.com/vxswitch/vxswitch/discovery/internal/state"
	"github.com/vxswitch/vxswitch/discovery/internal/wire"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// inject has a leaf receive a datagram.
func (f *fabric) inject(from netip.Addr, l *leaf, b []byte) {
	f.net.mu.Lock()
	p := f.net.sockets[l.cfg.Local]
	f.net.mu.Unlock()
	p.in <- datagram{from, b}
	time.Sleep(time.Millisecond)
	synctest.Wait()
}

// What has no key, comes twice, is of another time, network or format is refused and counted, and changes nothing.
func TestHostile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(t, 3, 1, 1)
		defer f.close()
		var heard []byte
		f.net.heard = func(from, to netip.Addr, b []byte) {
			if from == addr(2) && to == addr(1) && b[seal.Overhead-32] == 5 { // a hello
				heard = bytes.Clone(b)
			}
		}
		f.start()
		time.Sleep(30 * time.Second)
		l := f.leaves[1]
		before := l.speaker.Status()
		var s seal.Sealer
		alone := func(at time.Duration, payload []byte) []byte { // by somebody whose clock differs
			return new(seal.Sealer).Seal(testKeys, 1, addr(2), addr(1), time.Now().Add(at), payload)
		}
		say := func(keys seal.Keys, from, to netip.Addr, network uint32) []byte {
			return s.Seal(keys, 1, from, to, time.Now(), wire.Append(nil, network, hello.Hello{Life: 9, Heard: 9}))
		}
		for _, x := range []struct {
			why string
			b   []byte
		}{
			{Malformed, nil},
			{Malformed, make([]byte, 5000)},
			{BadKey, say(seal.Keys{1: []byte("another key, for tests")}, addr(2), addr(1), 0)},
			{BadKey, say(testKeys, addr(2), addr(0), 0)},
			{BadTime, heard},
			{Foreign, say(testKeys, addr(2), addr(1), 5)},
			{BadTime, alone(-31*time.Second, nil)},
			{BadTime, alone(31*time.Second, nil)},
			{Malformed, alone(time.Second, []byte{99})},
		} {
			was := l.speaker.Status().Refused[x.why]
			f.inject(addr(2), l, x.b)
			if n := l.speaker.Status().Refused[x.why]; n != was+1 {
				t.Errorf("%s: %d refused, want %d", x.why, n, was+1)
			}
		}
		was := l.speaker.Status().Refused[Stranger]
		f.inject(addr(9), l, s.Seal(testKeys, 1, addr(9), addr(1), time.Now(), wire.Append(nil, 0, hello.Hello{Life: 1})))
		if n := l.speaker.Status().Refused[Stranger] - was; n != 1 {
			t.Errorf("%d of strangers, want 1", n)
		}
		if after := l.speaker.Status(); !slices.Equal(after.Neighbours, before.Neighbours) || after.Owners != before.Owners {
			t.Errorf("neighbours are %v, want %v", after.Neighbours, before.Neighbours)
		}
	})
}

// A chain without servers: each VTEP has one at both sides, and those between pass on what the ends have.
func TestChain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(t, 4, 1, 0)
		defer f.close()
		for i, l := range f.leaves {
			if i > 0 {
				l.cfg.Neighbours = append(l.cfg.Neighbours, addr(i-1))
			}
			if i < 3 {
				l.cfg.Neighbours = append(l.cfg.Neighbours, addr(i+1))
			}
		}
		f.start()
		time.Sleep(20 * time.Second)
		h := &host{mac: frame.MAC{2, 0, 0, 0, 1, 1}}
		h.move(f.leaves[0], f.leaves[0].ports[0])
		time.Sleep(100 * time.Millisecond)
		f.check("at the other end", []*host{h})
	})
}

// A static host is advertised as one, does not move, and is shown as what it is.
func TestStatic(t *testing.T) {
	fabricOf(t, 2, 1, func(t *testing.T, f *fabric) {
		h := &host{mac: frame.MAC{2, 0, 0, 0, 1, 1}}
		check.OK(t, f.leaves[0].node.Program("static", control.Update{Add: []control.Row{control.MAC{VNI: 100, MAC: h.mac, Port: "p0", Sticky: true}}}))
		time.Sleep(50 * time.Millisecond)
		h.move(f.leaves[1], f.leaves[1].ports[0])
		time.Sleep(50 * time.Millisecond)
		h.on, h.at = f.leaves[0], f.leaves[0].ports[0]
		f.check("static", []*host{h})
		learned := &host{mac: frame.MAC{2, 0, 0, 0, 1, 2}}
		learned.move(f.leaves[1], f.leaves[1].ports[0])
		time.Sleep(50 * time.Millisecond)
		for i, want := range []string{"[02:00:00:00:01:01 static 192.0.2.1 02:00:00:00:01:02 advertised 192.0.2.2]",
			"[02:00:00:00:01:01 static 192.0.2.1 02:00:00:00:01:02 learned 192.0.2.2]"} {
			var got []string
			for x := range f.leaves[i].speaker.Hosts() {
				got = append(got, fmt.Sprint(x.MAC, " ", x.Kind, " ", x.VTEP))
			}
			if fmt.Sprint(got) != want {
				t.Errorf("leaf %d has %v, want %s", i, got, want)
			}
		}
		check.OK(t, f.leaves[0].node.Program("static", control.Update{Snapshot: true}))
		time.Sleep(50 * time.Millisecond)
		if got := f.leaves[1].where(h.mac); strings.HasPrefix(got, "192") {
			t.Errorf("the host is at %q still", got)
		}
	})
}

// A host that two VTEPs have in turns stops moving to either after five moves.
func TestLoop(t *testing.T) {
	fabricOf(t, 2, 1, func(t *testing.T, f *fabric) {
		h := &host{mac: frame.MAC{2, 0, 0, 0, 1, 1}}
		for i := range 30 {
			h.move(f.leaves[i%2], f.leaves[i%2].ports[0])
			time.Sleep(50 * time.Millisecond)
		}
		for x := range f.leaves[0].speaker.Hosts() {
			if x.Moves > 2*maxMoves {
				t.Errorf("%d moves, want at most %d", x.Moves, 2*maxMoves)
			}
		}
		time.Sleep(window)
		h.speak()
		time.Sleep(50 * time.Millisecond)
		f.check("later", []*host{h})
	})
}

// Keys are taken from the file when it is written: the new one is accepted everywhere before it is sent with.
func TestRollover(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(t, 2, 1, 1)
		defer f.close()
		for i, l := range f.leaves {
			l.cfg.KeyFile = filepath.Join(dir, fmt.Sprint(i))
		}
		var log check.Log
		f.leaves[0].cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
		write := func(n int, text string) {
			file := filepath.Join(dir, "new")
			check.OK(t, os.WriteFile(file, []byte(text), 0o600))
			check.OK(t, os.Chtimes(file, time.Time{}, time.Now()))
			check.OK(t, os.Rename(file, f.leaves[n].cfg.KeyFile))
			time.Sleep(2 * time.Second)
		}
		const old, next = "1 a key for tests only\n", "2 the next key for tests\n"
		write(0, old)
		write(1, old)
		f.start()
		time.Sleep(20 * time.Second)
		write(0, "nonsense")
		check.OK(t, os.Remove(f.leaves[0].cfg.KeyFile))
		time.Sleep(20 * time.Second)
		for _, text := range []string{"line 1: must begin with a number", "no such file"} {
			check.Equal(t, text, log.Count(text), 1)
		}
		for _, text := range []string{old + next, next + old, next} {
			write(0, text)
			write(1, text)
			time.Sleep(20 * time.Second)
		}
		for _, l := range f.leaves {
			if st := l.speaker.Status(); st.Refused[BadKey] != 0 || !st.Neighbours[0].Up || len(l.speaker.keys) != 1 {
				t.Errorf("%d refused, neighbours are %v", st.Refused[BadKey], st.Neighbours)
			}
		}
	})
}

// A host that there was no room for is advertised when there is.
func TestRoom(t *testing.T) {
	fabricOf(t, 1, 1, func(t *testing.T, f *fabric) {
		l, other := f.leaves[0], func(n int) frame.MAC { return frame.MAC{2, 9, 0, 0, byte(n >> 8), byte(n)} }
		l.speaker.do(func(time.Duration) {
			for n := range state.MaxHosts {
				l.speaker.state.Add(state.Host{VNI: 100, MAC: other(n)})
			}
		})
		h := &host{mac: frame.MAC{2, 0, 0, 0, 1, 1}}
		h.move(l, l.ports[0])
		advertised := func() (ok bool) {
			time.Sleep(3 * time.Second)
			l.speaker.do(func(time.Duration) { _, ok = l.speaker.state.Own(100, h.mac) })
			return ok
		}
		if advertised() || l.speaker.Status().Refused[NoRoom] == 0 {
			t.Error("there was room")
		}
		l.speaker.do(func(time.Duration) { l.speaker.state.Remove(100, other(0)) })
		if !advertised() {
			t.Error("the host is not advertised")
		}
	})
}

// A segment that both have is one of the flood list, and Configure changes servers and keys while all goes on.
func TestConfigure(t *testing.T) {
	fabricOf(t, 3, 1, func(t *testing.T, f *fabric) {
		floods := func(want int) {
			t.Helper()
			for _, l := range f.leaves {
				n := 0
				for r := range l.node.Plane().Rows(DefaultOwner) {
					if _, ok := r.(control.Flood); ok {
						n++
					}
				}
				st := l.speaker.Status()
				if n != want || st.Segments[0].VTEPs != want {
					t.Errorf("%v floods to %d, and knows %d, want %d", l.cfg.Local, n, st.Segments[0].VTEPs, want)
				}
			}
		}
		floods(2)
		for _, l := range f.leaves {
			c := l.cfg
			c.Servers = []netip.Addr{addr(1), addr(2)}
			l.speaker.do(func(now time.Duration) { l.speaker.settle(now, &c, testKeys, 1) })
		}
		time.Sleep(20 * time.Second)
		floods(2)
		for _, l := range f.leaves {
			if st := l.speaker.Status(); len(st.Servers) != 2 || !st.Servers[0].Up || !st.Servers[1].Up || st.Clients != map[bool]int{true: 3}[l != f.leaves[0]] {
				t.Errorf("%v: %+v, %d clients", l.cfg.Local, st.Servers, st.Clients)
			}
		}
		c := f.leaves[0].cfg
		c.Network = 9
		if err := f.leaves[0].speaker.Configure(&c); err == nil {
			t.Error("another network is taken")
		}
	})
}
