package arp

import (
	"bytes"
	"testing"

	"github.com/vxswitch/vxswitch/frame"
)

// FuzzProcess: whatever the bytes, in every mode and from both sides nothing panics; an
// answer is well formed and goes back, what is not answered nor asked on is not changed,
// and each message is counted once.
func FuzzProcess(f *testing.F) {
	for _, v6 := range []bool{false, true} {
		for _, s := range []said{question(v6, 1, 3), question(v6, 1, 2), question(v6, 1, gatewayHost), answer(v6, 1, 3), announcement(v6, 1), probe(v6, 1, 3)} {
			for mode := range uint8(numModes) {
				f.Add(s.bytes(f), mode, false)
				f.Add(s.bytes(f), mode|8, true)
			}
		}
	}
	f.Add(fragmented(question(true, 1, 3).bytes(f)), uint8(1), false)
	f.Fuzz(func(t *testing.T, b []byte, bits uint8, tunnel bool) {
		mode := Mode(bits % uint8(numModes))
		l := newLab(t, nil, Config{Mode: mode, MAC: ownMAC, LocalOnly: bits&4 != 0})
		l.populate(false)
		l.populate(true)
		if bits&8 != 0 {
			must(t, l.r.SetGateway(gw(bits&16 != 0, bits&32 != 0)))
		}
		from := port1
		if tunnel {
			from = peer3
		}
		v, outcome, g := l.give(from, b)
		out := g.Bytes()
		switch {
		case v == frame.Reply:
			s := hear(t, out)
			if s.kind != isAt || s.src != s.senderMAC || outcome > AnsweredGateway {
				t.Errorf("%v: %+v", outcome, s)
			}
		case outcome == Relayed:
			if len(out) != len(b) || mode != Proxy {
				t.Errorf("asked on: % x", out)
			}
		case !bytes.Equal(out, b):
			t.Errorf("%v, %v: changed", v, outcome)
		}
		if outcome == NumOutcomes && v != frame.Continue {
			t.Errorf("%v, and not counted", v)
		}
		for e := range l.table.All() {
			if !isHost(e.IP) || !e.MAC.IsHost() {
				t.Errorf("%+v", e)
			}
		}
	})
}
