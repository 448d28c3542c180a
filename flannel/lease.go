package flannel

import (
	"bytes"
	"encoding/json"
	"net/netip"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/setting"
)

// A Lease is the subnet of a node, and how to reach the node.
type Lease struct {
	Subnet Subnet
	Attrs
}

// Attrs are the value of a lease: what a node says of itself.
//
//	{"PublicIP":"10.9.0.1","PublicIPv6":null,"BackendType":"vxlan","BackendData":{"VNI":1,"VtepMAC":"9e:e4:4c:09:b4:8b"}}
type Attrs struct {
	Type       string // of the backend; "udp" is left out of the JSON
	IPv4, IPv6 End    // for packets of each family
}

// An End is where packets to a node's subnet of one family go.
type End struct {
	PublicIP netip.Addr // of this family, too; invalid = none
	VNI      frame.VNI  // with vxlan
	MAC      frame.MAC  // with vxlan: of the node's VTEP
}

// end returns the end of a family.
func (a *Attrs) end(f family) *End {
	if f == ipv4 {
		return &a.IPv4
	}
	return &a.IPv6
}

// maxValue is the longest value of a lease, in bytes. flannel writes 250, with wireguard 350.
const maxValue = 4 << 10

// maxType is longer than the names of all backends.
const maxType = 32

type attrsJSON struct {
	PublicIP      address
	PublicIPv6    *address
	BackendType   string          `json:",omitempty"`
	BackendData   json.RawMessage `json:",omitempty"`
	BackendV6Data json.RawMessage `json:",omitempty"`
}

type vxlanJSON struct {
	VNI     uint32
	VtepMAC *text
}

// address is an address in JSON.
type address netip.Addr

// MarshalJSON implements [json.Marshaler].
func (a address) MarshalJSON() ([]byte, error) { return json.Marshal(netip.Addr(a).String()) }

// UnmarshalJSON implements [json.Unmarshaler].
func (a *address) UnmarshalJSON(b []byte) error {
	var t text
	if err := t.UnmarshalJSON(b); err != nil {
		return err
	}
	x, err := netip.ParseAddr(string(t))
	if err != nil || x.Zone() != "" {
		return wrong[address](b)
	}
	*a = address(x)
	return nil
}

// ParseLease reads a lease. key is the part behind "subnets/". The error is a [*Refusal].
func ParseLease(key string, value []byte) (l Lease, err error) {
	if l.Subnet, err = ParseKey(key); err != nil {
		return Lease{}, err
	}
	if l.Attrs, err = parseAttrs(key, value); err != nil {
		return Lease{}, err
	}
	if r := l.check(); r != nil {
		r.Key = key
		return Lease{}, r
	}
	return l, nil
}

// check returns what is wrong with the ends, after it has cleared that of a family without a subnet.
func (l *Lease) check() *Refusal {
	for _, f := range families {
		e := l.end(f)
		if !l.Subnet.prefix(f).IsValid() {
			*e = End{}
		} else if r := f.check(l.Type, e); r != nil {
			return r
		}
	}
	return nil
}

// parseAttrs reads a value, of which no more than the form is checked.
func parseAttrs(key string, value []byte) (a Attrs, err error) {
	refuse := func(r Reason, format string, args ...any) (Attrs, error) {
		return Attrs{}, refusal(key, r, format, args...)
	}
	if len(value) > maxValue {
		return refuse(Oversize, "%d bytes: must be at most %d", len(value), maxValue)
	}
	var j attrsJSON
	if err := decode(value, &j); err != nil {
		return refuse(BadValue, "%v", err)
	}
	var six netip.Addr
	if j.PublicIPv6 != nil {
		six = netip.Addr(*j.PublicIPv6)
	}
	return makeAttrs(key, j.BackendType, netip.Addr(j.PublicIP).Unmap(), six, j.BackendData, j.BackendV6Data)
}

