package oracle

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/evpn/internal/route"
	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// Wireshark reads of our UPDATEs what we have said.
func TestDissected(t *testing.T) {
	if _, err := exec.LookPath("tshark"); err != nil {
		t.Fatalf("%v: install the package tshark (apt-get install tshark)", err)
	}
	t.Parallel()
	b, _, c := sessions[0].open(t)
	want := map[string]sample{}
	for _, x := range newSource(7, true).samples(500) {
		b.Advertise(x.ours())
		want[x.texts()[0]] = x
	}
	for len(c.raw) <= len(want) { // with the end of RIB
		c.message()
	}
	file := filepath.Join(t.TempDir(), "bgp.pcap")
	check.OK(t, os.WriteFile(file, pcap(c.raw), 0o600))
	out := check.Must(exec.Command("tshark", "-r", file, "-T", "json", "--no-duplicate-keys", "-J", "bgp").Output())(t)
	var packets []struct {
		Source struct{ Layers struct{ BGP any } } `json:"_source"`
	}
	check.OK(t, json.Unmarshal(out, &packets))
	check.Equal(t, "packets", len(packets), len(c.raw))
	for _, p := range packets {
		d := dissected{}
		d.walk(p.Source.Layers.BGP)
		if len(d.routes) == 0 {
			continue // the end of RIB
		}
		x, ok := want[d.communities[0]]
		if !ok {
			t.Fatalf("nobody has said %v %v", d.communities, d.routes)
		}
		delete(want, d.communities[0])
		check.Slice(t, "communities", d.communities, x.texts())
		check.Slice(t, "a route", d.routes, x.fields())
	}
	check.Equal(t, "routes that are not there", len(want), 0)
}

// dissected is what Wireshark has in an UPDATE: fields of its route, but for parts of the ESI, with next hop and tunnel, sorted; and extended
// communities in their order.
type dissected struct{ routes, communities []string }

func (d *dissected) walk(v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, x := range v {
			switch {
			case name == "bgp.ext_community":
				d.community(x)
				continue
			case strings.HasPrefix(name, "bgp.evpn.nlri.esi_"), strings.HasSuffix(name, "esi_tree"), name == "bgp.update.path_attribute.mp_reach_nlri.next_hop":
				continue
			}
			short, ok := fieldOf(name)
			if s, text := x.(string); ok && text {
				d.routes = append(d.routes, short+" "+s)
				slices.Sort(d.routes)
			}
			d.walk(x)
		}
	case []any:
		for _, x := range v {
			d.walk(x)
		}
	}
}

// fieldOf returns a shorter name of the fields that are compared.
func fieldOf(name string) (string, bool) {
	for _, prefix := range []string{"bgp.evpn.nlri.", "bgp.update.path_attribute.mp_reach_nlri.next_hop.", "bgp.update.path_attribute.pmsi.", "bgp.update.path_attribute.mpls_"} {
		if s, ok := strings.CutPrefix(name, prefix); ok {
			parts := strings.Split(prefix, ".")
			return parts[len(parts)-2] + " " + s, true
		}
	}
	return "", false
}

// community adds one or several.
func (d *dissected) community(v any) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, x := range list {
		var fields []string
		for name, v := range x.(map[string]any) {
			if s, ok := v.(string); ok && !strings.Contains(name, "mpls_") {
				fields = append(fields, strings.TrimPrefix(strings.TrimPrefix(name, "bgp.ext_com"), ".")+" "+s)
			}
		}
		slices.Sort(fields)
		d.communities = append(d.communities, strings.Join(fields, " "))
	}
}

// pcap returns a capture with a packet of IPv4 and TCP for each message.
func pcap(messages [][]byte) []byte {
	var b bytes.Buffer
	put := func(v ...any) {
		for _, v := range v {
			binary.Write(&b, binary.BigEndian, v)
		}
	}
	put(uint32(0xa1b2c3d4), uint16(2), uint16(4), uint64(0), uint32(65535), uint32(101)) // raw IP
	seq := uint32(1)
	for i, m := range messages {
		n := uint32(40 + len(m))
		put(uint32(i), uint32(0), n, n)
		put(uint16(0x4500), uint16(n), uint32(0), uint8(64), uint8(6), uint16(0), uint32(0xc0000201), uint32(0xc0000202))
		put(uint16(179), uint16(40000), seq, uint32(1), uint16(0x5018), uint16(65535), uint32(0), m)
		seq += uint32(len(m))
	}
	return b.Bytes()
}

