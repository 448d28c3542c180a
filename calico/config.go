package calico

import (
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/vxswitch/vxswitch/calico/internal/model"
	"github.com/vxswitch/vxswitch/flannel/etcd"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/hostaddr"
	"github.com/vxswitch/vxswitch/setting"
)

// DefaultOwner is the default of Config.Owner.
const DefaultOwner = "calico"

// DefaultDistance is the default of Config.Distance.
const DefaultDistance = 20

// Config says which node of the cluster this is, and where the datastore is.
type Config struct {
	Node string `json:"node"`          // its name in the datastore; needed
	Etcd Etcd   `json:"etcd,omitzero"` // the datastore

	// Datastore, if not nil, takes the place of Etcd. It is a pointer, so that [Plane.Configure] can tell it from another one.
	Datastore Datastore `json:"-"`

	VRF     string       `json:"vrf"`               // of the routes; needed
	Segment frame.VNI    `json:"segment,omitzero"`  // whose gateway in the VRF is on the network of the nodes, for ways without a tunnel; default none
	IPIP    Tunnel       `json:"ipip,omitzero"`     // for pools with an ipipMode; default none
	VXLAN   Tunnel       `json:"vxlan,omitzero"`    // for pools with a vxlanMode: VNI 4096 in a cluster with Calico's defaults; default none
	Routers []netip.Addr `json:"routers,omitempty"` // at most one of each family: for packets without a tunnel to nodes that are not on our network; default none

	Workloads Workloads `json:"workloads,omitzero"` // ports that have the policies of the cluster; default none, and no policies are read

	NoBGP    bool         `json:"noBGP,omitzero"`    // there are no sessions, and all routes are of blocks, as with Calico's backend "vxlan"; not with routerID, listen, local or gracefulRestart
	RouterID netip.Addr   `json:"routerID,omitzero"` // BGP identifier; default the node's IPv4 address
	Listen   []netip.Addr `json:"listen,omitempty"`  // addresses for sessions that peers open; default the node's
	Local    []netip.Addr `json:"local,omitempty"`   // source addresses of sessions, at most one of each family; default the node's
	Distance uint8        `json:"distance,omitzero"` // administrative distance of routes; default 20

	// GracefulRestart has peers keep their routes while they restart, as BIRD of Calico does. A peer that died looks like one that
	// restarts.
	GracefulRestart bool `json:"gracefulRestart,omitzero"`

	// Owner is that of the rows of blocks, "" for [DefaultOwner]. Those of BGP are of bgp.DefaultOwner.
	Owner string `json:"-"`

	// Log, if not nil, gets what happens to sessions and the datastore.
	Log *slog.Logger `json:"-"`
}

// Workloads says which ports of the node are workloads of the cluster. Each has the policies of its WorkloadEndpoint, and sends from the MAC
// and addresses of that alone. While none is known nothing passes there.
type Workloads struct {
	// Prefixes are how the names of such ports begin, each of which is that of a WorkloadEndpoint's interfaceName: "cali" in a
	// cluster with Calico's defaults.
	Prefixes []string `json:"prefixes,omitempty"`

	Ports map[string]string `json:"ports,omitempty"` // WorkloadEndpoints of ports with other names: NAMESPACE/NAME

	Unguarded bool `json:"unguarded,omitzero"` // they may send from any MAC and address, and make tunnels: for ports that have another guard
}

// A Tunnel is a segment with one, which has a gateway in the VRF.
type Tunnel struct {
	Segment frame.VNI `json:"segment,omitzero"` // its VNI; needed
	IPv4    string    `json:"ipv4,omitzero"`    // name of the tunnel for this family, if the segment has several
	IPv6    string    `json:"ipv6,omitzero"`    // likewise
}

// Etcd says where the datastore is: by default etcd on this host, without TLS.
type Etcd struct{ etcd.Settings }

// datastore returns where the resources are.
func (c *Config) datastore() Datastore {
	if c.Datastore != nil {
		return c.Datastore
	}
	return &c.Etcd
}

