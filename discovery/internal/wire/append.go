package wire

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"github.com/vxswitch/vxswitch/discovery/internal/endp"
	"github.com/vxswitch/vxswitch/discovery/internal/hello"
	"github.com/vxswitch/vxswitch/discovery/internal/state"
)

var be = binary.BigEndian

// Append appends a message of a network, one that package state, endp or hello has made.
func Append(b []byte, network uint32, m any) []byte {
	kind := func(k byte) { b = be.AppendUint32(append(b, k), network) }
	switch m := m.(type) {
	case state.Update:
		kind(update)
		b = appendUpdate(b, &m.Advert)
	case state.Ack:
		kind(ack)
		b = appendEntry(b, m.Entry)
	case state.Summary:
		kind(summary)
		b = be.AppendUint64(b, m.Epoch)
		b = append(appendID(appendID(b, m.From), m.To), byte(len(m.Entries)))
		for _, e := range m.Entries {
			b = appendEntry(b, e)
		}
	case state.Want:
		kind(want)
		b = append(be.AppendUint64(b, m.Epoch), byte(len(m.IDs)))
		for _, id := range m.IDs {
			b = appendID(b, id)
		}
	case hello.Hello:
		kind(helloType)
		b = be.AppendUint64(be.AppendUint64(be.AppendUint64(b, m.Life), m.Heard), m.Seq)
	case endp.Register:
		kind(register)
		b = appendName(append(b, flag(m.Leave, leaves)), m.Name)
	case endp.Probe:
		kind(probe)
		b = be.AppendUint64(be.AppendUint64(b, m.Life), m.Version)
	case endp.Clients:
		kind(clients)
		b = appendClients(b, &m)
	default:
		panic(fmt.Sprintf("discovery: a %T is no message", m))
	}
	return b
}

func flag(is bool, bit byte) byte {
	if is {
		return bit
	}
	return 0
}

func appendAddr(b []byte, a netip.Addr) []byte {
	s := a.AsSlice()
	return append(append(b, byte(len(s))), s...)
}

func appendName(b []byte, s string) []byte { return append(append(b, byte(len(s))), s...) }

func appendID(b []byte, id state.ID) []byte { return append(appendAddr(b, id.Owner), id.Part) }

func appendEntry(b []byte, e state.Entry) []byte {
	return be.AppendUint32(be.AppendUint64(appendID(b, e.ID), e.Seq), e.Sum)
}

func appendUpdate(b []byte, a *state.Advert) []byte {
	b = appendEntry(b, state.Entry{ID: a.ID, Head: a.Head})
	b = be.AppendUint32(b, uint32((a.Hold+time.Millisecond-1)/time.Millisecond))
	count := 0 // where that of the group is
	for i, h := range a.Hosts {
		if last := i - 1; last < 0 || h.MAC.IsZero() || a.Hosts[last].MAC.IsZero() || a.Hosts[last].VNI != h.VNI || a.Hosts[last].Kind != h.Kind {
			b = append(b, byte(h.VNI>>16), byte(h.VNI>>8), byte(h.VNI), byte(h.Kind), 0)
			count = len(b) - 1
		}
		if !h.MAC.IsZero() {
			b[count]++
			b = be.AppendUint16(append(b, h.MAC[:]...), h.Moves)
		}
	}
	return b
}

func appendClients(b []byte, m *endp.Clients) []byte {
	b = be.AppendUint64(be.AppendUint64(be.AppendUint64(b, m.Life), m.Since), m.Version)
	b = append(b, flag(m.More, more)|flag(m.Young, young), byte(len(m.List)))
	for _, c := range m.List {
		b = appendName(append(appendAddr(b, c.Addr), flag(c.Gone, gone)), c.Name)
	}
	return b
}
