package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/node"
)

// options are the values of the flags.
type options struct {
	node   *node.Config // of one tunnel, one port and one segment
	queues bool         // -queues is set
	pcap   string
	every  time.Duration // between stats lines; 0 = only when asked
}

// flags parses the command line. Most flags are settings in a file of a node.
type flags struct {
	*flag.FlagSet
	form
	options

	dev, group       string
	remotes, gateway []string
	entries          int // of -fdb
	tun              bool
}

// Keys in the file.
const (
	tunnel0  = "tunnels[0]."
	port0    = "ports[0]."
	segment0 = "segments[0]."
	member0  = segment0 + "members[0]."
	far0     = segment0 + "tunnels[0]."
)

// newFlags declares the flags, with the names of "ip link add type vxlan".
func newFlags() *flags {
	f := &flags{FlagSet: flag.NewFlagSet("p2p", flag.ContinueOnError), form: form{given: map[string]given{}}}
	f.SetOutput(io.Discard) // an error is one line, and run prints it

	f.word("type", "`vxlan|gpe|ipip`: encapsulation (default vxlan)", tunnel0+"type")
	f.truth("tun", "use a TUN device, for IP without Ethernet: with -type gpe; ipip always does",
		func(_ string, yes bool) { f.tun = yes })
	f.word("local", "outer source `ADDR`, IPv4 or IPv6, of this host (required)", tunnel0+"local")
	f.list("remote", "`ADDR[,ADDR...]` of the peers: the flood list of the VNI", &f.remotes)
	f.StringVar(&f.group, "group", "", "multicast group `ADDR` to join and flood to, instead of -remote, or with -remote for peers outside the group")
	f.number("group-ttl", "outer TTL `N` to -group, 1 to 255 (default 1: the local network)", tunnel0+"groupTTL")
	f.word("underlay-dev", "interface `IF` for -group (default: the one with -local)", tunnel0+"multicastDevice")
	f.number("id", "VNI `N`, 0 to 16777215 (default 1)", segment0+"vni")
	f.number("dstport", "UDP destination `PORT`, 1 to 65535 (default 4789, gpe 4790)", tunnel0+"port")
	f.word("srcport", "range `LO-HI` of UDP source ports (default 49152-65535)", tunnel0+"srcPorts")
	f.number("srcport-count", "`N` source ports in use, 1 to 1024 (default 16): more spread flows better over equal paths", tunnel0+"srcPortCount")
	f.number("mark", "mark `N` (SO_MARK) of the underlay sockets", tunnel0+"mark")
	f.word("bind", "interface `IF` to bind the underlay sockets to", tunnel0+"bind")

	f.StringVar(&f.dev, "dev", "vxs0", "`NAME` of the device; a persistent device stays at exit")
	f.Func("kind", "`tap|veth`: veth makes a pair of devices, of which -dev is a guest's, to be moved anywhere; a veth that exists is p2p's end, and stays at exit (default tap)", func(s string) error {
		if s != "tap" && s != "veth" {
			return errors.New("must be tap or veth")
		}
		f.put("kind", s, s, port0+"type")
		return nil
	})
	f.number("mtu", "MTU `N` of the device, 68 to 65521 (default: MTU of the underlay minus the overhead, and a tag with -inner-vlan pass; a veth that exists keeps its own)", port0+"mtu")
	f.number("queues", "`N` receive queues of the device and sockets of the underlay, 1 to 256 (default: one per CPU, at most 4; one for -type ipip, on other systems than Linux, and single-queue devices)", port0+"queues", tunnel0+"queues")
	f.word("busy-poll", "`DURATION` that a queue polls before it sleeps, 0 to 1ms (default 0; for machines with idle CPUs)", port0+"busyPoll", tunnel0+"busyPoll")
	f.truth("offload", "use superframes: virtio headers on the device, GSO and GRO on the sockets (default true)", func(s string, yes bool) {
		f.put("offload", s, !yes, port0+"noOffload", tunnel0+"noOffload")
	})

	f.word("datapath", "`user|kernel|auto`: where flows are carried once p2p has decided: in p2p, in the kernel by eBPF, or in the kernel where that works (default user)", "datapath")

	f.truth("learning", "learn source MACs (default true)", func(s string, yes bool) {
		f.put("learning", s, !yes, segment0+"noLearning")
	})
	f.Func("ageing", "`DURATION` or seconds after which an unused MAC expires, 0 for never (default 300s)", func(s string) error {
		d := s
		if strings.Trim(s, "0123456789") == "" { // seconds, as for ip link
			d += "s"
		}
		f.put("ageing", s, d, segment0+"ageing", segment0+"neighbours.ageing")
		return nil
	})
	f.number("maxaddress", "maximum number `N` of learned MACs (default 8192)", segment0+"maxMACs", segment0+"neighbours.limit")
	f.Func("storm", "`CLASS=PPS`: limit flooding of broadcast, multicast or unknown frames per second, from the device and from the tunnel; repeatable (default 10000, 50000 and 50000 from the device, no limit from the tunnel)", func(s string) error {
		class, pps, _ := strings.Cut(s, "=")
		n, err := strconv.ParseUint(pps, 10, 32)
		if !slices.Contains([]string{"broadcast", "multicast", "unknown"}, class) || err != nil || n == 0 {
			return errors.New("must be CLASS=PPS: broadcast, multicast or unknown, and 1 to 4294967295 frames per second")
		}
		rate := "storm." + class + ".packets"
		f.put("storm", s, n, member0+rate, far0+rate)
		return nil
	})
	f.word("inner-vlan", "`discard|strip|pass`: frames with a VLAN tag inside the tunnel (default discard)", segment0+"innerVLAN")
	f.Func("fdb", "`MAC=ADDR`: static FDB entry for a MAC behind a peer; repeatable", func(s string) error {
		mac, at, ok := strings.Cut(s, "=")
		if !ok || mac == "" || at == "" {
			return errors.New("must be MAC=ADDR, such as 02:00:00:00:00:01=10.0.0.2")
		}
		key := fmt.Sprintf("%sfdb[%d].", segment0, f.entries)
		f.put("fdb", s, mac, key+"mac")
		f.put("fdb", s, at, key+"remote")
		f.entries++
		return nil
	})
	f.word("neigh", "`off|suppress|proxy|access`: answer ARP and ND for hosts behind the tunnel with their MAC or that of the gateway; access answers for all, so that the device reaches the gateway only (default off)", segment0+"neighbours.mode")
	f.list("gateway", "`ADDR/LEN[,ADDR/LEN]` of a gateway, the same at every end", &f.gateway)
	f.word("gateway-mac", "`MAC` of the gateway, the same at every end (default "+gatewayMAC+")", segment0+"gateway.mac")
	f.word("peers", "`any|listed|listed-per-vni`: peers to accept packets from (default any)", tunnel0+"peers")
	f.word("reserved", "`rfc|strict|0xMASK`: reserved header bits to drop packets for (default rfc: none)", tunnel0+"reserved")

	f.number("ttl", "outer TTL `N|inherit` (default 64)", tunnel0+"ttl")
	f.number("tos", "outer TOS `N|inherit`, without its ECN bits (default 0, ipip inherit)", tunnel0+"tos")
	f.word("df", "`set|unset|inherit`: DF of the outer IPv4 header (default set)", tunnel0+"df")
	f.word("ecn", "`normal|compat|rfc3168`: ECN of the outer header (default normal)", tunnel0+"ecn")
	f.word("udpcsum", "`auto|on|off`: outer UDP checksum (default auto: over IPv6, and where the kernel requires it)", tunnel0+"udpChecksum")
	f.truth("symmetric-hash", "one source port for both directions of an inner flow; at both ends, with a -srcport range of as many ports as -srcport-count", func(s string, yes bool) {
		f.put("symmetric-hash", s, yes, tunnel0+"symmetricHash")
	})
	f.truth("udp6zerocsumrx", "accept packets without UDP checksum over IPv6", func(s string, yes bool) {
		f.put("udp6zerocsumrx", s, yes, tunnel0+"udp6ZeroChecksumRx")
	})

	f.StringVar(&f.pcap, "pcap", "", "capture the device and the tunnel to a pcapng `FILE`")
	f.Func("stats", "print a stats line every `DURATION` (default 0: only on SIGUSR1 and at exit)", func(s string) (err error) {
		if f.every, err = time.ParseDuration(s); err != nil || f.every != 0 && f.every < 10*time.Millisecond {
			return errors.New("must be a duration of at least 10ms such as 5s, or 0 for off")
		}
		return nil
	})
	return f
}