// Check returns the errors in the settings as [setting.Errors]. Settings that are nil lack what is needed.
func (c *Config) Check() error {
	if c == nil {
		c = new(Config)
	}
	w := setting.Of("calico: Config")
	if c.Node == "" || len(c.Node) > 253 || strings.ContainsAny(c.Node, "/ \n\x00") {
		w.Want("Node", c.Node, "the name of a Node resource")
	}
	w.Add("Etcd", c.Etcd.Check())
	if c.VRF == "" {
		w.Want("VRF", c.VRF, "the name of a VRF")
	}
	if !c.Segment.Valid() {
		w.Want("Segment", c.Segment, "0 to %d", frame.MaxVNI)
	}
	c.checkTunnel(w, "IPIP", c.IPIP)
	c.checkTunnel(w, "VXLAN", c.VXLAN)
	if c.RouterID.IsValid() && (!c.RouterID.Is4() || c.RouterID.IsUnspecified()) {
		w.Want("RouterID", c.RouterID, "an IPv4 address other than 0.0.0.0")
	}
	for i, err := range hostaddr.Listeners(c.Listen) {
		w.Wrong(fmt.Sprintf("Listen[%d]", i), c.Listen[i], "%v", err)
	}
	checkFamilies(w, "Local", c.Local)
	checkFamilies(w, "Routers", c.Routers)
	c.Workloads.check(w)
	c.checkNoBGP(w)
	if len(c.Routers) > 0 && c.Segment == 0 {
		w.Wrong("Routers", c.Routers[0], "requires segment")
	}
	return w.Err()
}

// Restarts reports whether a Plane cannot change to other settings by [Plane.Configure], but that a new one is needed.
func (c *Config) Restarts(next *Config) bool { return c.fixed(next) != "" }

// fixed returns the first field that is another one in next and cannot change.
func (c *Config) fixed(next *Config) string {
	switch {
	case c.Node != next.Node:
		return "Node"
	case c.NoBGP != next.NoBGP:
		return "NoBGP"
	case c.Workloads.none() != next.Workloads.none():
		return "Workloads"
	}
	return ""
}

// CheckFiles returns as [setting.Errors] which files of Etcd cannot be read.
func (c *Config) CheckFiles() error {
	w := setting.Of("calico: Config")
	w.Add("Etcd", c.Etcd.CheckFiles())
	return w.Err()
}

// checkNoBGP adds the errors of settings of sessions, if there are none.
func (c *Config) checkNoBGP(w *setting.Check) {
	for _, x := range []struct {
		field string
		set   bool
		value any
	}{{"RouterID", c.RouterID.IsValid(), c.RouterID}, {"Listen", len(c.Listen) > 0, c.Listen}, {"Local", len(c.Local) > 0, c.Local}, {"GracefulRestart", c.GracefulRestart, true}} {
		if c.NoBGP && x.set {
			w.Wrong(x.field, x.value, "is of sessions, and noBGP says that there are none")
		}
	}
}

func (c *Config) checkTunnel(w *setting.Check, field string, t Tunnel) {
	switch {
	case !t.Segment.Valid():
		w.Want(field+".Segment", t.Segment, "0 to %d", frame.MaxVNI)
	case t.Segment == 0 && t != (Tunnel{}):
		w.Wrong(field+".Segment", nil, "the segment of the tunnel is required")
	case t.Segment != 0 && t.Segment == c.Segment:
		w.Wrong(field+".Segment", t.Segment, "is that of ways without a tunnel")
	}
}

func (c *Workloads) check(w *setting.Check) {
	for i, p := range c.Prefixes {
		if p == "" {
			w.Want(fmt.Sprintf("Workloads.Prefixes[%d]", i), p, "the beginning of names of ports")
		}
	}
	for _, port := range slices.Sorted(maps.Keys(c.Ports)) {
		namespace, name, _ := strings.Cut(c.Ports[port], "/")
		if port == "" || namespace == "" || name == "" || strings.Contains(name, "/") {
			w.Want(fmt.Sprintf("Workloads.Ports[%q]", port), c.Ports[port], "a WorkloadEndpoint of a port, as NAMESPACE/NAME")
		}
	}
	if c.Unguarded && c.none() {
		w.Wrong("Workloads.Unguarded", c.Unguarded, "requires prefixes or ports: there are no workloads")
	}
}

// checkFamilies adds the errors of addresses of hosts, of which each family has at most one.
func checkFamilies(w *setting.Check, field string, list []netip.Addr) {
	for i, err := range hostaddr.Families(list) {
		w.Wrong(fmt.Sprintf("%s[%d]", field, i), list[i], "%v", err)
	}
}

func (c *Config) settings() *model.Settings {
	s := &model.Settings{
		Node: c.Node, VRF: c.VRF, Segment: c.Segment, IPIP: model.Tunnel(c.IPIP), VXLAN: model.Tunnel(c.VXLAN), Routers: c.Routers, RouterID: c.RouterID,
		Listen: c.Listen, Local: c.Local, Distance: c.Distance, NoBGP: c.NoBGP, Restarts: c.GracefulRestart,
	}
	if s.Distance == 0 {
		s.Distance = DefaultDistance
	}
	return s
}
