package policy

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/setting"
)

// A Rule has conditions and an action. An empty field matches anything; of a list, one element
// must match.
type Rule struct {
	Name      string    `json:"name,omitempty"`     // names its counter, which rules may share; default #0, #1, ... by position
	Action    Action    `json:"action"`             // what happens to frames that match; default Allow
	Direction Direction `json:"direction,omitzero"` // which frames it applies to, seen from the switch

	Src    []netip.Prefix `json:"src,omitempty"`    // source addresses
	Dst    []netip.Prefix `json:"dst,omitempty"`    // destination addresses
	SrcSet string         `json:"srcSet,omitempty"` // or the source is in this set
	DstSet string         `json:"dstSet,omitempty"` // or the destination is in this set

	NotSrc     []netip.Prefix `json:"notSrc,omitempty"`     // the source is in none of these
	NotDst     []netip.Prefix `json:"notDst,omitempty"`     // the destination is in none of these
	AllSrcSets []string       `json:"allSrcSets,omitempty"` // the source is in each of these sets, too
	AllDstSets []string       `json:"allDstSets,omitempty"` // the destination is in each of these sets, too
	NotSrcSets []string       `json:"notSrcSets,omitempty"` // the source is in none of these sets
	NotDstSets []string       `json:"notDstSets,omitempty"` // the destination is in none of these sets

	Protocol    uint8       `json:"protocol,omitempty"`    // IANA number: 1 ICMP, 6 TCP, 17 UDP, 58 ICMPv6; 0 = any, and frames other than IP
	NotProtocol uint8       `json:"notProtocol,omitempty"` // IP of any other protocol; 0 = no such condition
	SrcPorts    []PortRange `json:"srcPorts,omitempty"`    // source ports; Protocol is TCP, UDP, UDP-Lite, SCTP or DCCP, or 0 for all of these
	DstPorts    []PortRange `json:"dstPorts,omitempty"`    // destination ports, likewise
	NotSrcPorts []PortRange `json:"notSrcPorts,omitempty"` // any other source port; Protocol as for SrcPorts
	NotDstPorts []PortRange `json:"notDstPorts,omitempty"` // any other destination port, likewise

	SrcPortSets    []string `json:"srcPortSets,omitempty"`    // or the source address, protocol and source port are in one of these sets of ports; Protocol as for SrcPorts
	DstPortSets    []string `json:"dstPortSets,omitempty"`    // or the destination address, protocol and destination port are in one of these sets of ports, likewise
	NotSrcPortSets []string `json:"notSrcPortSets,omitempty"` // the source address, protocol and source port are in none of these sets of ports, likewise
	NotDstPortSets []string `json:"notDstPortSets,omitempty"` // the destination address, protocol and destination port are in none of these sets of ports, likewise

	ICMP    []ICMPType `json:"icmp,omitempty"`    // types, or type and code; Protocol is 1 or 58
	NotICMP []ICMPType `json:"notICMP,omitempty"` // any other type, or type and code; Protocol is 1 or 58

	SrcMACs    []frame.MAC `json:"srcMACs,omitempty"`    // source MACs
	DstMACs    []frame.MAC `json:"dstMACs,omitempty"`    // destination MACs
	EtherTypes []uint16    `json:"etherTypes,omitempty"` // numbers such as 2054 for ARP; behind VLAN tags; of packets of IP ports, that of their version
	Groups     []uint16    `json:"groups,omitempty"`     // group policy ids of the sender (frame.GBP); 0 = none
}

// Action is what happens to a frame.
type Action uint8

// Actions.
const (
	Allow Action = iota // the frame passes
	Deny                // it is dropped under frame.Policy
	Pass                // the rules of the next tier decide; behind the last tier those of the policy, and there its default
	Log                 // it is told of, once a second at most for a rule, and the next rule decides
	numActions
)

var actionNames = []string{"allow", "deny", "pass", "log"}

// Direction is the slot that a rule applies to, seen from the switch.
type Direction uint8

// Directions.
const (
	Both    Direction = iota
	Ingress           // frames from a port
	Egress            // frames to a port
	numDirections
)

var directionNames = []string{"both", "ingress", "egress"}

// String returns the action's word in settings.
func (a Action) String() string { return setting.Name(actionNames, a) }

// MarshalText implements [encoding.TextMarshaler].
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (a *Action) UnmarshalText(text []byte) error { return setting.Parse(a, actionNames, text) }

// String returns the direction's word in settings.
func (d Direction) String() string { return setting.Name(directionNames, d) }

// MarshalText implements [encoding.TextMarshaler].
func (d Direction) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (d *Direction) UnmarshalText(text []byte) error { return setting.Parse(d, directionNames, text) }

// A PortRange is the ports from First to Last, both included. As text it is "80" or
// "8000-8100".
type PortRange struct{ First, Last uint16 }

// Port returns the range of one port.
func Port(p uint16) PortRange { return PortRange{p, p} }

// String returns the range as in settings.
func (r PortRange) String() string {
	if r.First == r.Last {
		return strconv.Itoa(int(r.First))
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

// MarshalText implements [encoding.TextMarshaler].
func (r PortRange) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (r *PortRange) UnmarshalText(text []byte) error {
	first, last, two := strings.Cut(string(text), "-")
	if !two {
		last = first
	}
	a, err1 := strconv.ParseUint(first, 10, 16)
	b, err2 := strconv.ParseUint(last, 10, 16)
	if err1 != nil || err2 != nil || a > b {
		return &setting.Error{Value: string(text), Allowed: "a port or range up to 65535, such as 80 or 8000-8100"}
	}
	*r = PortRange{uint16(a), uint16(b)}
	return nil
}

// An ICMPType is a type of ICMP or ICMPv6, with every code or with one. As text it is "3"
// or "3/4".
type ICMPType struct {
	Type    uint8
	Code    uint8
	OneCode bool // match Code too
}

// String returns the type as in settings.
func (t ICMPType) String() string {
	if t.OneCode {
		return fmt.Sprintf("%d/%d", t.Type, t.Code)
	}
	return strconv.Itoa(int(t.Type))
}

// MarshalText implements [encoding.TextMarshaler].
func (t ICMPType) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (t *ICMPType) UnmarshalText(text []byte) error {
	typ, code, two := strings.Cut(string(text), "/")
	if !two {
		code = "0"
	}
	a, err1 := strconv.ParseUint(typ, 10, 8)
	b, err2 := strconv.ParseUint(code, 10, 8)
	if err1 != nil || err2 != nil {
		return &setting.Error{Value: string(text), Allowed: "a type, or type/code, up to 255, such as 3 or 3/4"}
	}
	*t = ICMPType{uint8(a), uint8(b), two}
	return nil
}

// spans returns types and codes as intervals of type<<8 | code.
func spans(types []ICMPType) (list []PortRange) {
	for _, t := range types {
		list = append(list, t.span())
	}
	return list
}

func (t ICMPType) span() PortRange {
	if t.OneCode {
		return Port(uint16(t.Type)<<8 | uint16(t.Code))
	}
	return PortRange{uint16(t.Type) << 8, uint16(t.Type)<<8 | 0xff}
}
