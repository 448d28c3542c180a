package vtep

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// Packets of IP in UDP are told apart by their version, need a peer that is listed, and go to the port of the peer.
func TestFOU(t *testing.T) {
	u := fake4()
	v := newVTEP(t, &Config{Type: encap.TypeFOU}, u)
	check.OK(t, v.Control().Open(0))
	check.ErrorHas(t, v.Control().Open(7), "vtep: tag 7: ")
	check.True(t, v.MTU(0) == 1500-28, "MTU %d", v.MTU(0))
	a := addPeer(t, v, at(1))
	four, six := bare4(0, 9, true), bare6(0, 9)
	rows := []struct {
		name string
		from netip.AddrPort
		in   []byte
		kind frame.Kind
		drop frame.Reason
		want []byte
	}{
		{"IPv4", at(1), four.data, frame.IPv4, 0, four.data},
		{"IPv6", at(1), six.data, frame.IPv6, 0, six.data},
		{"another source port", netip.AddrPortFrom(at(1).Addr(), 50000), four.data, frame.IPv4, 0, four.data},
		{"padding", at(1), append(bytes.Clone(four.data), 1, 2, 3), frame.IPv4, 0, four.data},
		{"nobody", at(9), four.data, 0, frame.UnknownPeer, nil},
		{"nothing", at(1), nil, 0, frame.Short, nil},
		{"VXLAN", at(1), vx(0, four.data), 0, frame.BadHeader, nil},
		{"IPv4 cut short", at(1), four.data[:19], 0, frame.Short, nil},
		{"IPv6 cut short", at(1), six.data[:39], 0, frame.Short, nil},
	}
	for _, x := range rows {
		u.in = append(u.in, packetIn{src: endpoint(t, x.from), data: bytes.Clone(x.in)})
	}
	batch := frame.NewBatch(nil)
	check.OK(t, v.Readers()[0].Read(batch))
	for i, x := range rows {
		f := &batch.Frames[i]
		if f.Drop != x.drop || x.drop == 0 && (f.Kind != x.kind || f.VNI != 0 || f.From.Peer() != a || !bytes.Equal(f.Bytes(), x.want)) {
			t.Errorf("%s: %v, kind %v, VNI %d, peer %d", x.name, f.Drop, f.Kind, f.VNI, f.From.Peer())
		}
	}
}