// gatewayMAC is the same at every end, for hosts that move.
const gatewayMAC = "02:76:78:73:00:01"

// word declares a flag with the value of settings in the file.
func (f *flags) word(name, usage string, keys ...string) {
	f.Func(name, usage, func(s string) error { f.put(name, s, s, keys...); return nil })
}

// number declares a flag with a number, or a word. Leave the flag out for the default.
func (f *flags) number(name, usage string, keys ...string) {
	f.Func(name, usage, func(s string) error {
		var v any = s
		n, err := strconv.ParseUint(s, 0, 64)
		switch {
		case err == nil && n == 0 && name == "tos":
			v = "none"
		case err == nil && n == 0 && name != "id" && name != "mark":
			return errors.New("leave the flag out for the default")
		case err == nil:
			v = n
		}
		f.put(name, s, v, keys...)
		return nil
	})
}

// list declares a flag with words separated by commas.
func (f *flags) list(name, usage string, v *[]string) {
	f.Func(name, usage, func(s string) error { *v = strings.Split(s, ","); return nil })
}

// truth declares a bool flag.
func (f *flags) truth(name, usage string, do func(s string, yes bool)) {
	f.BoolFunc(name, usage, func(s string) error {
		yes, err := strconv.ParseBool(s)
		if err != nil {
			return errors.New("must be true or false")
		}
		do(s, yes)
		return nil
	})
}

