package wire

import (
	"bytes"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/discovery/internal/endp"
	"github.com/vxswitch/vxswitch/discovery/internal/hello"
	"github.com/vxswitch/vxswitch/discovery/internal/state"
	"github.com/vxswitch/vxswitch/frame"
)

var (
	v6   = netip.MustParseAddr("2001:db8::1")
	v4   = netip.MustParseAddr("192.0.2.1")
	head = state.Head{Seq: 1 << 61, Sum: 1<<32 - 1}
)

// biggest are messages of each type that are as long as they get.
func biggest() map[string]any {
	var segments, hosts state.Advert
	for n := range state.PartHosts {
		segments.Hosts = append(segments.Hosts, state.Host{VNI: frame.VNI(n + 1), MAC: frame.MACFrom(0x0200_0000_0000), Kind: state.Static, Moves: 3})
		hosts.Hosts = append(hosts.Hosts, state.Host{VNI: frame.MaxVNI, MAC: frame.MACFrom(0x0200_0000_0000 + uint64(n))})
	}
	hosts.Hosts[0].MAC = frame.MAC{}
	s := state.Summary{Epoch: 1, From: state.First, To: state.Last}
	var w state.Want
	for n := range state.MaxEntries {
		id := state.ID{Owner: v6, Part: uint8(n)}
		s.Entries = append(s.Entries, state.Entry{ID: id, Head: head})
		w.IDs = append(w.IDs, id)
	}
	c := endp.Clients{Life: 1, Since: 2, Version: 3, More: true, Young: true}
	for range endp.MaxPage {
		c.List = append(c.List, endp.Client{Addr: v6, Name: strings.Repeat("n", endp.MaxName), Gone: true})
	}
	segments.ID, segments.Head, segments.Hold = state.ID{Owner: v6, Part: 255}, head, state.Hold
	hosts.ID, hosts.Head, hosts.Hold = state.ID{Owner: v4}, head, time.Millisecond
	return map[string]any{
		"segments": state.Update{Advert: segments}, "hosts": state.Update{Advert: hosts}, "nothing": state.Update{Advert: state.Advert{ID: segments.ID}},
		"ack": state.Ack{Entry: state.Entry{ID: segments.ID, Head: head}}, "summary": s, "want": w, "hello": hello.Hello{Life: 1, Heard: 2, Seq: 3},
		"register": endp.Register{Name: strings.Repeat("n", endp.MaxName), Leave: true}, "probe": endp.Probe{Life: 1, Version: 2}, "clients": c,
	}
}

// What is written is read again, and the longest message of each type fits a datagram.
func TestRoundTrip(t *testing.T) {
	for name, m := range biggest() {
		b := Append(nil, 7, m)
		if len(b) > MaxSize {
			t.Errorf("%s: %d bytes, want at most %d", name, len(b), MaxSize)
		}
		if network, got, err := Parse(b); err != nil || network != 7 || !reflect.DeepEqual(got, m) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, m)
		}
		for n := range b {
			if _, _, err := Parse(b[:n]); err == nil && name != "hosts" && name != "segments" && name != "nothing" {
				t.Errorf("%s: %d of %d bytes are taken", name, n, len(b))
			}
		}
	}
}

// What breaks the format is refused.
func TestMalformed(t *testing.T) {
	update := func(a state.Advert) []byte {
		a.ID.Owner = v4
		return Append(nil, 7, state.Update{Advert: a})
	}
	mac := frame.MACFrom(0x0200_0000_0001)
	one := state.Host{VNI: 7, MAC: mac}
	for name, b := range map[string][]byte{
		"nothing":          {},
		"type":             {99, 0, 0, 0, 7},
		"more bytes":       append(Append(nil, 7, hello.Hello{}), 0),
		"too long":         make([]byte, MaxSize+1),
		"group address":    update(state.Advert{Hosts: []state.Host{{VNI: 7, MAC: frame.MACFrom(0x0100_0000_0001)}}}),
		"kind":             update(state.Advert{Hosts: []state.Host{{VNI: 7, MAC: mac, Kind: 9}}}),
		"kind of segment":  update(state.Advert{Hosts: []state.Host{{VNI: 7, Kind: state.Static}}}),
		"hosts":            update(state.Advert{Hosts: make([]state.Host, state.PartHosts+1)}),
		"two groups":       append(update(state.Advert{Hosts: []state.Host{one}}), 0, 0, 7, 0, 1, 2, 0, 0, 0, 0, 2, 0, 0),
		"owner":            Append(nil, 7, state.Ack{Entry: state.Entry{ID: state.ID{Owner: netip.MustParseAddr("224.0.0.1")}}}),
		"mapped owner":     Append(nil, 7, state.Ack{Entry: state.Entry{ID: state.ID{Owner: netip.MustParseAddr("::ffff:192.0.2.1")}}}),
		"length of owner":  {ack, 0, 0, 0, 7, 5, 1, 2, 3, 4, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		"entries":          Append(nil, 7, state.Want{IDs: make([]state.ID, state.MaxEntries+1)}),
		"flags":            {register, 0, 0, 0, 7, 2, 0},
		"name":             Append(nil, 7, endp.Register{Name: strings.Repeat("n", endp.MaxName+1)}),
		"control in name":  Append(nil, 7, endp.Register{Name: "a\x1b[2J"}),
		"name of no UTF-8": Append(nil, 7, endp.Register{Name: "\xff"}),
		"clients":          Append(nil, 7, endp.Clients{List: make([]endp.Client, endp.MaxPage+1)}),
	} {
		if _, m, err := Parse(b); err == nil {
			t.Errorf("%s: taken as %v", name, m)
		}
	}
}

// What Parse takes is given again byte for byte, and fits the limits.
func FuzzParse(f *testing.F) {
	for _, m := range biggest() {
		f.Add(Append(nil, 7, m))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		network, m, err := Parse(b)
		if err != nil {
			return
		}
		if again := Append(nil, network, m); !bytes.Equal(again, b) {
			t.Errorf("% x\nis given again as\n% x", b, again)
		}
		switch m := m.(type) {
		case state.Update:
			if len(m.Hosts) > state.PartHosts {
				t.Errorf("%d hosts", len(m.Hosts))
			}
		case state.Summary:
			if len(m.Entries) > state.MaxEntries {
				t.Errorf("%d entries", len(m.Entries))
			}
		}
	})
}
