package evpn

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/vxswitch/vxswitch/evpn/internal/election"
	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/evpn/internal/table"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/setting"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// EthernetSegment is a port whose hosts have links to other VTEPs too, as a bond has (RFC 7432, section 5). All that the port is a member of
// takes part. While it is no member of any segment, as when it has failed, or its device has no carrier, the others do not count on it.
type EthernetSegment struct {
	ESI        string        `json:"esi"`                 // ten bytes that all VTEPs of the segment give it, such as 00:11:22:33:44:55:66:77:88:99, the last one 00 unless the first is 00 or 03; needed
	Port       string        `json:"port"`                // name of the port; needed
	Mode       Mode          `json:"mode,omitzero"`       // which links carry frames, the same on all VTEPs
	Election   Election      `json:"election,omitzero"`   // how the VTEP that forwards is elected in each segment; one that wants another way than the others has all take the default
	Preference uint16        `json:"preference,omitzero"` // of the election by preference; default 32767
	Wait       time.Duration `json:"wait,omitzero"`       // from when the port is there until it may forward, so that the others are heard; default "3s"
}

// Mode says which links of an Ethernet segment carry frames.
type Mode uint8

// Modes.
const (
	AllActive    Mode = iota // all, as of a bond with LACP: one VTEP sends what is flooded
	SingleActive             // in each segment one
)

var modeNames = []string{"all-active", "single-active"}

// String returns the word in settings.
func (m Mode) String() string { return setting.Name(modeNames, m) }

// MarshalText implements [encoding.TextMarshaler].
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads what String writes.
func (m *Mode) UnmarshalText(text []byte) error { return setting.Parse(m, modeNames, text) }

// Election says how the VTEP that forwards is elected.
type Election uint8

// Elections.
const (
	Modulo        Election = election.Modulo     // by the VNI and the order of addresses (RFC 7432, section 8.5)
	HighestWeight Election = election.HRW        // by a hash of VNI and address: of a VTEP that comes or goes only its own segments move (RFC 8584, section 3)
	ByPreference  Election = election.Preference // the highest preference, in all segments (RFC 9785); the only one of FRR
)

var electionNames = []string{"modulo", "hrw", "preference"}

// String returns the word in settings.
func (e Election) String() string { return setting.Name(electionNames, e) }

// MarshalText implements [encoding.TextMarshaler].
func (e Election) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText reads what String writes.
func (e *Election) UnmarshalText(text []byte) error { return setting.Parse(e, electionNames, text) }

// checkEthernets adds what is wrong with the settings of Ethernet segments.
func (c *Config) checkEthernets(w *setting.Check) {
	ids, ports := map[route.ESI]int{}, map[string]int{}
	for i, x := range c.EthernetSegments {
		at := fmt.Sprintf("EthernetSegments[%d].", i)
		e, err := route.ParseESI(x.ESI)
		if err != nil {
			w.Wrong(at+"ESI", x.ESI, "%v", err)
		} else if first, ok := twice(ids, e, i); ok {
			w.Wrong(at+"ESI", x.ESI, "ethernetSegments[%d] has it already", first)
		}
		if first, ok := twice(ports, x.Port, i); ok {
			w.Wrong(at+"Port", x.Port, "ethernetSegments[%d] has it already", first)
		} else if x.Port == "" {
			w.Want(at+"Port", x.Port, "the name of a port")
		}
		if int(x.Mode) >= len(modeNames) {
			w.Want(at+"Mode", uint8(x.Mode), "AllActive or SingleActive")
		}
		if int(x.Election) >= len(electionNames) {
			w.Want(at+"Election", uint8(x.Election), "Modulo, HighestWeight or ByPreference")
		}
		if x.Preference != 0 && x.Election != ByPreference {
			w.Wrong(at+"Preference", x.Preference, "requires the election by preference")
		}
		if x.Wait < 0 {
			w.Want(at+"Wait", x.Wait, "0 or longer")
		}
	}
}

// table returns the settings of the table, without what the switch has.
func (x *EthernetSegment) table() table.EthernetSegment {
	e, _ := route.ParseESI(x.ESI)
	t := table.EthernetSegment{ESI: e, SingleActive: x.Mode == SingleActive, Wait: cmp.Or(x.Wait, DefaultWait), Port: x.Port}
	if t.Election.Algorithm = uint8(x.Election); x.Election == ByPreference {
		t.Election.Preference = cmp.Or(x.Preference, DefaultPreference)
	}
	return t
}

// A portState is what is known of a port: the segments that it is a member of, and where frames to it go in each. In one it may have several
// attachments.
type portState struct {
	vnis  []frame.VNI // sorted
	dests []frame.Dest
	dead  bool // its device has no carrier
}

