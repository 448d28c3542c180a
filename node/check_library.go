package node

import (
	"fmt"
	"strings"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// What the packages refuse whose settings these are is asked of them, with the settings that
// they get when the configuration is applied. The error is theirs.

// asks asks about a part of the configuration, unless something is known to be wrong with it.
func (k *checker) asks(key string, about ...func() error) {
	if k.wrong(key) {
		return
	}
	for _, f := range about {
		k.adopt(key, f())
	}
}

// wrong reports whether there is an error about a part.
func (k *checker) wrong(key string) bool {
	for _, e := range k.errs {
		if rest, ok := strings.CutPrefix(e.Key, key); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}

// renamed are keys that are not called as the library's fields are.
var renamed = map[string]string{
	"device": "bind", "checksum": "udpChecksum", "zeroChecksum6RX": "udp6ZeroChecksumRx", "header.ttl": "ttl", "header.tos": "tos",
	"header.df": "df", "header.ecn": "ecn", "noLearn": "noLearning", "group": "isolated", 
	"storm.unknownUnicast": "storm.unknown",
}

// adopt takes over what a package says is wrong with a part: "package: Config.Field: text", or
// for several things a line each.
func (k *checker) adopt(key string, err error) {
	if err == nil {
		return
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		field, text := "", line
		if _, rest, ok := strings.Cut(line, "Config."); ok {
			sep := ": "
			if at := strings.IndexAny(rest, ` "`); at > 0 && rest[at] == ' ' && rest[at-1] != ':' {
				sep = " " // "Queues 300: text"
			}
			field, text, _ = strings.Cut(rest, sep)
		} else if pkg, rest, ok := strings.Cut(line, ": "); ok && !strings.Contains(pkg, " ") {
			text = rest
		}
		field = lowerCamel(field)
		if name := renamed[field]; name != "" {
			field = name
		}
		k.fail(strings.TrimSuffix(join(key, field), "."), "%s", text)
	}
}

func (k *checker) tunnelSettings(key string, t *Tunnel) {
	k.asks(key, func() error {
		switch {
		case t.Type == Type(encap.TypeIPIP):
			return t.ip().Check(t.Local)
		case t.Underlay == underlayPacket:
			return t.packet().Check(t.at())
		}
		return t.udp().Check(t.at())
	}, t.vtep().Check, func() error {
		if t.MTU == 0 {
			return nil
		}
		return t.vtep().CheckMTU(t.MTU, t.Local)
	})
}

func (k *checker) portSettings(key string, p *Port) {
	if name := p.Name; name == "." || name == ".." || strings.ContainsAny(name, "/:% \t\n\v\f\r\x00") {
		k.fail(key+".name", "%q is no name of a device", name)
	}
	k.asks(key, func() error {
		if p.Type == portPacket {
			return p.packet().Check()
		}
		return p.device().Check(p.Type == portTUN)
	})
}

func (k *checker) segmentSettings(key string, g *Segment) {
	cfg := g.vsi(vswitch.Slots{})
	k.asks(key, cfg.Check)
	for i := range g.Members {
		at := g.Members[i].attach()
		k.asks(fmt.Sprintf("%s.members[%d]", key, i), func() error { return at.Check(false) })
	}
	for i, x := range g.in() {
		at := vswitch.AttachConfig{Hub: x.Hub, Group: x.Group}
		k.asks(fmt.Sprintf("%s.tunnels[%d]", key, i), func() error { return at.Check(true) })
	}
	if n := g.Neighbours; n != nil {
		for i, x := range n.Static {
			k.asks(fmt.Sprintf("%s.neighbours.static[%d]", key, i), func() error { return arp.CheckNeighbour(x.IP, x.MAC) })
		}
	}
	if g.Neighbours != nil || g.ethernet() {
		cfg := g.responder(func(frame.MAC) (frame.Dest, bool) { return 0, false })
		k.asks(key+".neighbours", g.table().Check, cfg.Check)
	}
}

func (k *checker) gatewaySettings(key string, g *Segment) {
	w := g.Gateway
	cfg := g.iface(new(arp.Responder), func(frame.Dest, *frame.Frame) bool { return false })
	if !g.ethernet() {
		cfg.Neighbours, cfg.Port = nil, frame.NewDest(1, 0)
	}
	k.asks(key, cfg.Check)
	for i, p := range w.Addresses {
		if g.ethernet() {
			k.asks(fmt.Sprintf("%s.addresses[%d]", key, i), func() error { return arp.CheckNeighbour(p.Addr(), w.MAC) })
		}
	}
}
