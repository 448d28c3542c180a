package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/frame"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

// options are what the flags say: mostly settings of the library, as they are.
type options struct {
	local   netip.Addr
	remotes []netip.Addr
	group   netip.Addr // multicast group, none if not valid
	id      frame.VNI
	dstport uint16
	static  []static

	dev    string
	tun    bool // a TUN: IP packets, and no segment around them
	mtu    int  // 0 = what the tunnel takes
	queues int  // 0: see queueCount
	busy   time.Duration
	plain  bool // no offloads

	underlay underlay.UDPConfig
	vtep     vtep.Config
	vsi      vswitch.VSIConfig
	storm    vswitch.Storm // of the device and of the tunnel, each
	neigh    arp.Mode

	gateway    []netip.Prefix
	gatewayMAC frame.MAC

	pcap  string
	every time.Duration // between stats lines; 0 = only when asked
}

// static is an entry of -fdb.
type static struct {
	mac frame.MAC
	at  netip.Addr
}

// flood returns the remotes and the group as SetFlood takes them; port 0 is the VTEP's own.
func (o *options) flood() (peers []netip.AddrPort) {
	if o.group.IsValid() {
		peers = append(peers, netip.AddrPortFrom(o.group, 0))
	}
	for _, a := range o.remotes {
		peers = append(peers, netip.AddrPortFrom(a, 0))
	}
	return peers
}

