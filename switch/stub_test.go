package vswitch

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stub is a port whose frames a test writes by hand, and whose output it sees.
type stub struct {
	name   string
	mtu    int
	in     chan [][]byte
	end    chan struct{}
	once   sync.Once
	closed atomic.Bool
	err    error // what Read returns when end is closed; default net.ErrClosed

	mu   sync.Mutex
	out  []frame.Out
	late int // frames written after Close
}

func newStub(name string) *stub {
	return &stub{name: name, mtu: 1514, in: make(chan [][]byte), end: make(chan struct{}), err: net.ErrClosed}
}

func (s *stub) Name() string { return s.name }

func (s *stub) Readers() []frame.Reader { return []frame.Reader{s} }

func (s *stub) Writer(int) frame.Writer { return s }

func (s *stub) Offloads() frame.Offloads { return frame.OffloadAll }

func (s *stub) MTU(uint16) int { return s.mtu }

func (s *stub) Close() error { s.closed.Store(true); s.once.Do(func() { close(s.end) }); return nil }

func (s *stub) Read(b *frame.Batch) error {
	b.Reset()
	select {
	case ps := <-s.in:
		for _, p := range ps {
			copy(b.New(len(p)).Bytes(), p)
		}
		return nil
	case <-s.end:
		return s.err
	}
}

func (s *stub) Write(out []frame.Out) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Load() {
		s.late += len(out)
	}
	for _, o := range out {
		c := o.F.Clone()
		o.F = &c
		s.out = append(s.out, o)
	}
	return nil
}

// stubTunnel is a stub that is a Tunnel: packets are peer (2 bytes), VNI (4 bytes),
// frame.
type stubTunnel struct {
	*stub
	open    sync.Map
	groups  sync.Map // by MAC
	retired atomic.Pointer[[]uint16]
	freed   atomic.Int32
	tell    atomic.Pointer[func(frame.Event)]
	peers   []uint16
}

func (s *stubTunnel) Control() frame.TunnelControl { return s }

func (s *stubTunnel) Open(tag uint32) error { s.open.Store(tag, true); return nil }

func (s *stubTunnel) HasGroup(_ uint32, mac frame.MAC) bool {
	_, ok := s.groups.Load(mac)
	return ok
}

func (s *stubTunnel) Shut(tag uint32) { s.open.Delete(tag) }

func (s *stubTunnel) PeerName(p uint16) string { return "peer" }

func (s *stubTunnel) Free(peers []uint16) { s.freed.Add(int32(len(peers))) }

func (s *stubTunnel) Retire(func(uint16) bool) []uint16 {
	if p := s.retired.Swap(nil); p != nil {
		return *p
	}
	return nil
}

func (s *stubTunnel) Tell(f func(frame.Event)) { s.tell.Store(&f) }

func (s *stubTunnel) Peers() []uint16 { return s.peers }

func (s *stubTunnel) Readers() []frame.Reader { return []frame.Reader{s} }

func (s *stubTunnel) Read(b *frame.Batch) error {
	if err := s.stub.Read(b); err != nil {
		return err
	}
	tunnelled(b)
	return nil
}

// tunnelled takes what is in front of the frames of a batch off.
func tunnelled(b *frame.Batch) {
	for i := range b.Frames {
		f := &b.Frames[i]
		h := f.Bytes()
		f.From, f.VNI, f.Tunnel = frame.NewDest(0, binary.BigEndian.Uint16(h)), frame.VNI(binary.BigEndian.Uint32(h[2:])), true
		f.Pull(6)
	}
}

func fromPeer(peer uint16, vni frame.VNI, b []byte) []byte {
	h := binary.BigEndian.AppendUint16(nil, peer)
	return append(binary.BigEndian.AppendUint32(h, uint32(vni)), b...)
}

// mac returns a unicast MAC that ends with n.
func mac(n byte) frame.MAC { return frame.MAC{2, 0, 0, 0, 0, n} }

func eth(dst, src frame.MAC, etherType uint16, payload ...byte) []byte {
	b := append(dst[:], src[:]...)
	b = binary.BigEndian.AppendUint16(b, etherType)
	return append(b, payload...)
}

// lab is a running switch with a VSI and stub ports, in a synctest bubble.
type lab struct {
	t   *testing.T
	s   *Switch
	v   *VSI
	end chan error
}

func inLab(t *testing.T, test func(l *lab)) {
	synctest.Test(t, func(t *testing.T) {
		l := &lab{t: t, s: check.Must(New(nil))(t), end: make(chan error, 1)}
		l.v = check.Must(l.s.VSI(1, nil))(t)
		go func() { l.end <- l.s.Run(context.Background()) }()
		defer func() { l.s.Close() }()
		test(l)
	})
}

func (l *lab) port(name string, tag uint32) (*stub, *Attachment) {
	p := newStub(name)
	return p, check.Must(l.v.Attach(p, tag))(l.t)
}

// send has a port read these frames, and waits until they are dealt with.
func (s *stub) send(frames ...[]byte) {
	s.in <- frames
	synctest.Wait()
}

// sent returns what was written to the port, and forgets it.
func (s *stub) sent() []frame.Out {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.out
	s.out = nil
	return out
}

func (l *lab) drops(port int) frame.Drops { return l.s.Stats().Ports[port].RxDrops }
