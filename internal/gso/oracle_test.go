package gso

import (
	"bytes"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// gopacket reads every segment, and writing what it read, with lengths and checksums of
// its own, gives the segment again.
func TestCutOracle(t *testing.T) {
	for name, k := range packets(5000) {
		f := k.super(1448)
		var c Cutter
		seq, id := k.seq, k.id
		var payload []byte
		for i, s := range cut(t, &c, nil, f) {
			p := gopacket.NewPacket(s, k.decoder(), gopacket.Default)
			if e := p.ErrorLayer(); e != nil {
				t.Fatalf("%s: segment %d: %v", name, i, e.Error())
			}
			var all []gopacket.SerializableLayer
			for _, l := range p.Layers() {
				switch l := l.(type) {
				case *layers.IPv4:
					if l.Id != id {
						t.Errorf("%s: segment %d: identification %d, want %d", name, i, l.Id, id)
					}
					id++
				case *layers.TCP:
					l.SetNetworkLayerForChecksum(p.NetworkLayer())
					if l.Seq != seq || l.PSH != (len(payload)+len(l.Payload) == 5000) {
						t.Errorf("%s: segment %d: sequence %d, PSH %v", name, i, l.Seq, l.PSH)
					}
					seq += uint32(len(l.Payload))
				case *layers.UDP:
					l.SetNetworkLayerForChecksum(p.NetworkLayer())
				}
				if l, ok := l.(gopacket.SerializableLayer); ok {
					all = append(all, l)
				}
			}
			payload = append(payload, p.TransportLayer().LayerPayload()...)
			buf := gopacket.NewSerializeBuffer()
			if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, all...); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(buf.Bytes(), s) {
				t.Fatalf("%s: segment %d:\n% x, gopacket says\n% x", name, i, s[:80], buf.Bytes()[:80])
			}
		}
		if !bytes.Equal(payload, k.payload) {
			t.Errorf("%s: the payload is another", name)
		}
	}
}
