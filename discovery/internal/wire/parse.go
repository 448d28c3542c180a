package wire

import (
	"errors"
	"time"

	"github.com/vxswitch/vxswitch/discovery/internal/endp"
	"github.com/vxswitch/vxswitch/discovery/internal/hello"
	"github.com/vxswitch/vxswitch/discovery/internal/state"
	"github.com/vxswitch/vxswitch/frame"
)

// ErrMessage is the error of a message that breaks the format.
var ErrMessage = errors.New("discovery: malformed message")

// Types of messages.
const (
	update = iota + 1
	ack
	summary
	want
	helloType
	register
	probe
	clients
)

// MaxSize is the longest message: with a seal and headers of UDP and IPv6 it fits in the 1280 bytes that any IPv6 link carries.
const MaxSize = 1280 - 40 - 8 - 42

// Flags.
const (
	leaves = 1
	more   = 1
	young  = 2
	gone   = 1
)

// Parse reads a message of a network: one of package state, endp or hello. It does not keep b.
func Parse(b []byte) (network uint32, m any, err error) {
	if len(b) > MaxSize {
		return 0, nil, ErrMessage
	}
	r := &reader{b: b}
	kind := r.u8()
	network = r.u32()
	switch kind {
	case update:
		m = r.update()
	case ack:
		m = state.Ack{Entry: r.entry()}
	case summary:
		m = r.summary()
	case want:
		m = r.want()
	case helloType:
		m = hello.Hello{Life: r.u64(), Heard: r.u64(), Seq: r.u64()}
	case register:
		m = endp.Register{Leave: r.flags(leaves) != 0, Name: r.name()}
	case probe:
		m = endp.Probe{Life: r.u64(), Version: r.u64()}
	case clients:
		m = r.clients()
	default:
		r.bad = true
	}
	if r.bad || len(r.b) > 0 {
		return 0, nil, ErrMessage
	}
	return network, m, nil
}

func (r *reader) update() state.Update {
	var a state.Advert
	a.ID = r.id()
	a.Head = state.Head{Seq: r.u64(), Sum: r.u32()}
	a.Hold = time.Duration(r.u32()) * time.Millisecond
	for !r.bad && len(r.b) > 0 {
		r.group(&a)
	}
	return state.Update{Advert: a}
}

// group reads what an advertisement has of a segment and kind: the segment itself, or hosts in order.
func (r *reader) group(a *state.Advert) {
	vni, kind, n := frame.VNI(r.u24()), state.Kind(r.u8()), r.count(state.PartHosts-len(a.Hosts))
	if r.bad = r.bad || kind > state.Static; r.bad {
		return
	}
	if last := len(a.Hosts) - 1; n > 0 && last >= 0 && !a.Hosts[last].MAC.IsZero() && a.Hosts[last].VNI == vni && a.Hosts[last].Kind == kind {
		r.bad = true // it was one group
		return
	}
	if n == 0 {
		r.bad = r.bad || kind != state.Learned || len(a.Hosts) == state.PartHosts
		a.Hosts = append(a.Hosts, state.Host{VNI: vni})
		return
	}
	for range n {
		h := state.Host{VNI: vni, MAC: frame.MAC(r.take(6)), Kind: kind, Moves: r.u16()}
		r.bad = r.bad || !h.MAC.IsHost()
		a.Hosts = append(a.Hosts, h)
	}
}

func (r *reader) summary() state.Summary {
	m := state.Summary{Epoch: r.u64(), From: r.end(), To: r.end()}
	for range r.count(state.MaxEntries) {
		m.Entries = append(m.Entries, r.entry())
	}
	return m
}

func (r *reader) want() state.Want {
	m := state.Want{Epoch: r.u64()}
	for range r.count(state.MaxEntries) {
		m.IDs = append(m.IDs, r.id())
	}
	return m
}

func (r *reader) clients() endp.Clients {
	m := endp.Clients{Life: r.u64(), Since: r.u64(), Version: r.u64()}
	f := r.flags(more | young)
	m.More, m.Young = f&more != 0, f&young != 0
	for range r.count(endp.MaxPage) {
		m.List = append(m.List, endp.Client{Addr: r.host(), Gone: r.flags(gone) != 0, Name: r.name()})
	}
	return m
}
