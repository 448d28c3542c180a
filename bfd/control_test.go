package bfd

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// golden is a packet, with what is in it.
var (
	golden = []byte{0x20 | 3, 0xc0 | 0x20, 5, 24, 1, 2, 3, 4, 5, 6, 7, 8, 0, 4, 0x93, 0xe0, 0, 0, 0xc3, 0x50, 0, 0, 0, 0}
	inside = Control{Diag: NeighborDown, State: Up, Poll: true, Multiplier: 5, My: 0x01020304, Your: 0x05060708,
		MinTx: 300 * time.Millisecond, MinRx: 50 * time.Millisecond}
)

func TestParse(t *testing.T) {
	c, why := Parse(golden)
	check.Equal(t, "reason", why, NotDiscarded)
	check.Equal(t, "packet", c, inside)
	if b := inside.Append([]byte{9}); !bytes.Equal(b[1:], golden) || b[0] != 9 {
		t.Errorf("% x", b)
	}
}

// Each check of RFC 5880, section 6.8.6 that needs no session.
func TestParseRefuses(t *testing.T) {
	patch := func(at int, v byte) []byte {
		b := bytes.Clone(golden)
		b[at] = v
		return b
	}
	zero := func(at int) []byte {
		b := bytes.Clone(golden)
		clear(b[at : at+4])
		return b
	}
	state := func(b []byte, s State) []byte {
		b[1] = byte(s) << 6
		return b
	}
	auth := append(patch(1, 0xc4), 1, 3, 0)
	for _, r := range []struct {
		name string
		b    []byte
		why  Reason
	}{
		{"nothing", nil, Short},
		{"23 bytes", golden[:23], Short},
		{"version 0", patch(0, 0), BadVersion},
		{"version 2", patch(0, 0x40), BadVersion},
		{"length 23", patch(3, 23), BadLength},
		{"length beyond the packet", patch(3, 25), Short},
		{"length before its end", append(bytes.Clone(golden), 1, 2, 3), NotDiscarded},
		{"A with length 24", patch(1, 0xc4), BadLength},
		{"A with length 25", func() []byte { b := bytes.Clone(auth); b[3] = 25; return b }(), BadLength},
		{"A with length 27", func() []byte { b := bytes.Clone(auth); b[3] = 27; return b }(), NotDiscarded},
		{"multiplier 0", patch(2, 0), NoMultiplier},
		{"M", patch(1, 0xc1), Multipoint},
		{"my discriminator 0", zero(4), NoDiscriminator},
		{"your discriminator 0, admin-down", state(zero(8), AdminDown), NotDiscarded},
		{"your discriminator 0, down", state(zero(8), Down), NotDiscarded},
		{"your discriminator 0, init", state(zero(8), Init), BadState},
		{"your discriminator 0, up", state(zero(8), Up), BadState},
	} {
		_, why := Parse(r.b)
		check.Equal(t, r.name, why, r.why)
	}
}

func TestNames(t *testing.T) {
	for i, n := range [][]string{stateNames, diagNames, reasonNames, statusNames} {
		for k, s := range n {
			check.True(t, s != "", "list %d: %d has no name", i, k)
		}
	}
	check.Equal(t, "reasons", len(reasonNames), int(NumReasons))
	check.Equal(t, "reserved", Diag(31).String(), "invalid")
}

// FuzzControl compares the codec with that of gopacket.
func FuzzControl(f *testing.F) {
	f.Add(golden)
	f.Add(append([]byte{0x20, 0xc4, 5, 27}, append(golden[4:], 1, 3, 0)...))
	f.Add(golden[:20])
	f.Fuzz(func(t *testing.T, b []byte) {
		c, why := Parse(b)
		if why != NotDiscarded {
			return
		}
		n := int(b[3]) // gopacket wants no more
		if c.Auth {
			n = controlLen // it looks into the section, and panics in some
		}
		head := bytes.Clone(b[:n])
		head[3], head[1] = byte(n), head[1]&^0x04
		var g layers.BFD
		if err := g.DecodeFromBytes(head, gopacket.NilDecodeFeedback); err != nil {
			t.Fatalf("gopacket: %v", err)
		}
		us := func(v layers.BFDTimeInterval) time.Duration { return time.Duration(v) * time.Microsecond }
		want := Control{
			Diag: Diag(g.Diagnostic), State: State(g.State), Poll: g.Poll, Final: g.Final, Independent: g.ControlPlaneIndependent,
			Auth: c.Auth, Demand: g.Demand, Multiplier: uint8(g.DetectMultiplier),
			My: uint32(g.MyDiscriminator), Your: uint32(g.YourDiscriminator),
			MinTx: us(g.DesiredMinTxInterval), MinRx: us(g.RequiredMinRxInterval), MinEchoRx: us(g.RequiredMinEchoRxInterval),
		}
		if c != want || g.Version != 1 || g.Multipoint {
			t.Fatalf("% x: %+v, gopacket has %+v", b, c, want)
		}
		buf := gopacket.NewSerializeBuffer()
		g.AuthPresent = false
		must(t, g.SerializeTo(buf, gopacket.SerializeOptions{}))
		if mine := c.Append(nil); !bytes.Equal(mine, buf.Bytes()) {
			t.Fatalf("% x, gopacket writes % x", mine, buf.Bytes())
		}
	})
}

// Counts are read as they are written.
func TestCountsJSON(t *testing.T) {
	var c, same Counts
	for r := range c {
		if r > 0 {
			c[r] = uint64(r)
		}
	}
	text := check.Must(json.Marshal(c))(t)
	must(t, json.Unmarshal(text, &same))
	check.Equal(t, string(text), same, c)
	check.True(t, json.Unmarshal([]byte(`{"nonsense":1}`), &same) != nil, "an unknown reason")
}

func TestListenUDPWithoutSpeaker(t *testing.T) {
	_, err := ListenUDP(nil, nil)
	check.ErrorHas(t, err, "bfd: ListenUDP: the Speaker is nil")
}
