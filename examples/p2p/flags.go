package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
)

// options are what the flags say.
type options struct {
	local   netip.Addr
	remotes []netip.Addr
	id      frame.VNI
	dstport uint16
	dev     string
}

// flood returns the remotes as SetFlood takes them; port 0 is the VTEP's own.
func (o *options) flood() (peers []netip.AddrPort) {
	for _, a := range o.remotes {
		peers = append(peers, netip.AddrPortFrom(a, 0))
	}
	return peers
}

// flagSet declares the flags. Their names are those of "ip link add type vxlan".
func flagSet(o *options) *flag.FlagSet {
	o.id, o.dstport, o.dev = 1, encap.VXLANPort, "vxs0"
	fs := flag.NewFlagSet("p2p", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // an error is one line, and run prints it
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
	fs.Func("id", "VNI `N`, 0 to 16777215 (default 1)", number(0, uint64(frame.MaxVNI), &o.id))
	fs.Func("dstport", "UDP destination `PORT`, 1 to 65535 (default 4789)", number(1, 65535, &o.dstport))
	fs.Func("dev", "`NAME` of the TAP device (default vxs0); a persistent one stays at exit", func(s string) error {
		if s == "" || len(s) > 15 {
			return errors.New("allowed is the name of a device, at most 15 bytes")
		}
		o.dev = s
		return nil
	})
	return fs
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
	for _, r := range o.remotes {
		switch {
		case r == o.local:
			return o, fmt.Errorf("invalid value %q for flag -remote: is the -local address, allowed are addresses of other hosts", r)
		case r.Is4() != o.local.Is4():
			return o, fmt.Errorf("invalid value %q for flag -remote: allowed are addresses of the family of -local %v", r, o.local)
		}
	}
	return o, nil
}

// hostAddr parses the address of one host.
func hostAddr(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	a = a.Unmap()
	switch {
	case err != nil || a.IsUnspecified() || a.IsMulticast() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return a, fmt.Errorf("%q: allowed are IPv4 and IPv6 addresses of one host", s)
	case a.Is6() && a.IsLinkLocalUnicast() && a.Zone() == "":
		return a, fmt.Errorf("%q: allowed are link-local addresses with a zone, such as fe80::1%%eth0", s)
	}
	return a, nil
}

// number sets v to a number of lo to hi.
func number[T ~uint16 | ~uint32](lo, hi uint64, v *T) func(string) error {
	return func(s string) error {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil || n < lo || n > hi {
			return fmt.Errorf("allowed are %d to %d", lo, hi)
		}
		*v = T(n)
		return nil
	}
}

func usage(w io.Writer) {
	fmt.Fprintln(w, "usage: p2p -local ADDR [-remote ADDR[,ADDR...]] [flags]")
	fs := flagSet(new(options))
	fs.SetOutput(w)
	fs.PrintDefaults()
}