// parse reads the command line. Errors name the flag, the value and what is allowed.
func parse(args []string) (options, error) {
	f := newFlags()
	if err := f.Parse(args); err != nil {
		if strings.HasPrefix(err.Error(), "flag provided but not defined") {
			err = fmt.Errorf("%w; p2p -h lists the flags", err)
		}
		return options{}, err
	}
	if f.NArg() > 0 {
		return options{}, fmt.Errorf("unexpected argument %q; p2p -h lists the flags", f.Arg(0))
	}
	if err := f.fit(); err != nil {
		return options{}, err
	}
	f.finish()
	var err error
	f.node, err = f.read()
	return f.options, err
}

// Flags that some types of tunnels do not have.
var (
	ofVNI      = []string{"id"}
	ofGroups   = []string{"group-ttl", "underlay-dev"}
	ofEthernet = []string{"learning", "ageing", "maxaddress", "storm", "inner-vlan", "fdb", "neigh", "gateway", "gateway-mac", "group", "kind"}
)

// fit returns an error for flags that contradict each other in a way that the file does not show.
func (f *flags) fit() (wrong error) {
	kind := f.given[tunnel0+"type"].value
	if g, ok := f.given[tunnel0+"type"]; ok && !slices.Contains([]string{"vxlan", "gpe", "ipip"}, kind) { // a node has more
		return g.wrong("must be one of vxlan, gpe, ipip")
	}
	if (kind == "" || kind == "vxlan") && f.tun {
		return errors.New(`flag -tun: requires -type gpe or ipip; vxlan carries Ethernet frames`)
	}
	f.tun = f.tun || kind == "ipip"
	f.Visit(func(x *flag.Flag) {
		switch {
		case wrong != nil:
		case x.Name == "group" && f.group == "": // perhaps an unset variable
			wrong = given{"group", ""}.wrong("an address is required")
		case kind == "ipip" && slices.Contains(ofVNI, x.Name):
			wrong = fmt.Errorf("flag -%s: requires -type vxlan or gpe; ipip has no VNI", x.Name)
		case f.tun && slices.Contains(ofEthernet, x.Name):
			wrong = fmt.Errorf("flag -%s: requires -type vxlan, or gpe without -tun; a TUN device has no Ethernet frames", x.Name)
		case f.group == "" && slices.Contains(ofGroups, x.Name):
			wrong = fmt.Errorf("flag -%s: requires -group", x.Name)
		case f.tun && x.Name == "datapath" && f.given["datapath"].value == "kernel":
			wrong = f.given["datapath"].wrong("requires -type vxlan, or gpe without -tun; with auto, a TUN device stays in user space")
		case len(f.gateway) == 0 && x.Name == "gateway-mac":
			wrong = errors.New("flag -gateway-mac: requires -gateway")
		}
	})
	group, _ := netip.ParseAddr(f.group)
	switch {
	case wrong != nil:
		return wrong
	case !f.has(tunnel0 + "local"):
		return errors.New("flag -local is required: an address of this host")
	case f.group != "" && !group.IsMulticast():
		return given{"group", f.group}.wrong("must be a multicast group such as 239.1.1.1 or ff05::1; -underlay-dev selects the interface")
	case f.tun && len(f.remotes) != 1:
		return fmt.Errorf("flag -remote: %d addresses; a TUN device requires exactly one", len(f.remotes))
	case f.tun && f.remotes[0] == "":
		return given{"remote", ""}.wrong("an address is required")
	case strings.HasPrefix(f.given[tunnel0+"peers"].value, "listed") && len(f.remotes)+f.entries == 0:
		return f.given[tunnel0+"peers"].wrong("requires -remote or -fdb")
	case f.given[segment0+"neighbours.mode"].value == "access" && len(f.gateway) == 0:
		return f.given[segment0+"neighbours.mode"].wrong("requires -gateway")
	}
	for _, r := range f.remotes {
		if a, _ := netip.ParseAddr(r); a.IsMulticast() {
			return given{"remote", r}.wrong("is a multicast group; use -group")
		}
	}
	for _, key := range []string{tunnel0 + "bind", tunnel0 + "multicastDevice"} { // empty means any in a file
		if g, ok := f.given[key]; ok && g.value == "" {
			return g.wrong("a name is required")
		}
	}
	return nil
}

