package vtep

import (
	"encoding/binary"
	"testing"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// With Config.SymmetricHash, a TCP flow's frames have one hash at two VTEPs, one for each direction, and a router between the
// hosts changes nothing. By default each VTEP has its own.
func TestSymmetricHash(t *testing.T) {
	there, back := tcpPacket(t, false, 100).data, tcpPacket(t, false, 100).data
	copy(back[12:16], there[16:20])
	copy(back[16:20], there[12:16])
	copy(back[20:22], there[22:24])
	copy(back[22:24], there[20:22])
	ethernet := func(mac byte, p []byte) frame.Frame {
		return frame.Make(append(binary.BigEndian.AppendUint16([]byte{2, 0, 0, 0, 0, mac, 2, 0, 0, 0, 0, mac + 1}, 0x0800), p...))
	}
	bare := func(p []byte) frame.Frame {
		f := frame.Make(p)
		f.Kind = frame.IPv4
		return f
	}
	hashes := func(cfg Config, f frame.Frame) (hash uint32, flow uint16) {
		u := fake4()
		v := gpeVTEP(t, cfg, u)
		outs := []frame.Out{{F: &f, Peer: addPeer(t, v, at(1)), Tag: vni}}
		check.OK(t, v.Writer(0).Write(outs))
		p := check.Must(v.Path(outs[0].Peer, vni))(t)
		check.Equal(t, "SymmetricHash of the path", p.SymmetricHash, cfg.SymmetricHash)
		return f.Hash, u.sent[0].flow
	}
	for _, yes := range []bool{true, false} {
		cfg := Config{Type: encap.TypeGPE, SymmetricHash: yes}
		for name, fs := range map[string][2]frame.Frame{
			"Ethernet": {ethernet(1, there), ethernet(5, back)}, "IP": {bare(there), bare(back)},
		} {
			a, flowA := hashes(cfg, fs[0])
			b, flowB := hashes(cfg, fs[1])
			if (a == b) != yes || flowA != uint16(a) || flowB != uint16(b) {
				t.Errorf("%s, SymmetricHash %v: hashes %#x and %#x", name, yes, a, b)
			}
		}
	}
}
