package vswitch

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// tapList is what a Tap has seen, a line each.
type tapList struct {
	mu   sync.Mutex
	seen []string
}

func (l *tapList) Frame(vni frame.VNI, port string, f *frame.Frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = append(l.seen, fmt.Sprintf("%d %s %x", vni, port, f.Bytes()))
}

func (l *tapList) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.seen
	l.seen = nil
	return list
}

// A Tap sees a frame where it comes in and where it goes out, without the tags of its attachments.
func TestTap(t *testing.T) {
	inLab(t, func(l *lab) {
		a, _ := l.port("a", 0)
		b, _ := l.port("b", 7)
		other := check.Must(l.s.VSI(2, nil))(t)
		check.Must(other.Attach(b, 8))(t)
		tunnel := &stubTunnel{stub: newStub("vx")}
		check.Must(l.v.Attach(tunnel, 1))(t)
		tap, next := &tapList{}, &tapList{}
		plain := eth(frame.Broadcast, mac(1), 0x88b5, 1)
		a.send(plain)
		l.s.SetTap(tap)
		line := func(vni int, port string, b []byte) string { return fmt.Sprintf("%d %s %x", vni, port, b) }
		want := func(what string, tap *tapList, lines ...string) {
			t.Helper()
			if got := tap.take(); !slices.Equal(got, lines) {
				t.Errorf("%s: %q, want %q", what, got, lines)
			}
		}
		a.send(plain)
		want("flooded", tap, line(1, "a", plain), line(1, "b", plain), line(1, "vx", plain))
		answer := eth(mac(1), mac(2), 0x88b5, 2)
		tagged := func(vid byte, b []byte) []byte {
			return slices.Concat(b[:12], []byte{0x81, 0, 0, vid}, b[12:])
		}
		b.send(tagged(7, answer), tagged(8, plain), tagged(9, plain))
		want("tagged", tap, line(1, "b", answer), line(2, "b", plain), line(1, "a", answer))
		tunnel.send(fromPeer(3, 1, answer), fromPeer(3, 5, answer))
		want("from a tunnel", tap, line(1, "vx", answer), line(1, "a", answer))
		bad := eth(mac(1), frame.MAC{}, 0x88b5)
		a.send(bad)
		want("dropped", tap, line(1, "a", bad))
		f := frame.Make(eth(mac(1), mac(9), 0x88b5))
		l.s.Inject(l.v, &f)
		b.send()
		want("from the switch", tap, line(1, "a", f.Bytes()))

		l.s.SetTap(next)
		a.send(bad)
		want("replaced", tap)
		want("new", next, line(1, "a", bad))
		l.s.SetTap(nil)
		a.send(plain)
		want("none", next)
	})
}