// finish adds implied settings, and flags for more than one setting.
func (f *flags) finish() {
	f.put("", "", "p2p", tunnel0+"name", far0+"tunnel")
	f.put("", "", f.dev, member0+"port")
	f.put("dev", f.dev, f.dev, port0+"name")
	if !f.has(segment0 + "vni") {
		f.put("", "", 1, segment0+"vni")
	}
	ipip := f.given[tunnel0+"type"].value == "ipip"
	if f.queues = f.has(port0 + "queues"); !f.queues {
		n := min(runtime.GOMAXPROCS(0), 4) // more queues do not help a single tunnel
		if ipip || runtime.GOOS != "linux" {
			n = 1 // each IP-in-IP socket receives all packets; other systems have one queue
		}
		f.put("", "", n, port0+"queues", tunnel0+"queues")
	}
	if ipip {
		f.put("", "", nil, tunnel0+"noOffload")
	}
	if f.tun {
		f.put("", "", "tun", port0+"type")
		f.put("remote", f.remotes[0], f.remotes[0], segment0+"crossConnect")
		f.remotes = nil
	}
	first := 0
	if f.group != "" {
		f.put("group", f.group, f.group, far0+"flood[0]")
		first = 1
	}
	for i, a := range f.remotes {
		f.put("remote", a, a, fmt.Sprintf("%sflood[%d]", far0, first+i))
	}
	f.neighbours()
}

// neighbours adds the gateway, which is the same at every end, and the ARP and ND mode.
func (f *flags) neighbours() {
	if len(f.gateway) == 0 {
		if mode := segment0 + "neighbours.mode"; !f.has(mode) || f.given[mode].value == "off" {
			f.put("", "", nil, segment0+"neighbours")
		}
		return
	}
	f.put("", "", "p2p", "vrfs[0].name", segment0+"gateway.vrf")
	f.put("", "", frame.RandomMAC(), segment0+"gateway.vtepMAC")
	f.put("", "", true, segment0+"gateway.anycast")
	if !f.has(segment0 + "gateway.mac") {
		f.put("", "", gatewayMAC, segment0+"gateway.mac")
	}
	for i, a := range f.gateway {
		f.put("gateway", strings.Join(f.gateway, ","), a, fmt.Sprintf("%sgateway.addresses[%d]", segment0, i))
	}
}

func usage(w io.Writer) {
	fmt.Fprintln(w, "usage: p2p -local ADDR [-remote ADDR[,ADDR...]] [-group ADDR] [flags]")
	f := newFlags()
	f.SetOutput(w)
	f.PrintDefaults()
}
