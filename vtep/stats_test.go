package vtep

import (
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	stub "github.com/vxswitch/vxswitch/internal/lab/fake"
)

// lossy is an underlay that loses one copy of each datagram that has several.
type lossy struct{ stub.Underlay }

func (lossy) Readers() []frame.Reader   { return nil }
func (lossy) Sender(int) frame.Sender   { return lossy{} }
func (lossy) Close() error              { return nil }
func (lossy) LocalAddr() netip.AddrPort { return netip.MustParseAddrPort("192.0.2.1:4789") }
func (lossy) Send(ds []frame.Datagram) error {
	for i := range ds {
		if len(ds[i].To) > 1 {
			ds[i].Lost, ds[i].Drop = 1, frame.Unreachable
		}
	}
	return nil
}

// Tx counts copies, and only those that left.
func TestTxCountsCopies(t *testing.T) {
	v := check.Must(New(nil, lossy{}))(t)
	var peers []netip.AddrPort
	for _, a := range []string{"192.0.2.2", "192.0.2.3", "192.0.2.4"} {
		peers = append(peers, netip.AddrPortFrom(netip.MustParseAddr(a), 0))
	}
	flood(t, v, 7, peers...)
	one := check.Must(v.AddPeer(peers[0]))(t)
	b := frame.NewBatch(nil)
	flood, known := b.New(100), b.New(60)
	check.OK(t, v.Writer(0).Write([]frame.Out{{F: flood, Tag: 7}, {F: known, Peer: one, Tag: 7}, {F: known, Tag: 8}}))
	if s := v.Stats(); s.Tx != (frame.Count{Frames: 3, Bytes: 260}) || s.Lost[frame.Unreachable] != 1 {
		t.Errorf("%+v", s)
	}
}
