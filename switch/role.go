package vswitch

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/hostaddr"
	"github.com/vxswitch/vxswitch/setting"
)

// A Role is what an attachment does for an Ethernet segment: a host or network with links to several VTEPs (RFC 7432, section 5;
// RFC 8365, section 8). A control plane elects who forwards what, and sets the roles under traffic. Known unicast takes any link that
// is not Blocked. What enters here, or comes from the switch itself, is flooded to all local members, whatever their roles (local bias,
// RFC 8365, section 8.3.1).
type Role struct {
	// Blocked: another VTEP forwards for the segment (single-active). No frame enters or leaves here (frame.Blocked), and what was
	// learned here is forgotten, which an EventFlushed tells.
	Blocked bool `json:"blocked,omitzero"`

	// NoFlood: another VTEP is the designated forwarder of a segment with many (all-active; RFC 7432, section 8.5). Flooded frames from
	// tunnels do not leave here.
	NoFlood bool `json:"noFlood,omitzero"`

	// Shared are the addresses of the other VTEPs of the segment. Flooded frames from them do not leave here, because they have
	// flooded them there. Neither do those from peers without a number, who may be anybody. Known peers have one: list them, in
	// flood lists or otherwise.
	Shared []netip.Addr `json:"shared,omitempty"`
}

// maxShared is more than the VTEPs of any segment.
const maxShared = 64

// Check returns what is wrong with the role.
func (r *Role) Check() error {
	w := setting.Of("Role")
	if len(r.Shared) > maxShared {
		w.Want("Shared", len(r.Shared), "at most %d addresses", maxShared)
	}
	for i, a := range r.Shared {
		path := fmt.Sprintf("Shared[%d]", i)
		if err := hostaddr.Check(a); err != nil {
			w.Wrong(path, a, "%v", err)
		} else if _, err := frame.EndpointFrom(netip.AddrPortFrom(a, 0)); err != nil {
			w.Wrong(path, a, "%v", err)
		}
	}
	return w.Err()
}

// Equal reports whether two roles are the same.
func (r *Role) Equal(other *Role) bool {
	return r.Blocked == other.Blocked && r.NoFlood == other.NoFlood && slices.Equal(r.Shared, other.Shared)
}

// A role is what floods need of a Role.
type role struct {
	noFlood bool
	shared  []frame.Endpoint
}

// compile returns nil for a Role that floods need not ask, as most have none.
func (r *Role) compile() *role {
	if r == nil || !r.NoFlood && len(r.Shared) == 0 {
		return nil
	}
	x := &role{noFlood: r.NoFlood}
	for _, a := range r.Shared {
		if e, err := frame.EndpointFrom(netip.AddrPortFrom(a, 0)); err == nil {
			x.shared = append(x.shared, e)
		}
	}
	return x
}

// withholds reports whether f, flooded from c, is another VTEP's to send to the segment.
func (r *role) withholds(f *frame.Frame, c *circuit) bool {
	switch {
	case c.port.tunnel == nil:
		return false
	case r.noFlood:
		return true
	case len(r.shared) == 0 || c.port.sender == nil:
		return false
	}
	peer := f.From.Peer()
	return peer == 0 || slices.Contains(r.shared, c.port.sender.Sender(peer))
}

// blocked reports whether a Role blocks.
func (r *Role) blocked() bool { return r != nil && r.Blocked }

// forget forgets what was learned at the attachment, which is blocked by now. s.mu is held.
func (a *Attachment) forget() {
	v := a.vsi
	v.sw.grace()
	v.fdb.FlushPort(a.port.num)
	v.left(a.Dest(0), nil)
	v.fdb.Flushed(a.Dest(0))
}