// plug notes that a port has become a member of a segment, unplug that it is none any more.
func (s *Speaker) plug(now time.Duration, e *frame.Event) {
	name := s.port(e)
	p := s.seen.ports[name]
	if p == nil {
		p = &portState{dead: !s.node.Carrier(name)}
		s.seen.ports[name] = p
	}
	i, _ := slices.BinarySearch(p.vnis, e.VNI)
	for ; i < len(p.vnis) && p.vnis[i] == e.VNI; i++ {
		if p.dests[i] == e.Dest {
			return
		}
	}
	p.vnis, p.dests = slices.Insert(p.vnis, i, e.VNI), slices.Insert(p.dests, i, e.Dest)
	s.ethernet(now, name)
}

// port returns the name of the port of an attachment, which may have a longer one.
func (s *Speaker) port(e *frame.Event) string {
	if !strings.Contains(e.Name, ".") {
		return e.Name
	}
	for _, v := range s.node.Switch().VSIs() {
		if v.VNI() != e.VNI {
			continue
		}
		for _, a := range v.Attachments() {
			if a.Dest(0) == e.Dest {
				return a.PortName()
			}
		}
	}
	return e.Name
}

// unplug is for one attachment, or for all in a segment with at 0.
func (s *Speaker) unplug(now time.Duration, vni frame.VNI, at frame.Dest) {
	for name, p := range s.seen.ports {
		i, _ := slices.BinarySearch(p.vnis, vni)
		n := len(p.vnis)
		for i < len(p.vnis) && p.vnis[i] == vni {
			if at == 0 || p.dests[i] == at {
				p.vnis, p.dests = slices.Delete(p.vnis, i, i+1), slices.Delete(p.dests, i, i+1)
			} else {
				i++
			}
		}
		if len(p.vnis) == n {
			continue
		}
		if len(p.vnis) == 0 {
			delete(s.seen.ports, name)
		}
		s.ethernet(now, name)
	}
}

// ethernet has the table know where a port is, if that is on an Ethernet segment.
func (s *Speaker) ethernet(now time.Duration, name string) {
	if !s.seen.listing && slices.ContainsFunc(s.cfg.EthernetSegments, func(x EthernetSegment) bool { return x.Port == name }) {
		s.ethernets(now)
	}
}

// ethernets has the table know all Ethernet segments, and where their ports are.
func (s *Speaker) ethernets(now time.Duration) {
	var list []table.EthernetSegment
	for i := range s.cfg.EthernetSegments {
		x := s.cfg.EthernetSegments[i].table()
		if p := s.seen.ports[x.Port]; p != nil {
			x.VNIs, x.Dests, x.Up = slices.Clone(p.vnis), slices.Clone(p.dests), !p.dead
		}
		if x.Wait < time.Second { // before the next tick
			time.AfterFunc(x.Wait, s.loop.Wake)
		}
		list = append(list, x)
	}
	s.table.SetEthernets(now, list)
}

// role has the switch do what a port on an Ethernet segment is to do. Peers say the addresses: one that is none of a host is left out.
func (s *Speaker) role(vni frame.VNI, port string, r table.Role) {
	x := vswitch.Role{Blocked: r.Blocked, NoFlood: r.NoFlood}
	for _, a := range r.Shared {
		one := vswitch.Role{Shared: []netip.Addr{a}}
		if one.Check() == nil {
			x.Shared = append(x.Shared, a)
		}
	}
	if err := s.node.SetRole(port, vni, x); err != nil {
		s.log.Warn("a port of an Ethernet segment does not do what it should", "port", port, "vni", vni, "error", err)
	}
}

// EthernetStatus is what is known of an Ethernet segment, of ours or of peers.
type EthernetStatus struct {
	ESI        string
	Mode       Mode
	VTEPs      []netip.Addr      // of peers that have it
	Hosts      int               // MACs of peers on it
	Port       string            // ours; "" = we do not have it
	State      string            // of ours: down, without the port; waiting, for others to say that they are there; up
	Election   Election          // that all agree on
	Candidates []netip.Addr      // of the election, with us
	Segments   []EthernetForward // that our port is a member of
}

// EthernetForward says whether we are the VTEP that forwards in a segment.
type EthernetForward struct {
	VNI     frame.VNI
	Forward bool
}

// ethernetStatus returns what is known of Ethernet segments, by ESI. s.mu is held.
func (s *Speaker) ethernetStatus() (list []EthernetStatus) {
	for _, e := range s.table.Ethernets() {
		x := EthernetStatus{ESI: e.ESI.String(), VTEPs: e.VTEPs, Hosts: e.Hosts, Port: e.Port, Election: Election(e.Algorithm), Candidates: e.Candidates}
		if e.SingleActive {
			x.Mode = SingleActive
		}
		switch {
		case e.Port == "":
		case !e.Up:
			x.State = "down"
		case e.Waiting:
			x.State = "waiting"
		default:
			x.State = "up"
		}
		for _, n := range e.Networks {
			x.Segments = append(x.Segments, EthernetForward(n))
		}
		list = append(list, x)
	}
	return list
}
