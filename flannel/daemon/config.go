package daemon

import (
	"net/netip"
	"regexp"
	"strings"
	"time"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/flannel/etcd"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/hostaddr"
	"github.com/vxswitch/vxswitch/setting"
)

// DefaultSubnetFile is where CNI plugins look.
const DefaultSubnetFile = "/run/flannel/subnet.env"

// Config configures a Daemon. The settings have the names of flanneld's flags. In mode "l3" Pods is needed.
type Config struct {
	Mode Mode `json:"mode,omitzero"` // who routes to pods

	etcd.Config

	Iface         []string   `json:"iface,omitempty"`        // interface to other nodes, by its name or address: the first that is there; default that of the default route
	IfaceRegex    []string   `json:"ifaceRegex,omitempty"`   // likewise by regular expressions of names and addresses, after those of Iface
	IfaceCanReach netip.Addr `json:"ifaceCanReach,omitzero"` // likewise, the interface from which the host sends to an address
	PublicIP      netip.Addr `json:"publicIP,omitzero"`      // IPv4 address that other nodes send to; default that of the interface
	PublicIPv6    netip.Addr `json:"publicIPv6,omitzero"`    // likewise the IPv6 address

	SubnetFile    string        `json:"subnetFile,omitzero"`               // file that CNI plugins read, written once pods can be made; default "/run/flannel/subnet.env"
	RenewMargin   time.Duration `json:"subnetLeaseRenewMargin,omitzero"`   // how long before its end the lease is renewed, up to 23h59m; default "1h0m0s"
	IPMasq        bool          `json:"ipMasq,omitzero"`                   // masquerade what leaves the network through the host, in the nft table "inet vxflanneld"; requires the program nft
	NoFullyRandom bool          `json:"ipMasqFullyRandomDisable,omitzero"` // keep source ports where masquerading can

	Generation int `json:"generation,omitzero"` // of vxlan: 3 knows all leases at once, 2 asks for neighbours, 1 also for MACs; default 3

	Device string    `json:"dev,omitzero"`    // mode "tap": name of the device; default "flannel." and the VNI
	Pods   frame.VNI `json:"pods,omitzero"`   // mode "l3": needed; VNI of the segment of the pods, which gets its gateway from here
	VRF    string    `json:"vrf,omitzero"`    // mode "l3": the VRF of pods and leases, which may have more routes; default "flannel"
	Direct frame.VNI `json:"direct,omitzero"` // mode "l3": VNI of a segment with a gateway in the VRF, in which nodes on the same link are neighbours, for backend host-gw and DirectRouting; default none

	Gateway  netip.Addr `json:"gateway,omitzero"`  // mode "l3" with direct: the router through which the tunnel reaches nodes that are not on the link; default none, and they are not reached
	Gateway6 netip.Addr `json:"gateway6,omitzero"` // likewise with IPv6
}

// Mode is who routes between pods and other nodes.
type Mode uint8

// Modes.
const (
	L3  Mode = iota // the switch: pods are ports of a segment
	TAP             // the host's kernel, through a device as flanneld has it, which outlives the process with its address and routes
)

var modeWords = []string{L3: "l3", TAP: "tap"}

// String returns the mode as settings call it.
func (m Mode) String() string { return setting.Name(modeWords, m) }

// MarshalText implements [encoding.TextMarshaler].
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads what String writes.
func (m *Mode) UnmarshalText(text []byte) error { return setting.Parse(m, modeWords, text) }

// maxMargin is flanneld's: a lease lasts a day.
const maxMargin = flannel.DefaultTTL - time.Minute

const configName = "daemon: Config"

// Check returns the errors in the settings as [setting.Errors].
func (c *Config) Check() error {
	w := setting.Of(configName)
	w.Add("", c.Config.Check())
	if c.Mode > TAP {
		w.Want("Mode", uint8(c.Mode), "l3 or tap")
	}
	for _, e := range c.IfaceRegex {
		if _, err := regexp.Compile(e); err != nil {
			w.Wrong("IfaceRegex", e, "%v", err)
		}
	}
	for _, x := range []struct {
		name, want string
		ip         netip.Addr
		ok         bool
	}{
		{"IfaceCanReach", "the address of one host", c.IfaceCanReach, hostaddr.Check(c.IfaceCanReach) == nil},
		{"Gateway", "the IPv4 address of a router", c.Gateway, c.Gateway.Is4() && hostaddr.Neighbour(c.Gateway) == nil},
		{"Gateway6", "the IPv6 address of a router", c.Gateway6, c.Gateway6.Is6() && hostaddr.Check(c.Gateway6) == nil},
		{"PublicIP", "an IPv4 address that other hosts reach", c.PublicIP, c.PublicIP.Is4() && hostaddr.Neighbour(c.PublicIP) == nil},
		{"PublicIPv6", "an IPv6 address that other hosts reach", c.PublicIPv6, c.PublicIPv6.Is6() && hostaddr.Neighbour(c.PublicIPv6) == nil},
	} {
		if x.ip.IsValid() && !x.ok {
			w.Want(x.name, x.ip, "%s", x.want)
		}
	}
	if c.RenewMargin < 0 || c.RenewMargin > maxMargin {
		w.Want("RenewMargin", c.RenewMargin, "up to %v, or 0 for %v", maxMargin, flannel.DefaultRenewMargin)
	}
	w.Number("Generation", c.Generation, 1, 3, 3)
	if len(c.Device) > 15 || strings.ContainsAny(c.Device, " /:%") { // IFNAMSIZ - 1
		w.Want("Device", c.Device, "a device name of at most 15 bytes, without spaces, slashes, colons or percent signs")
	}
	if c.Mode == TAP {
		for _, x := range []struct {
			name string
			set  bool
		}{{"Pods", c.Pods != 0}, {"VRF", c.VRF != ""}, {"Direct", c.Direct != 0}, {"Gateway", c.Gateway.IsValid()}, {"Gateway6", c.Gateway6.IsValid()}} {
			if x.set {
				w.Wrong(x.name, nil, "is for mode l3")
			}
		}
		return w.Err()
	}
	if c.Pods == 0 || !c.Pods.Valid() {
		w.Want("Pods", c.Pods, "the VNI of a segment for the pods, 1 to %d, with mode l3", frame.MaxVNI)
	}
	if !c.Direct.Valid() {
		w.Want("Direct", c.Direct, "1 to %d, or 0 for none", frame.MaxVNI)
	} else if c.Direct != 0 && c.Direct == c.Pods {
		w.Wrong("Direct", c.Direct, "is the segment of the pods")
	}
	if c.Direct == 0 && (c.Gateway.IsValid() || c.Gateway6.IsValid()) {
		w.Wrong("Direct", nil, "is needed with gateway: without it, the host has the routes to other nodes")
	}
	if c.Device != "" {
		w.Wrong("Device", c.Device, "is for mode tap")
	}
	return w.Err()
}

// CheckFiles returns as [setting.Errors] which files of etcd cannot be read.
func (c *Config) CheckFiles() error {
	w := setting.Of(configName)
	w.Add("", c.Config.CheckFiles())
	return w.Err()
}