// flagSet declares the flags. Their names are those of "ip link add type vxlan".
func flagSet(o *options) *flag.FlagSet {
	o.id, o.dev = 1, "vxs0"
	fs := flag.NewFlagSet("p2p", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // an error is one line, and run prints it

	fs.Func("type", "`vxlan|gpe|ipip`: encapsulation (default vxlan)", choice(&o.vtep.Type, []string{"vxlan", "gpe", "ipip"}))
	fs.BoolFunc("tun", "a TUN device, whose IP packets the tunnel carries without Ethernet: with -type gpe; ipip always has one", func(s string) (err error) {
		o.tun, err = boolean(s)
		return err
	})
	fs.Func("local", "outer source `ADDR`, IPv4 or IPv6, of this host; required", func(s string) (err error) {
		o.local, err = hostAddr(s)
		return err
	})
	fs.Func("remote", "`ADDR[,ADDR...]` of the peers: the flood list of the VNI", func(s string) error {
		o.remotes = nil
		for a := range strings.SplitSeq(s, ",") {
			r, err := hostAddr(a)
			if err != nil {
				return err
			}
			o.remotes = append(o.remotes, r)
		}
		return nil
	})
	fs.Func("group", "multicast group `ADDR` that is joined, and gets what is flooded: in place of -remote, or beside it for peers that are not in the group", func(s string) (err error) {
		o.group, err = groupAddr(s)
		return err
	})
	fs.Func("group-ttl", "outer TTL `N` towards -group, 1 to 255 (default 1: the local network)", number(1, 255, &o.vtep.GroupTTL))
	fs.Func("underlay-dev", "`IF`: interface where -group is (default: the one that has -local)", device(&o.underlay.MulticastDevice))
	fs.Func("id", "VNI `N`, 0 to 16777215 (default 1)", number(0, uint64(frame.MaxVNI), &o.id))
	fs.Func("dstport", "UDP destination `PORT`, 1 to 65535 (default 4789, gpe 4790)", number(1, 65535, &o.dstport))
	fs.Func("srcport", "`LO-HI`: range of UDP source ports (default 49152-65535)", portRange(&o.underlay.SrcPorts))
	fs.Func("mark", "`N`: SO_MARK of the underlay sockets", number(0, 1<<32-1, &o.underlay.Mark))
	fs.Func("bind", "`IF`: bind the underlay sockets to an interface", device(&o.underlay.Device))

	fs.Func("dev", "`NAME` of the device (default vxs0); a persistent one stays at exit", device(&o.dev))
	fs.Func("mtu", "MTU `N` of the device, 68 to 65521 (default: that of the underlay minus the overhead, and minus a tag with -inner-vlan pass)", number(minMTU, 65521, &o.mtu))
	fs.Func("queues", "`N` receive queues of the device and sockets of the underlay, 1 to 64 (default: one a processor, at most 4; with -type ipip one; and the device has one if it was made for one)", number(1, 64, &o.queues))

	fs.Func("busy-poll", "`DURATION` for which a queue asks again before it waits, 0 to 1ms (default 0; for machines with processors to spare)", busyPoll(&o.busy))
	fs.BoolFunc("offload", "superframes: virtio headers on the device, GSO and GRO on the sockets (default true)", func(s string) error {
		on, err := boolean(s)
		o.plain, o.underlay.NoOffload = !on, !on
		return err
	})

	fs.BoolFunc("learning", "learn source MACs (default true)", func(s string) error {
		on, err := boolean(s)
		o.vsi.NoLearn = !on
		return err
	})
	fs.Func("ageing", "`DURATION` after which a MAC that is not heard is forgotten, 0 for never (default 300s)", ageing(&o.vsi.Ageing))
	fs.Func("maxaddress", "`N`: most MACs that are learned (default 8192)", number(1, 1<<24, &o.vsi.MaxMACs))
	fs.Func("storm", "`CLASS=PPS`: flood no more than so many frames of broadcast, multicast or unknown a second, from the device and from the tunnel each; repeatable (default 10000, 50000 and 50000 from the device, no limit from the tunnel)", func(s string) error { return o.addStorm(s) })
	fs.Func("inner-vlan", "`discard|strip|pass`: frames with a VLAN tag inside the tunnel (default discard)",
		choice(&o.vsi.InnerVLAN, []string{"discard", "strip", "pass"}))
	fs.Func("fdb", "`MAC=ADDR`: static entry, the MAC is behind that peer; repeatable", func(s string) error { return o.addStatic(s) })
	fs.Func("neigh", "`off|suppress|proxy`: answer ARP and ND for hosts behind the tunnel, with their MAC or with the gateway's (default off)",
		choice(&o.neigh, []string{"off", "suppress", "proxy"}))
	o.gatewayMAC = defaultGatewayMAC
	fs.Func("gateway", "`ADDR/LEN[,ADDR/LEN]` of a gateway, the same at every end", prefixes(&o.gateway))
	fs.Func("gateway-mac", "`MAC` of the gateway, the same at every end (default "+defaultGatewayMAC.String()+")", func(s string) error {
		m, err := frame.ParseMAC(s)
		if err != nil || m.IsZero() || m.IsGroup() {
			return errors.New("allowed is the MAC of one host, such as 02:00:00:00:00:01")
		}
		o.gatewayMAC = m
		return nil
	})
	fs.Func("peers", "`any|listed`: whose packets are accepted (default any)", choice(&o.vtep.Peers, []string{"any", "listed"}))
	fs.Func("reserved", "`rfc|strict|0xMASK`: reserved bits of the header that packets are dropped for (default rfc: none)", func(s string) error {
		if o.vtep.Reserved.UnmarshalText([]byte(s)) != nil {
			return errors.New("allowed are rfc, strict, and a mask of 64 bits such as 0xf700000000000000")
		}
		return nil
	})

	h := &o.vtep.Header
	fs.Func("ttl", "outer TTL `N|inherit` (default 64)", inheritable(1, 255, 1, &h.TTL))
	fs.Func("tos", "outer TOS `N|inherit`, without its ECN bits (default 0, ipip inherit)", func(s string) error {
		err := inheritable(0, 252, 4, &h.TOS)(s)
		if err == nil && h.TOS == 0 {
			h.TOS = vtep.None
		}
		return err
	})
	fs.Func("df", "`set|unset|inherit`: DF of the outer IPv4 header (default set)", choice(&h.DF, []string{"set", "unset", "inherit"}))
	fs.Func("ecn", "`normal|compat|rfc3168`: ECN of the outer header (default normal)", choice(&h.ECN, []string{"normal", "compat", "rfc3168"}))
	fs.Func("udpcsum", "`auto|on|off`: outer UDP checksum (default auto: over IPv6, and where the kernel must)",
		choice(&o.underlay.Checksum, []string{"auto", "on", "off"}))
	fs.BoolVar(&o.underlay.ZeroChecksum6RX, "udp6zerocsumrx", false, "accept packets without UDP checksum over IPv6")

	fs.StringVar(&o.pcap, "pcap", "", "`FILE`: write a pcapng capture of the device side and of the tunnel side")
	fs.Func("stats", "print a stats line every `DURATION` (default 0: only on SIGUSR1 and at exit)", func(s string) error {
		d, err := time.ParseDuration(s)
		if err != nil || d != 0 && d < 10*time.Millisecond {
			return errors.New("allowed are durations of at least 10ms, such as 5s, and 0 for off")
		}
		o.every = d
		return nil
	})
	return fs
}

// defaultGatewayMAC is what hosts know the gateway by; hosts that move find the same one.
var defaultGatewayMAC = frame.MAC{0x02, 'v', 'x', 's', 0, 1}

// addStatic takes one -fdb.
func (o *options) addStatic(s string) error {
	m, a, _ := strings.Cut(s, "=")
	mac, err := frame.ParseMAC(m)
	if err != nil || mac.IsZero() || mac.IsGroup() {
		return errors.New("allowed is MAC=ADDR with the MAC of one host, such as 02:00:00:00:00:01=10.0.0.2")
	}
	at, err := hostAddr(a)
	if err != nil {
		return err
	}
	o.static = append(o.static, static{mac, at})
	return nil
}

// addStorm takes one -storm.
func (o *options) addStorm(s string) error {
	class, n, _ := strings.Cut(s, "=")
	rate := map[string]*vswitch.Rate{
		"broadcast": &o.storm.Broadcast, "multicast": &o.storm.Multicast, "unknown": &o.storm.UnknownUnicast,
	}[class]
	pps, err := strconv.ParseUint(n, 10, 32)
	if rate == nil || err != nil || pps == 0 {
		return errors.New("allowed is CLASS=PPS, with broadcast, multicast or unknown, and 1 to 4294967295 frames a second")
	}
	rate.Packets = pps
	return nil
}

// parse reads the command line. The error names the flag, what was given and what is
// allowed.
func parse(args []string) (o options, err error) {
	fs := flagSet(&o)
	if err := fs.Parse(args); err != nil {
		if strings.HasPrefix(err.Error(), "flag provided but not defined") {
			err = fmt.Errorf("%w; p2p -h lists the flags", err)
		}
		return o, err
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("argument %q: allowed are flags only; p2p -h lists them", fs.Arg(0))
	}
	if !o.local.IsValid() {
		return o, errors.New("flag -local is missing: required is an address of this host")
	}
	if err := o.settle(fs); err != nil {
		return o, err
	}
	if err := o.checkGroup(fs); err != nil {
		return o, err
	}
	for _, r := range o.remotes {
		if err := o.reaches("remote", r); err != nil {
			return o, err
		}
	}
	for _, e := range o.static {
		if err := o.reaches("fdb", e.at); err != nil {
			return o, err
		}
	}
	if o.neigh == arp.Proxy && len(o.gateway) == 0 {
		return o, errors.New(`invalid value "proxy" for flag -neigh: it answers with the gateway's MAC, required is -gateway`)
	}
	if o.vtep.Peers == vtep.ListedOnly && len(o.remotes)+len(o.static) == 0 {
		return o, errors.New(`invalid value "listed" for flag -peers: nobody is listed, required are -remote or -fdb`)
	}
	return o, nil
}

// reaches checks the address of a peer against our own.
func (o *options) reaches(name string, a netip.Addr) error {
	switch {
	case a == o.local:
		return fmt.Errorf("invalid value %q for flag -%s: is the -local address, allowed are addresses of other hosts", a, name)
	case a.Is4() != o.local.Is4():
		return fmt.Errorf("invalid value %q for flag -%s: allowed are addresses of the family of -local %v", a, name, o.local)
	case o.local.Zone() != "" && a.Zone() != "" && a.Zone() != o.local.Zone():
		return fmt.Errorf("invalid value %q for flag -%s: allowed are addresses in the zone of -local %v", a, name, o.local)
	}
	return nil
}

// checkGroup checks -group against -local, and what is for it only.
func (o *options) checkGroup(fs *flag.FlagSet) (wrong error) {
	if o.group.IsValid() {
		if o.group.Is4() != o.local.Is4() {
			return fmt.Errorf("invalid value %q for flag -group: allowed are multicast groups of the family of -local %v", o.group, o.local)
		}
		return nil
	}
	fs.Visit(func(f *flag.Flag) {
		if f.Name == "group-ttl" || f.Name == "underlay-dev" {
			wrong = fmt.Errorf("flag -%s: is about a multicast group, required is -group", f.Name)
		}
	})
	return wrong
}

func usage(w io.Writer) {
	fmt.Fprintln(w, "usage: p2p -local ADDR [-remote ADDR[,ADDR...]] [-group ADDR] [flags]")
	fs := flagSet(new(options))
	fs.SetOutput(w)
	fs.PrintDefaults()
}