// makeAttrs puts the parts of a value together.
func makeAttrs(key, backend string, four, six netip.Addr, data, data6 json.RawMessage) (a Attrs, err error) {
	refuse := func(r Reason, format string, args ...any) (Attrs, error) {
		return Attrs{}, refusal(key, r, format, args...)
	}
	if len(backend) > maxType {
		return refuse(BadValue, "BackendType: %d bytes: must be at most %d", len(backend), maxType)
	}
	if a.Type = backend; a.Type == "" {
		a.Type = "udp"
	}
	if four.IsValid() && !four.Is4() {
		return refuse(BadPublicIP, "PublicIP: %v: must be an IPv4 address", four)
	}
	if four != netip.IPv4Unspecified() { // which is what flannel writes without IPv4
		a.IPv4.PublicIP = four
	}
	a.IPv6.PublicIP = six
	if a.Type != "vxlan" {
		return a, nil
	}
	for _, x := range []struct {
		name string
		data json.RawMessage
		to   *End
	}{{"BackendData", data, &a.IPv4}, {"BackendV6Data", data6, &a.IPv6}} {
		if len(x.data) == 0 || bytes.Equal(x.data, []byte("null")) {
			continue
		}
		var v vxlanJSON
		if err := decode(x.data, &v); err != nil {
			w := setting.Of(x.name)
			w.Add("", err)
			return refuse(BadData, "%v", w.Err())
		}
		if x.to.VNI = frame.VNI(v.VNI); v.VtepMAC == nil {
			continue
		}
		if x.to.MAC, err = frame.ParseMAC(string(*v.VtepMAC)); err != nil {
			return refuse(BadMAC, "%s: VtepMAC %q: must be a MAC such as 02:00:00:00:00:01", x.name, *v.VtepMAC)
		}
	}
	return a, nil
}

// check returns what is wrong with an end.
func (f family) check(backend string, e *End) *Refusal {
	name, data := "PublicIP", "BackendData"
	if f == ipv6 {
		name, data = "PublicIPv6", "BackendV6Data"
	}
	refuse := func(r Reason, format string, args ...any) *Refusal {
		return refusal("", r, format, args...)
	}
	a := e.PublicIP
	switch {
	case !a.IsValid():
		return refuse(BadPublicIP, "%s: the address of the node is required", name)
	case !f.isHost(a):
		return refuse(BadPublicIP, "%s: %v: must be the %s address of one host", name, a, f.name())
	case backend != "vxlan":
		return nil
	case e.VNI == 0 && e.MAC.IsZero():
		return refuse(BadData, "%s: VNI and VtepMAC are required", data)
	case !e.VNI.Valid():
		return refuse(BadData, "%s: VNI %d: must be at most %d", data, e.VNI, frame.MaxVNI)
	case !e.MAC.IsHost():
		return refuse(BadMAC, "%s: VtepMAC %v: must be the MAC of one host", data, e.MAC)
	}
	return nil
}

// Value returns the JSON of the attributes, byte for byte as flannel writes it.
func (a *Attrs) Value() []byte {
	j := attrsJSON{PublicIP: address(netip.IPv4Unspecified()), BackendType: a.Type}
	if a.Type == "udp" {
		j.BackendType = ""
	}
	if a.IPv4.PublicIP.IsValid() {
		j.PublicIP, j.BackendData = address(a.IPv4.PublicIP), a.data(&a.IPv4)
	}
	if a.IPv6.PublicIP.IsValid() {
		six := address(a.IPv6.PublicIP)
		j.PublicIPv6, j.BackendV6Data = &six, a.data(&a.IPv6)
	}
	b, _ := json.Marshal(j)
	return b
}

// data returns the JSON of the backend for an end, nil for none.
func (a *Attrs) data(e *End) json.RawMessage {
	if a.Type != "vxlan" || !e.PublicIP.IsValid() {
		return nil
	}
	mac := text(e.MAC.String())
	b, _ := json.Marshal(vxlanJSON{uint32(e.VNI), &mac})
	return b
}