// texts are the communities of a sample as Wireshark has them.
func (x sample) texts() (list []string) {
	for _, c := range x.communities {
		var s string
		switch c.name {
		case "target-2":
			s = fmt.Sprintf("stype_tr_as2 0x02 type 0x00 value_an4 %d value_as2 %d", c.b, c.a)
		case "target-1":
			s = fmt.Sprintf("stype_tr_IP4 0x02 type 0x01 value_IP4 %v value_an2 %d", ip4(uint32(c.a)), c.b)
		case "target-4":
			s = fmt.Sprintf("stype_tr_as4 0x02 type 0x02 value_an2 %d value_as4 %d", c.b, c.a)
		case "encapsulation":
			s = fmt.Sprintf("stype_tr_opaque 0x0c tunnel_type %d type 0x03", c.a)
		case "gateway":
			s = "stype_tr_opaque 0x0d type 0x03 value_raw 0x0000000000000000"
		case "mobility":
			s = fmt.Sprintf("_evpn.mmac.flags 0x%02x _evpn.mmac.seq %d stype_tr_evpn 0x00 type 0x06", c.b, c.a)
		case "router-mac":
			s = fmt.Sprintf("_evpn.esi.router_mac %v stype_tr_evpn 0x03 type 0x06", mac48(c.a))
		case "esi-label":
			s = fmt.Sprintf("_l2.esi_label_flag %d stype_tr_evpn 0x01 type 0x06", c.a)
		case "es-import":
			s = fmt.Sprintf("_evpn.esi.rt %v stype_tr_evpn 0x02 type 0x06", mac48(c.a))
		case "nd": // it knows none of the fields of these two
			s = fmt.Sprintf("stype_tr_evpn 0x08 type 0x06 value_raw 0x0000%02x0000000000", c.a)
		case "election":
			s = fmt.Sprintf("stype_tr_evpn 0x06 type 0x06 value_raw 0x0000%02x%04x00%04x", c.a, c.b>>16, c.b&0xffff)
		}
		list = append(list, s)
	}
	return list
}

// fields are those of a sample as Wireshark has them.
func (x sample) fields() (list []string) {
	put := func(name string, v any) { list = append(list, fmt.Sprintf("%s %v", name, v)) }
	nlri := func(name string, v any) { put("nlri "+name, v) }
	family := func(name string, a netip.Addr) string {
		if a.Is4() {
			return fmt.Sprintf(name, 4)
		}
		return fmt.Sprintf(name, 6)
	}
	size := 8
	d := x.rd.bytes()
	nlri("rt", x.kind)
	nlri("rd", colons(d[:]))
	put(family("next_hop ipv%d", x.hop), x.hop)
	if x.kind != route.Multicast {
		nlri("esi", colons(x.esi[:]))
		size += 10
	}
	if x.kind != route.Segment {
		nlri("etag", x.tag)
		size += 4
	}
	size += 3 * len(x.labels)
	address := func(a netip.Addr) {
		name := "ip.addr"
		if a.Is6() {
			name = "ipv6.addr"
		}
		nlri(name, a)
		size += a.BitLen() / 8
	}
	// Labels of types 1 and 2, and of tunnels other than VXLAN's, are those of MPLS to Wireshark: it leaves out the last four bits.
	switch x.kind {
	case route.AutoDiscovery:
		nlri("mpls_ls1", x.labels[0]>>4)
	case route.MACIP:
		nlri("maclen", 48)
		nlri("mac_addr", colons(x.mac[:]))
		nlri("iplen", x.ip.BitLen())
		size += 8
		if x.ip.IsValid() {
			address(x.ip)
		}
		for i, l := range x.labels {
			nlri(fmt.Sprint("mpls_ls", i+1), l>>4)
		}
	case route.Multicast, route.Segment:
		nlri("iplen", x.ip.BitLen())
		address(x.ip)
		if size++; x.kind == route.Multicast {
			list = append(list, x.tunnelFields()...)
		}
	case route.Prefix:
		nlri("prefix_len", x.bits)
		address(x.ip)
		gateway := x.gateway
		if !gateway.IsValid() {
			gateway = zero(x.ip)
		}
		nlri(family("ipv%d.gtw_addr", gateway), gateway)
		put("path_attribute label_value", x.labels[0])
		size += 1 + x.ip.BitLen()/8
	}
	nlri("len", size)
	slices.Sort(list)
	return list
}

// tunnelFields are those of the PMSI tunnel attribute. Wireshark has no tunnels of RFC 9574 (type 10), and of an end point its first four bytes.
func (x sample) tunnelFields() []string {
	u := x.tunnel
	label := fmt.Sprint("path_attribute label_value_20bits ", u.label>>4)
	if slices.ContainsFunc(x.communities, func(c community) bool { return c.name == "encapsulation" && (c.a == route.VXLAN || c.a == route.GPE) }) {
		label = fmt.Sprint("nlri vni ", u.label)
	}
	end := "tunnel.id "
	if u.typ == 6 {
		end = fmt.Sprint("ingress_rep_ip ", netip.AddrFrom4([4]byte(u.end.AsSlice())))
	}
	return []string{label, fmt.Sprint("pmsi tunnel.flags ", u.flags), fmt.Sprint("pmsi tunnel.type ", u.typ), "pmsi " + end}
}

// colons returns bytes as Wireshark has them.
func colons(b []byte) string {
	parts := make([]string, len(b))
	for i, x := range b {
		parts[i] = fmt.Sprintf("%02x", x)
	}
	return strings.Join(parts, ":")
}
