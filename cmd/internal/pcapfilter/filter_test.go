package pcapfilter

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

// What is refused is named, with its place.
func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"foo":                     `filter, column 1: "foo": must begin a condition, such as: host 10.0.0.1,`,
		"tcp prot 80":             `filter, column 5: "prot": must be "and" or "or"`,
		"tcp and":                 `filter, at the end: must begin a condition`,
		"10.0.0.1":                `filter, column 1: "10.0.0.1": must begin a condition, such as: host 10.0.0.1, tcp port 80, arp, ether[0] & 1 = 1; a value needs a word such as host in front`,
		"(tcp":                    `filter, at the end: must be ")", "and" or "or"`,
		"tcp)":                    `filter, column 4: ")": must be "and" or "or"`,
		"host example.com":        `filter, column 6: "example.com": must be an address; names are not looked up`,
		"host 10.1":               `filter, column 6: "10.1": must be a whole address; a network needs net in front`,
		"host 10.0.0.256":         `filter, column 6: "10.0.0.256": the parts of an IPv4 address must be 0 to 255, without leading zeros`,
		"host 10.0.0.0/8":         `filter, column 14: "/": only after net`,
		"host 02:00:00:00:00:01":  `filter, column 6: "02:00:00:00:00:01": a MAC needs ether in front, such as: ether host 02:00:00:00:00:01`,
		"host":                    `filter, at the end: must be an address`,
		"net 10.0.0.1/8":          `filter, column 5: "10.0.0.1": has bits behind its mask that are not 0`,
		"net 10/8":                `filter, column 5: "10": must have all its parts before a mask`,
		"net 0.0.0.1":             `filter, column 5: "0.0.0.1": needs a mask, such as /24`,
		"net 10.0.0.0/33":         `filter, column 14: "33": must be a prefix length, 0 to 32`,
		"net 2001:db8::1/32":      `filter, column 5: "2001:db8::1": has bits behind its mask that are not 0`,
		"ip6 host 10.0.0.1":       `filter, column 10: "10.0.0.1": must be an address of IPv6 after ip6`,
		"ip host 2001:db8::1":     `filter, column 9: "2001:db8::1": must be an address of IPv4 after ip`,
		"tcp host 10.0.0.1":       `filter, column 1: "tcp": must not come before an address; allowed are ether, ip, ip6, arp and rarp`,
		"port http":               `filter, column 6: "http": must be a port, 0 to 65535; names are not looked up`,
		"port 65536":              `filter, column 6: "65536": must be a port, 0 to 65535`,
		"portrange 90-80":         `filter, column 11: "90-80": must be two ports such as 80-90, the lower one first`,
		"ip port 80":              `filter, column 1: "ip": must not come before a port; allowed are tcp, udp and sctp`,
		"ether port 80":           `filter, column 1: "ether": must not come before a port`,
		"ip proto udp":            `filter, column 10: "udp": must be a protocol, 0 to 255, or a name with a backslash such as \tcp`,
		"ether proto 5":           `filter, column 13: "5": must be an EtherType, 1501 to 65535`,
		"tcp proto 6":             `filter, column 1: "tcp": must not come before proto`,
		"ether host 10.0.0.1":     `filter, column 12: "10.0.0.1": must be a MAC such as 02:00:00:00:00:01`,
		"ether":                   `filter, at the end: must follow "ether"`,
		"ip broadcast":            `filter, column 1: "ip": only ether may come before broadcast: the netmask of a network is not known`,
		"vlan 4096":               `filter, column 6: "4096": must be a VLAN, 0 to 4095`,
		"mpls 5":                  `filter, column 1: "mpls": is not supported`,
		"pppoes and ip":           `filter, column 1: "pppoes": is not supported`,
		"ip protochain 6":         `filter, column 4: "protochain": is not supported`,
		"tcp and inbound":         `filter, column 9: "inbound": is not supported`,
		"gateway 10.0.0.1":        `filter, column 1: "gateway": is not supported`,
		"less ip":                 `filter, column 6: "ip": must be a number of bytes after "less"`,
		"len-4 = 5":               `filter, column 1: "len-4": must begin a condition`,
		"ip[0":                    `filter, at the end: must be an operator, ":" or "]"`,
		"ip[0:3] = 1":             `filter, column 6: "3": must be a number of bytes, 1, 2 or 4`,
		"ip[-1] = 1":              `filter, column 1: "ip": must have an offset of at most 16777216 that is not negative`,
		"esp[0] = 1":              `filter, column 1: "esp": has no bytes to select`,
		"ip[0]":                   `filter, at the end: must be an operator or a comparison, such as: ip[8] < 5`,
		"ip[0] >= 0":              `filter, column 7: ">=": the result is always the same`,
		"ip[0] = ip[0]":           `filter, column 1: "ip": is compared with itself`,
		"1 = 1":                   `filter, column 1: "1": is compared with itself`,
		"ip[0] / 0 = 1":           `filter, column 7: "/": divides by 0`,
		"ip[0] << 32 = 1":         `filter, column 7: "<<": shifts by more than 31 bits`,
		"ip[0] & 0 = 0":           `filter, column 7: "&": the result is always 0`,
		"ip[0] ^ 1 + 2 = 3":       `filter, column 11: "+": needs parentheses around ^ and its operands`,
		"1 + ip[0] = 3":           `filter, column 3: "+": has bytes on its right side of a protocol that the left side has not`,
		"ip[0] + 1 % 3 = 3":       `filter, column 11: "%": needs parentheses around it and its operands`,
		"ip[0] + tcp[0] = 3":      `filter, column 7: "+": has bytes on its right side of a protocol that the left side has not`,
		"0x1ffffffff = len":       `filter, column 1: "0x1ffffffff": must be a number of at most 32 bits`,
		"08 = len":                `filter, column 1: "08": must be a number of at most 32 bits`,
		"tcp;udp":                 `filter, column 4: ";": must be a word, a number, an address or an operator`,
		strings.Repeat("(", 100):  `filter, column 66: "(": is nested too deep: at most 64`,
		strings.Repeat("x", 2049): "filter of 2049 bytes: must have at most 2048",
		"not " + strings.Repeat("portrange 1-2 and ", 110) + "arp": "filter: has ",
	} {
		_, err := New(text, Ethernet)
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.80q: %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"arp": "filter: rejects all packets: they begin with raw IP", "vlan": `filter, column 1: "vlan": is for Ethernet, and these packets begin with IP`,
		"ether host 02:00:00:00:00:01": "is for Ethernet", "broadcast": "is for Ethernet", "multicast": "is for Ethernet",
	} {
		if _, err := New(text, RawIP); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestMatchAllocatesNothing(t *testing.T) {
	f := check.Must(New("tcp[tcpflags] & (tcp-syn|tcp-fin) != 0 or host 10.0.0.1 or ip[ip[0] & 0xf] * ip[8] > ip[9]", Ethernet))(t)
	list := corpus()
	if n := testing.AllocsPerRun(10, func() {
		for _, p := range list {
			f.Match(p)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkMatch(b *testing.B) {
	f := check.Must(New("tcp port 80 and host 10.0.0.1", Ethernet))(b)
	p := corpus()[3]
	for b.Loop() {
		f.Match(p)
	}
}

// draw makes a filter from the grammar.
func draw(r *rand.Rand, depth int) string {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	if depth > 0 {
		switch r.IntN(6) {
		case 0, 1, 2:
			return draw(r, depth-1) + pick(" and ", " or ", " && ", " || ") + draw(r, depth-1)
		case 3:
			return "(" + draw(r, depth-1) + ")"
		case 4:
			return pick("not ", "! ") + draw(r, depth-1)
		}
	}
	address := func() string {
		return pick("10.0.0.1", "10.0.1.2", "10.0.0.9", "2001:db8::1", "2001:db8::2", "192.168.0.1", "224.0.0.22")
	}
	direction := func() string { return pick("", "", "src ", "dst ", "src or dst ", "src and dst ") }
	var number func(depth int) string
	number = func(depth int) string {
		if depth > 0 {
			switch r.IntN(3) {
			case 0:
				return number(depth-1) + pick(" + ", " - ", " * ", " / ", " & ", " | ", " << ", " >> ", " % ", " ^ ") + number(0)
			case 1:
				return "(" + number(depth-1) + ")"
			}
		}
		header := pick("ether", "ip", "ip", "tcp", "tcp", "udp", "icmp", "ip6", "icmp6", "arp")
		offset := pick("0", "1", "2", "4", "6", "8", "9", "12", "13", "14", "16", "20", "30", "60")
		if depth > 0 && r.IntN(4) == 0 {
			offset = number(depth - 1)
		}
		return pick("len", "1", "2", "5", "6", "0x45", "80", header+"["+offset+"]", header+"["+offset+"]", header+"["+offset+":2]", header+"["+offset+":4]", header+"["+offset+"]")
	}
	switch r.IntN(12) {
	case 0, 1:
		return pick("ip", "ip6", "arp", "rarp", "tcp", "udp", "icmp", "icmp6", "sctp", "igmp", "pim", "esp")
	case 2, 3:
		return pick("", "", "ip ", "arp ", "ip6 ") + direction() + pick("host ", "host ", "net ") + address() + pick("", "", "", " or "+address(), " and not "+address())
	case 4:
		return pick("", "ip ", "arp ") + direction() + "net " + pick("10", "10.0", "10.0.0", "10.0.0.0/24", "10.0.0.0/15", "2001:db8::/32", "224.0.0.0/4")
	case 5, 6:
		return pick("", "", "tcp ", "udp ", "sctp ") + direction() + pick("port ", "portrange ") + pick("80", "53", "443", "1234", "50-90", "80 or 53", "(80 or 53)")
	case 7:
		return "ether " + direction() + pick("host ", "") + pick("02:00:00:00:00:01", "02:00:00:00:00:02", "ff:ff:ff:ff:ff:ff")
	case 8:
		return pick("vlan", "vlan 5", "vlan 100", "broadcast", "multicast", "ip multicast", "ip6 multicast", "less 60", "greater 60")
	case 9:
		return pick("", "ip ", "ip6 ") + "proto " + pick("6", "17", "1", "58", "44", "89", `\tcp`, `\udp`)
	}
	return number(2) + pick(" = ", " != ", " > ", " < ", " >= ", " <= ") + number(1)
}

// Filters that are drawn take what tcpdump takes.
func TestDrawn(t *testing.T) {
	const filters = 400
	r := rand.New(rand.NewPCG(seed, 7))
	for _, l := range []Link{Ethernet, RawIP} {
		o, compiled := newOracle(t, l), 0
		for range filters {
			text := draw(r, r.IntN(4))
			f, err := New(text, l)
			if err != nil {
				var at *Error
				if errors.As(err, &at) && (at.Column < 1 || at.Column > len(text)+1) {
					t.Errorf("%q: %v", text, err)
				}
				continue
			}
			compiled++
			if _, packet := o.differs(t, f, text); packet != nil {
				t.Errorf("%v: %q: we say %v for %x", l, text, f.Match(packet), packet)
			}
		}
		t.Logf("%v: %d of %d filters compile", l, compiled, filters)
		if compiled < filters/4 {
			t.Error("most are refused")
		}
	}
}

const seed = 1

// FuzzFilter: what compiles is a program that takes what tcpdump takes; what does not is refused in one line that names a place.
func FuzzFilter(f *testing.F) {
	for _, text := range filters {
		f.Add(text, false)
	}
	oracles := map[bool]*oracle{false: newOracle(f, Ethernet), true: newOracle(f, RawIP)}
	f.Fuzz(func(t *testing.T, text string, raw bool) {
		o := oracles[raw]
		x, err := New(text, o.link)
		if err != nil {
			var at *Error
			if strings.Contains(err.Error(), "\n") || errors.As(err, &at) && (at.Column < 1 || at.Column > len(text)+1) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if _, packet := o.differs(t, x, text); packet != nil {
			t.Fatalf("%v: %q: we say %v for %x", o.link, text, x.Match(packet), packet)
		}
	})
}
