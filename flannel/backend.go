package flannel

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/setting"
)

// Defaults of flannel.
const (
	DefaultVNI     = 1
	DefaultPort    = 8472 // of vxlan, as the Linux kernel has it; the registered one is 4789
	DefaultUDPPort = 8285 // of the backend udp
)

// A Backend says how packets go from node to node.
//
//	vxlan     VNI, Port, MTU, GBP, Learning, DirectRouting
//	host-gw   none: routes only
//	ipip      DirectRouting
//	udp       Port
//
// Of other types there is only Raw.
type Backend struct {
	Type string // in lower case

	VNI           frame.VNI // default 1
	Port          uint16    // UDP port of all nodes; default 8472, of udp 8285
	MTU           int       // bytes of a packet on the underlay; 0 = that of its interface
	GBP           bool      // packets carry the group that a policy gave them
	Learning      bool      // MACs are learned from what comes through the tunnel
	DirectRouting bool      // packets to nodes on the same link are not encapsulated

	Raw json.RawMessage // as it was read, with options that are not above
}

// parseBackend reads the part Backend of a network. Options that flannel does not have are passed over, as it does.
func parseBackend(raw json.RawMessage) (b Backend, err error) {
	if len(raw) == 0 {
		return Backend{Type: "udp", Port: DefaultUDPPort}, nil
	}
	var j struct{ Type string }
	if err := decode(raw, &j); err != nil {
		return b, err
	}
	b.Type, b.Raw = strings.ToLower(j.Type), raw
	w := setting.Of("flannel: backend")
	port := func(n int, usual uint16) uint16 {
		if n < 0 || n > 65535 {
			w.Number("Port", n, 1, 65535, int(usual))
			return 0
		}
		if n == 0 {
			return usual
		}
		return uint16(n)
	}
	switch b.Type {
	case "vxlan":
		v := struct {
			VNI, Port, MTU               int
			GBP, Learning, DirectRouting bool
		}{VNI: DefaultVNI}
		if err := decode(raw, &v); err != nil {
			return b, err
		}
		if v.VNI < 1 || v.VNI > int(frame.MaxVNI) {
			w.Want("VNI", v.VNI, "1 to %d", frame.MaxVNI)
		} else {
			b.VNI = frame.VNI(v.VNI)
		}
		b.Port = port(v.Port, DefaultPort)
		if v.MTU != 0 && (v.MTU < 576 || v.MTU > 65535) {
			w.Want("MTU", v.MTU, "576 to 65535, or 0 for that of the interface")
		}
		b.MTU, b.GBP, b.Learning, b.DirectRouting = v.MTU, v.GBP, v.Learning, v.DirectRouting
	case "udp":
		v := struct{ Port int }{DefaultUDPPort}
		if err := decode(raw, &v); err != nil {
			return b, err
		}
		b.Port = port(v.Port, DefaultUDPPort)
	case "ipip":
		var v struct{ DirectRouting bool }
		if err := decode(raw, &v); err != nil {
			return b, err
		}
		b.DirectRouting = v.DirectRouting
	case "":
		w.Want("Type", j.Type, "the name of a backend, such as vxlan")
	}
	return b, w.Err()
}

// Supported returns nil if this package carries the backend out.
func (b *Backend) Supported() error {
	switch b.Type {
	case "vxlan", "host-gw", "ipip", "udp":
		return nil
	}
	return fmt.Errorf("flannel: backend %q: must be one of vxlan, host-gw, ipip, udp: %w", b.Type, errors.ErrUnsupported)
}

// Overhead is what an encapsulated packet is longer, in bytes: outer headers, and with vxlan the inner Ethernet header.
func (b *Backend) Overhead(outer6 bool) int {
	ip := 20
	if outer6 {
		ip = 40
	}
	switch b.Type {
	case "vxlan":
		return ip + 8 + 8 + 14
	case "ipip":
		return ip
	case "udp":
		return ip + 8
	}
	return 0
}

// MTU returns the MTU of pods: of the longest packet that fits the underlay, whose interface has the MTU link. With vxlan
// flannel counts 50 bytes in a network with IPv6, too, where 70 are needed, and loses the longest packets.
func (n *Network) MTU(link int) int {
	if n.Backend.MTU != 0 {
		link = n.Backend.MTU
	}
	return link - n.Backend.Overhead(n.IPv6.IsValid())
}

// raw returns the JSON of a backend.
func (b *Backend) raw() json.RawMessage {
	if b.Raw != nil {
		return b.Raw
	}
	type object map[string]any
	o := object{"Type": b.Type}
	switch b.Type {
	case "vxlan":
		o["VNI"], o["Port"], o["GBP"], o["Learning"], o["DirectRouting"] = b.VNI, b.Port, b.GBP, b.Learning, b.DirectRouting
		if b.MTU != 0 {
			o["MTU"] = b.MTU
		}
	case "udp":
		o["Port"] = b.Port
	case "ipip":
		o["DirectRouting"] = b.DirectRouting
	}
	j, _ := json.Marshal(o)
	return j
}
