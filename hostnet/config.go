package hostnet

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/vxswitch/vxswitch/setting"
)

// Defaults and bounds of a Config.
const (
	DefaultProtocol = 118
	DefaultTable    = 254 // main
	DefaultInterval = time.Second

	minProtocol = 5 // those below are the kernel's, and of routes set by hand
	localTable  = 255
	maxNumber   = 1<<31 - 1
	minMTU      = 68
	maxMTU      = 65535
)

// Config configures a [Host]. Only Device is needed.
type Config struct {
	Device string // name of the port's device, at most 15 bytes; it must exist

	// Namespace is the network namespace of the device: the path of a file such as /proc/1/ns/net, or a
	// name without a slash, as "ip netns" uses. Empty is that of the calling thread.
	Namespace string

	Addresses []netip.Prefix // addresses of the host in the VRF, usually one /32 and one /128
	Sole      bool           // addresses and next hops that a former process left are removed, but for link-local addresses
	MTU       int            // MTU of the device, 68 to 65535; 0 = as it is

	Uplink bool // the device is one of the host's own, not a switch's: it may be down, and routes wait until it is up

	Table    int // table of routes that have none, 1 to 2147483647 but not 255 (local); 0 = 254 (main)
	Metric   int // metric of routes that have none; 0 = the kernel's default: 0, for IPv6 1024
	Protocol int // marks our routes ("ip route show proto 118"), 5 to 255; 0 = 118. Nobody else may use it on this device

	Forward bool // the host forwards between the device and others: [Host.Check] asks for what that needs

	// Interval is the shortest time between two repairs, at least 10 ms; 0 = 1 s. It doubles, up to 64 times, while
	// something cannot be put back.
	Interval time.Duration

	// Repaired is called after a repair, in its own goroutine: one call after the other. It must not call Close.
	Repaired func(Repair)
}

// Check returns the errors in the settings as [setting.Errors].
func (c *Config) Check() error {
	w := setting.Of("hostnet: Config")
	if n := c.Device; n == "" || len(n) > 15 || n == "." || n == ".." || strings.ContainsAny(n, "/: \t\n\x00") {
		w.Want("Device", n, "the name of a device, 1 to 15 bytes")
	}
	seen := map[netip.Addr]bool{}
	for _, a := range c.Addresses {
		ip := a.Addr()
		switch {
		case !a.IsValid() || ip.Is4In6() || ip.Zone() != "" || ip.IsUnspecified() || ip.IsMulticast() || ip.IsLoopback():
			w.Want("Addresses", a, "addresses of one host with a prefix length, such as 10.65.1.1/32")
		case seen[ip]:
			w.Wrong("Addresses", a, "its address is in the list twice")
		}
		seen[ip] = true
	}
	if c.MTU != 0 && (c.MTU < minMTU || c.MTU > maxMTU) {
		w.Want("MTU", c.MTU, "%d to %d, or 0 to leave it as it is", minMTU, maxMTU)
	}
	if c.Table < 0 || c.Table > maxNumber || c.Table == localTable {
		w.Want("Table", c.Table, "1 to %d but not %d (local), or 0 for %d (main)", maxNumber, localTable, DefaultTable)
	}
	w.Number("Protocol", c.Protocol, minProtocol, 255, DefaultProtocol)
	if c.Metric < 0 || c.Metric > maxNumber {
		w.Want("Metric", c.Metric, "0 to %d", maxNumber)
	}
	if c.Interval != 0 && c.Interval < 10*time.Millisecond {
		w.Want("Interval", c.Interval, "10ms or longer, or 0 for %v", DefaultInterval)
	}
	return w.Err()
}

// full returns the settings with defaults filled in.
func (c Config) full() Config {
	c.Table, c.Protocol, c.Interval = cmp.Or(c.Table, DefaultTable), cmp.Or(c.Protocol, DefaultProtocol), cmp.Or(c.Interval, DefaultInterval)
	return c
}

// A Repair says what was put back, or why that failed.
type Repair struct {
	Found     bool           // the device had gone, and is there again
	Up        bool           // the device was down
	MTU       int            // MTU that the device had, 0 = the right one
	Addresses []netip.Prefix // addresses that were missing
	Routes    []Route        // routes that were missing or changed
	Removed   int            // routes with our protocol that are not ours
	Err       error          // what could not be put back: tried again
}

// String returns the repair in one line.
func (r Repair) String() string {
	var list []string
	say := func(ok bool, format string, args ...any) {
		if ok {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	say(r.Found, "the device is there again")
	say(r.Up, "the device was down")
	say(r.MTU != 0, "the MTU was %d", r.MTU)
	say(len(r.Addresses) > 0, "addresses %v", r.Addresses)
	if n := len(r.Routes); n == 1 {
		say(true, "route %v", r.Routes[0])
	} else {
		say(n > 1, "%d routes", n)
	}
	say(r.Removed > 0, "%d routes removed that were not set here", r.Removed)
	if r.Err != nil {
		say(true, "failed: %s", strings.ReplaceAll(r.Err.Error(), "\n", "; "))
	}
	return strings.Join(list, ", ")
}

// done reports whether anything was put back.
func (r *Repair) done() bool {
	return r.Found || r.Up || r.MTU != 0 || len(r.Addresses)+len(r.Routes)+r.Removed > 0
}
