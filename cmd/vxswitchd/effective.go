package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"time"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/arp"
	"github.com/vxswitch/vxswitch/bfd"
	"github.com/vxswitch/vxswitch/bfd/vxlan"
	"github.com/vxswitch/vxswitch/bgp"
	"github.com/vxswitch/vxswitch/calico"
	"github.com/vxswitch/vxswitch/capture"
	"github.com/vxswitch/vxswitch/cmd/internal/file"
	"github.com/vxswitch/vxswitch/discovery"
	registry "github.com/vxswitch/vxswitch/discovery/etcd"
	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/evpn"
	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/flannel"
	flanneld "github.com/vxswitch/vxswitch/flannel/daemon"
	"github.com/vxswitch/vxswitch/flannel/etcd"
	"github.com/vxswitch/vxswitch/flannel/routed"
	"github.com/vxswitch/vxswitch/l3"
	"github.com/vxswitch/vxswitch/policy"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/vtep"
)

// effective returns a configuration as a file with defaults, except for defaults of the system.
func effective(cfg *file.Config) []byte {
	text, _ := json.Marshal(cfg)
	tree, _ := treeOf(text) // of what was written: cannot fail
	dropEmpty(tree, api.Lists...)
	for _, t := range objects(tree, "tunnels") {
		tunnelDefaults(t)
	}
	for _, p := range objects(tree, "ports") {
		defaults(p, "type", "tap", "queues", 1)
		if p["type"] != "packet" {
			defaults(p, "noOffload", false)
		}
	}
	for _, p := range objects(tree, "policies") {
		defaults(p, "default", policy.Allow, "maxFlows", policy.DefaultMaxFlows)
	}
	for i, s := range objects(tree, "segments") {
		dropEmpty(s, "members", "flood", "fdb")
		defaults(s, "ageing", (time.Duration(fdb.DefaultAgeing) * time.Second).String(), "maxMACs", fdb.DefaultLimit, "refuse", false, "flaps", fdb.DefaultFlaps, "innerVLAN", "discard")
		if n, ok := s["neighbours"].(map[string]any); ok {
			limit := cmp.Or(cfg.Segments[i].Neighbours.Limit, arp.DefaultLimit)
			defaults(n, "mode", arp.Off.String(), "limit", limit, "perDest", (limit+1)/2)
		}
		if g, ok := s["gateway"].(map[string]any); ok {
			bfdDefaults(g)
		}
	}
	defaults(tree, "injected", vswitch.DefaultInjected, "events", vswitch.DefaultEvents)
	rates := []any{"perSender", l3.DefaultPerSender, "total", l3.DefaultTotal}
	for key, pairs := range map[string][]any{
		"tooBig":  rates,
		"gateway": append(rates, "perNeighbour", l3.DefaultPerNeighbour, "waiting", l3.DefaultWaiting, "queued", l3.DefaultQueued, "fragments", l3.DefaultFragments),
		"capture": {"buffer", capture.DefaultBuffer, "snapLen", capture.DefaultSnapLen},
	} {
		defaults(tree, key, map[string]any{})
		defaults(tree[key].(map[string]any), pairs...)
	}
	if f, ok := tree["flannel"].(map[string]any); ok {
		dropEmpty(f, "etcdEndpoints", "iface", "ifaceRegex")
		defaults(f, "mode", flanneld.L3.String(), "etcdPrefix", etcd.DefaultPrefix, "subnetFile", flanneld.DefaultSubnetFile, "generation", 3,
			"subnetLeaseRenewMargin", flannel.DefaultRenewMargin.String(), "ipMasq", false, "ipMasqFullyRandomDisable", false)
		if f["mode"] == flanneld.L3.String() {
			defaults(f, "vrf", routed.DefaultName)
		}
	}
	if e, ok := tree["evpn"].(map[string]any); ok {
		dropEmpty(e, "listen", "peers", "segments", "vrfs", "ethernetSegments")
		defaults(e, "distance", evpn.DefaultDistance, "maxHosts", evpn.DefaultMaxHosts, "maxRoutes", evpn.DefaultMaxRoutes, "maxPaths", evpn.DefaultMaxPaths, "maxVTEPs", evpn.DefaultMaxVTEPs, "maxEthernetSegments", evpn.DefaultMaxEthernetSegments, "mobility", map[string]any{})
		defaults(e["mobility"].(map[string]any), "moves", evpn.DefaultMoves, "window", evpn.DefaultWindow.String(), "hold", evpn.DefaultMobileHold.String())
		for _, x := range objects(e, "ethernetSegments") {
			if defaults(x, "mode", evpn.AllActive.String(), "election", evpn.Modulo.String(), "wait", evpn.DefaultWait.String()); x["election"] == evpn.ByPreference.String() {
				defaults(x, "preference", evpn.DefaultPreference)
			}
		}
		for _, p := range objects(e, "peers") {
			defaults(p, "port", evpn.DefaultPort, "holdTime", evpn.DefaultHold.String(), "retry", evpn.DefaultRetry.String(),
				"maxRoutes", evpn.DefaultPeerRoutes, "maxStale", evpn.DefaultMaxStale.String())
		}
	}
	if b, ok := tree["bgp"].(map[string]any); ok {
		bgpDefaults(b)
	}
	if k, ok := tree["calico"].(map[string]any); ok {
		dropEmpty(k, "routers", "listen", "local")
		defaults(k, "distance", calico.DefaultDistance, "noBGP", false, "gracefulRestart", false, "etcd", map[string]any{})
		etcdDefaults(k["etcd"].(map[string]any))
	}
	if o, ok := tree["ovsdb"].(map[string]any); ok {
		dropEmpty(o, "listen", "ports", "tunnelIPs")
	}
	if d, ok := tree["discovery"].(map[string]any); ok {
		dropEmpty(d, "servers", "neighbours")
		defaults(d, "network", 0, "port", discovery.DefaultPort)
		if e, ok := d["etcd"].(map[string]any); ok {
			etcdDefaults(e)
			defaults(e, "prefix", registry.DefaultPrefix, "ttl", registry.DefaultTTL.String())
		}
	}
	if c, ok := tree["control"].(map[string]any); ok {
		defaults(c, "mode", "0600")
	}
	text, _ = json.MarshalIndent(tree, "", "  ") // of what was JSON: cannot fail
	return append(text, '\n')
}

