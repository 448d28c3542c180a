package resource

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/vxswitch/vxswitch/calico/internal/selector"
	"github.com/vxswitch/vxswitch/policy"
)

// A PolicyRule is one of a policy or a profile. If something is wrong with it, it lacks these conditions: it is about all that it should
// be about, and more.
type PolicyRule struct {
	Field  string // where it is, such as spec.ingress[0]
	Action Action
	Wrong  []string // what of it is wrong or not carried

	IPVersion             int               // 4 or 6, 0 for both
	Protocol, NotProtocol uint8             // 0 = no such condition
	ICMP, NotICMP         []policy.ICMPType // one at most
	Src, Dst              Entity
}

// An Action is what happens to packets that a rule is about.
type Action string

// Actions.
const (
	Allow Action = "Allow"
	Deny  Action = "Deny"
	Pass  Action = "Pass" // the next tier decides
	Log   Action = "Log"  // and the next rule decides
)

// An Entity is conditions on one end of a packet.
type Entity struct {
	Nets, NotNets         []netip.Prefix
	Selector, NotSelector *selector.Selector // of who has the address; nil for no such condition
	Ports, NotPorts       []policy.PortRange
	Names, NotNames       []string // of ports, or else Ports; of those that Selector chooses
}

type rawPolicyRule struct {
	Action      string          `json:"action"`
	IPVersion   *int            `json:"ipVersion"`
	Protocol    json.RawMessage `json:"protocol"`
	NotProtocol json.RawMessage `json:"notProtocol"`
	ICMP        *rawICMP        `json:"icmp"`
	NotICMP     *rawICMP        `json:"notICMP"`
	Source      rawEntity       `json:"source"`
	Destination rawEntity       `json:"destination"`
	HTTP        json.RawMessage `json:"http"`
	Metadata    json.RawMessage `json:"metadata"`
}

type rawICMP struct {
	Type *int `json:"type"`
	Code *int `json:"code"`
}

// readRules reads rules that are each in one piece of JSON.
func readRules(field string, list []json.RawMessage, namespace string) *Rules {
	rules := make(Rules, len(list))
	for i, text := range list {
		rules[i] = readRule(fmt.Sprintf("%s[%d]", field, i), text, namespace)
	}
	return &rules
}

// readRule reads a rule. A field that nobody here knows may be a condition, so the rule is wrong.
func readRule(field string, text []byte, namespace string) PolicyRule {
	var raw rawPolicyRule
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(&raw)
	if err != nil {
		raw = rawPolicyRule{}
		if json.Unmarshal(text, &raw) != nil {
			raw = rawPolicyRule{Action: actionOf(text)}
		}
	}
	x := &reader{PolicyRule: PolicyRule{Field: field, Action: Action(raw.Action)}, raw: &raw, namespace: namespace}
	x.wrong(readable(err))
	x.wrong(one("action", raw.Action, string(Allow), string(Deny), string(Pass), string(Log)))
	x.read()
	return x.PolicyRule
}

// actionOf reads the action of a rule of which the rest cannot be read, "" if that cannot be, either.
func actionOf(text []byte) string {
	var r struct {
		Action string `json:"action"`
	}
	if json.Unmarshal(text, &r) != nil {
		return ""
	}
	return r.Action
}

// A reader reads one rule.
type reader struct {
	PolicyRule
	raw       *rawPolicyRule
	namespace string
}

// wrong notes an error, if there is one.
func (x *reader) wrong(err error) {
	if err != nil {
		x.Wrong = append(x.Wrong, err.Error())
	}
}

func (x *reader) read() {
	r := x.raw
	if given(r.HTTP) {
		x.wrong(errors.New("http is not carried"))
	}
	var err error
	x.Protocol, err = readProtocol("protocol", r.Protocol)
	x.wrong(err)
	x.NotProtocol, err = readProtocol("notProtocol", r.NotProtocol)
	x.wrong(err)
	if r.IPVersion != nil {
		x.version(*r.IPVersion)
	}
	x.ICMP = x.icmp("icmp", r.ICMP)
	x.NotICMP = x.icmp("notICMP", r.NotICMP)
	x.entity("source", &r.Source, &x.Src)
	x.entity("destination", &r.Destination, &x.Dst)
}

// version reads that of IP, which ICMP and ICMPv6 have one of.
func (x *reader) version(v int) {
	has := func(protocol uint8) bool { return x.Protocol == protocol || x.NotProtocol == protocol }
	switch {
	case v != 4 && v != 6:
		x.wrong(wrong("ipVersion", v, "must be 4 or 6"))
	case v == 6 && has(protoICMP):
		x.wrong(wrong("ipVersion", v, "must be 4 with ICMP"))
	case v == 4 && has(protoICMPv6):
		x.wrong(wrong("ipVersion", v, "must be 6 with ICMPv6"))
	default:
		x.IPVersion = v
	}
}

func (x *reader) icmp(field string, r *rawICMP) []policy.ICMPType {
	switch {
	case r == nil || r.Type == nil && r.Code == nil:
		return nil
	case r.Type == nil:
		x.wrong(wrong(field+".type", "", "is required with a code"))
	case *r.Type < 0 || *r.Type > 254:
		x.wrong(wrong(field+".type", *r.Type, "must be 0 to 254"))
	case r.Code != nil && (*r.Code < 0 || *r.Code > 255):
		x.wrong(wrong(field+".code", *r.Code, "must be 0 to 255"))
	case x.Protocol != protoICMP && x.Protocol != protoICMPv6:
		x.wrong(wrong(field, fmt.Sprint("type ", *r.Type), "must be there only with protocol ICMP or ICMPv6"))
	case r.Code == nil:
		return []policy.ICMPType{{Type: uint8(*r.Type)}}
	default:
		return []policy.ICMPType{{Type: uint8(*r.Type), Code: uint8(*r.Code), OneCode: true}}
	}
	return nil
}

// Protocols by the names of Calico.
const (
	protoICMP   = 1
	protoTCP    = 6
	protoUDP    = 17
	protoICMPv6 = 58
	protoSCTP   = 132
)

var protocols = map[string]uint8{"icmp": protoICMP, "tcp": protoTCP, "udp": protoUDP, "icmpv6": protoICMPv6, "sctp": protoSCTP, "udplite": 136}

func hasPorts(protocol uint8) bool {
	return protocol == protoTCP || protocol == protoUDP || protocol == protoSCTP
}

// readProtocol reads a number or a name, 0 if there is none.
func readProtocol(field string, text json.RawMessage) (uint8, error) {
	if !given(text) {
		return 0, nil
	}
	name := string(text)
	if text[0] == '"' {
		if err := json.Unmarshal(text, &name); err != nil {
			return 0, err
		}
		if n, ok := protocols[strings.ToLower(name)]; ok {
			return n, nil
		}
	}
	n, err := strconv.ParseUint(name, 10, 8)
	if err != nil || n == 0 {
		return 0, wrong(field, name, "must be 1 to 255, TCP, UDP, ICMP, ICMPv6, SCTP or UDPLite")
	}
	return uint8(n), nil
}
