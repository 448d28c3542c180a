package underlay

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/vxswitch/vxswitch/frame"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// network is what the tests ask of either kind of underlay: the interface package
// vtep declares, and the optional methods.
type network interface {
	Readers() []frame.Reader
	Sender(w int) frame.Sender
	Close() error
	LocalAddr() netip.AddrPort
	Is4() bool
	MTU() int
	Pause()
	Resume()
	Stats() Stats
	PathMTU(f func(to frame.Endpoint, mtu int, quoted []byte))
}

// ported is one that has ports.
type ported interface {
	network
	Sockets(c TxConfig) (uint8, error)
}

var (
	_ ported  = (*UDP)(nil)
	_ ported  = (*Memory)(nil)
	_ network = (*IP)(nil)
)

func endpoint(t testing.TB, ap netip.AddrPort) frame.Endpoint {
	t.Helper()
	e, err := frame.EndpointFrom(ap)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// to makes a datagram of one part.
func to(payload string, flow uint16, eps ...frame.Endpoint) frame.Datagram {
	return frame.Datagram{Parts: [][]byte{[]byte(payload)}, To: eps, Flow: flow, DF: true}
}

func send(t testing.TB, u network, ds ...frame.Datagram) {
	t.Helper()
	if err := u.Sender(0).Send(ds); err != nil {
		t.Fatalf("Send: %v", err)
	}
}

// got is one datagram as it was received.
type got struct {
	payload string
	outer   frame.Outer
	kind    frame.Kind
	drop    frame.Reason
}

// receive reads n datagrams from the first Reader, or fails.
func receive(t testing.TB, u network, n int) []got {
	t.Helper()
	return receiveFrom(t, u, 0, n)
}

func receiveFrom(t testing.TB, u network, reader, n int) []got {
	t.Helper()
	watchdog := time.AfterFunc(10*time.Second, u.Pause)
	defer watchdog.Stop()
	var out []got
	b := frame.NewBatch(nil)
	r := u.Readers()[reader]
	for len(out) < n {
		if err := r.Read(b); err != nil {
			t.Fatalf("Read: %v after %d of %d datagrams", err, len(out), n)
		}
		for i := range b.Frames {
			f := &b.Frames[i]
			out = append(out, got{string(f.Bytes()), b.Outer[i], f.Kind, f.Drop})
		}
	}
	if len(out) > n {
		t.Fatalf("%d datagrams, want %d", len(out), n)
	}
	return out
}

func payloads(rs []got) (s []string) {
	for _, r := range rs {
		s = append(s, r.payload)
	}
	return s
}

// quiet fails when there is anything to read.
func quiet(t testing.TB, u network) {
	t.Helper()
	time.AfterFunc(20*time.Millisecond, u.Pause)
	b := frame.NewBatch(nil)
	err := u.Readers()[0].Read(b)
	if err == nil {
		t.Fatalf("unexpected datagram %q", b.Frames[0].Bytes())
	}
	if !errors.Is(err, frame.ErrPaused) {
		t.Fatal(err)
	}
	time.Sleep(5 * time.Millisecond)
	u.Resume()
}