func etcdDefaults(e map[string]any) {
	dropEmpty(e, "endpoints")
	defaults(e, "endpoints", []any{etcd.DefaultEndpoint}, "timeout", etcd.DefaultTimeout.String(), "keepAlive", etcd.DefaultKeepAlive.String())
}

// bgpDefaults sets those of the section bgp.
func bgpDefaults(b map[string]any) {
	dropEmpty(b, "listen", "peers", "addresses", "routers", "links", "pools", "nodes", "announce", "export", "import", "filters", "underlay")
	defaults(b, "distance", bgp.DefaultDistance, "maxRoutes", bgp.DefaultMaxRoutes, "maxPaths", bgp.DefaultMaxPaths)
	if b["listen"] != nil {
		defaults(b, "port", bgp.DefaultPort)
	}
	for _, l := range objects(b, "links") {
		dropEmpty(l, "addresses", "routers")
	}
	for _, p := range objects(b, "pools") {
		if defaults(p, "encapsulation", bgp.Never.String()); p["encapsulation"] != bgp.Never.String() {
			defaults(p, "mode", bgp.Always.String())
		}
	}
	for _, list := range []string{"export", "import"} {
		for _, r := range objects(b, list) {
			defaults(r, "action", bgp.Accept.String())
		}
	}
	for _, f := range objects(b, "filters") {
		for _, list := range []string{"importV4", "exportV4", "importV6", "exportV6"} {
			for _, r := range objects(f, list) {
				defaults(r, "operator", bgp.In.String(), "source", bgp.AnySource.String(), "peerType", bgp.AnyPeer.String(), "action", bgp.Accept.String())
			}
		}
	}
	for _, p := range objects(b, "peers") {
		defaults(p, "port", bgp.DefaultPort, "holdTime", bgp.DefaultHold.String(), "retry", bgp.DefaultRetry.String(), "maxRoutes", bgp.DefaultPeerRoutes)
		if x, ok := p["bfd"].(map[string]any); ok {
			defaults(x, "interval", bfd.DefaultInterval.String(), "multiplier", bfd.DefaultMultiplier)
		}
	}
}

// bfdDefaults sets those of the BFD of a gateway or tunnel.
func bfdDefaults(of map[string]any) {
	if b, ok := of["bfd"].(map[string]any); ok {
		defaults(b, "interval", bfd.DefaultInterval.String(), "multiplier", bfd.DefaultMultiplier, "hold", bfd.DefaultHold.String())
	}
}

func tunnelDefaults(t map[string]any) {
	bfdDefaults(t)
	if b, ok := t["bfd"].(map[string]any); ok && t["type"] != encap.TypeIPIP.String() && t["type"] != encap.TypeFOU.String() {
		defaults(b, "vni", vxlan.VNI)
	}
	defaults(t, "type", encap.TypeVXLAN.String(), "queues", 1, "ttl", 64, "df", "set", "ecn", "normal", "dscp", "keep", "peers", "any", "maxPeers", vtep.DefaultMaxPeers)
	switch t["type"] {
	case encap.TypeIPIP.String():
		defaults(t, "tos", "inherit")
		return
	case encap.TypeGPE.String():
		defaults(t, "port", encap.GPEPort)
	case encap.TypeVXLAN.String():
		defaults(t, "gbp", false)
	}
	if t["type"] == encap.TypeFOU.String() {
		defaults(t, "tos", "inherit")
	} else {
		defaults(t, "reserved", vtep.ReservedRFC.String(), "tos", 0, "port", encap.VXLANPort)
	}
	defaults(t, "underlay", "udp", "srcPorts", "49152-65535", "noOffload", false, "udpChecksum", "auto", "udp6ZeroChecksumRx", false)
}

// treeOf returns the objects, lists and values of a configuration, with numbers as they are written.
func treeOf(text []byte) (tree map[string]any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err = d.Decode(&tree)
	return tree, err
}

// objects returns the objects in a list.
func objects(tree map[string]any, key string) (list []map[string]any) {
	all, _ := tree[key].([]any)
	for _, x := range all {
		list = append(list, x.(map[string]any))
	}
	return list
}

// dropEmpty deletes lists without elements, which are the same as none.
func dropEmpty(o map[string]any, keys ...string) {
	for _, key := range keys {
		if list, ok := o[key].([]any); ok && len(list) == 0 {
			delete(o, key)
		}
	}
}

// defaults sets missing keys; pairs has keys and values in turn.
func defaults(o map[string]any, pairs ...any) {
	for i := 0; i < len(pairs); i += 2 {
		if key := pairs[i].(string); o[key] == nil {
			o[key] = pairs[i+1]
		}
	}
}
