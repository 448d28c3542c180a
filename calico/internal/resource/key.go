// Package resource reads what Calico keeps in etcd: resources of the API projectcalico.org/v3, and blocks of its IP address management.
// Only what says how a node's routes are, and what its workloads may do, is read. Whoever writes there is not trusted: a value has a
// limit of size, and what is read of it is checked here, or not used.
//
//	/calico/resources/v3/projectcalico.org/ippools/NAME            IPPool
//	                                      /nodes/NAME              Node
//	                                      /bgpconfigurations/NAME  BGPConfiguration
//	                                      /bgppeers/NAME           BGPPeer
//	                                      /bgpfilters/NAME         BGPFilter
//	                                      /felixconfigurations/NAME
//	/calico/ipam/v2/assignment/ipv4/block/10.65.1.0-26             Block
//	/calico/ipam/v2/host/NODE/ipv4/block/10.65.1.0-26              Affinity
//
// and of policy:
//
//	/calico/resources/v3/projectcalico.org/tiers/NAME                        Tier
//	                                      /globalnetworkpolicies/NAME        Policy
//	                                      /networkpolicies/NAMESPACE/NAME    Policy
//	                                      /profiles/NAME                     Profile
//	                                      /globalnetworksets/NAME            Set
//	                                      /networksets/NAMESPACE/NAME        Set
//	                                      /workloadendpoints/NAMESPACE/NAME  Endpoint
//	                                      /hostendpoints/NAME                Endpoint
package resource

import (
	"fmt"
	"net/netip"
	"strings"
)

// A Kind is one of resource.
type Kind uint8

// Kinds.
const (
	KindPool Kind = iota
	KindNode
	KindConfiguration
	KindPeer
	KindFilter
	KindBlock
	KindAffinity
	KindFelix // of workloads, too

	KindTier // the first of policy
	KindGlobalPolicy
	KindPolicy
	KindProfile
	KindGlobalSet
	KindSet
	KindWorkload
	KindHost
	KindStagedGlobalPolicy // and two more whose policies do nothing yet
	KindStagedPolicy
	KindStagedKubernetesPolicy

	Kinds
)

// kinds says how much there may be. A block of the most addresses that Calico allows is as large as etcd takes values. So may what is of
// policy be: it would be missing in denials.
var kinds = [Kinds]struct {
	prefix string
	most   int // resources
	size   int // bytes of a value
}{
	KindPool:          {resources + "ippools/", 1 << 10, 1 << 16},
	KindNode:          {resources + "nodes/", 1 << 14, 1 << 15},
	KindConfiguration: {resources + "bgpconfigurations/", 1 << 14, 1 << 16},
	KindPeer:          {resources + "bgppeers/", 1 << 12, 1 << 16},
	KindFilter:        {resources + "bgpfilters/", 1 << 10, 1 << 17},
	KindBlock:         {ipam + "assignment/", 1 << 17, etcdMost},
	KindAffinity:      {ipam + "host/", 1 << 14, 1 << 12},
	KindFelix:         {resources + "felixconfigurations/", 1 << 14, 1 << 16},

	KindTier:                   {resources + "tiers/", 1 << 10, etcdMost},
	KindGlobalPolicy:           {resources + "globalnetworkpolicies/", 1 << 14, etcdMost},
	KindPolicy:                 {resources + "networkpolicies/", 1 << 15, etcdMost},
	KindProfile:                {resources + "profiles/", 1 << 16, etcdMost},
	KindGlobalSet:              {resources + "globalnetworksets/", 1 << 14, etcdMost},
	KindSet:                    {resources + "networksets/", 1 << 15, etcdMost},
	KindWorkload:               {resources + "workloadendpoints/", 1 << 17, etcdMost},
	KindHost:                   {resources + "hostendpoints/", 1 << 14, etcdMost},
	KindStagedGlobalPolicy:     {resources + "stagedglobalnetworkpolicies/", 1 << 10, etcdMost},
	KindStagedPolicy:           {resources + "stagednetworkpolicies/", 1 << 10, etcdMost},
	KindStagedKubernetesPolicy: {resources + "stagedkubernetesnetworkpolicies/", 1 << 10, etcdMost},
}

const (
	resources = "/calico/resources/v3/projectcalico.org/"
	ipam      = "/calico/ipam/v2/"

	etcdMost = 2 << 20 // more than etcd takes

	maxNamespaced = 1 << 11  // of a namespace and a name, in which a workload endpoint has those of node and pod, with all dashes doubled
	maxName       = 253 + 64 // of nodes and resources: that of Kubernetes, and of the node in bgpconfigurations/node.NAME
)

// String returns the word for k in keys.
func (k Kind) String() string {
	switch k {
	case KindBlock:
		return "blocks"
	case KindAffinity:
		return "affinities"
	}
	return strings.TrimSuffix(strings.TrimPrefix(kinds[k].prefix, resources), "/")
}

// Prefix is that of all keys of a kind.
func Prefix(k Kind) string { return kinds[k].prefix }

// Most is how many resources of a kind are read.
func (k Kind) Most() int { return kinds[k].most }

// OfPolicy reports whether a kind is about policy, and not about routes.
func (k Kind) OfPolicy() bool { return k >= KindTier }

// Staged reports whether a kind is one of policies that do nothing yet.
func (k Kind) Staged() bool { return k >= KindStagedGlobalPolicy }

// Namespaced reports whether the resources of a kind have a namespace.
func (k Kind) Namespaced() bool {
	switch k {
	case KindPolicy, KindSet, KindWorkload, KindStagedPolicy, KindStagedKubernetesPolicy:
		return true
	}
	return false
}

// Prefixes are those of the keys that say how the routes of a node are.
func Prefixes(node string) (list []string) {
	for k := range KindTier {
		p := kinds[k].prefix
		if k == KindAffinity {
			p += node + "/"
		}
		list = append(list, p)
	}
	return list
}

// PolicyPrefixes are those of the keys that say what workloads may do.
func PolicyPrefixes() (list []string) {
	for k := KindTier; k < Kinds; k++ {
		list = append(list, kinds[k].prefix)
	}
	return list
}

// A Key names a resource.
type Key struct {
	Kind Kind
	Name string // of a block, and of an affinity of this node: its prefix; of what has a namespace: NAMESPACE/NAME
}

// Split returns the namespace of a resource that has one, and its name.
func (k Key) Split() (namespace, name string) {
	if k.Kind.Namespaced() {
		namespace, name, _ = strings.Cut(k.Name, "/")
		return namespace, name
	}
	return "", k.Name
}

// String returns the key for messages, such as ippools/default.
func (k Key) String() string { return k.Kind.String() + "/" + k.Name }

// Path returns the key in etcd. That of an affinity is one of a node.
func (k Key) Path(node string) string {
	prefix := kinds[k.Kind].prefix
	switch k.Kind {
	case KindAffinity:
		prefix += node + "/"
	case KindBlock:
	default:
		return prefix + k.Name
	}
	family := "ipv4"
	if strings.Contains(k.Name, ":") {
		family = "ipv6"
	}
	return prefix + family + "/block/" + strings.Replace(k.Name, "/", "-", 1)
}

// ParseKey reads a key that begins with one of Prefixes. An error names it.
func ParseKey(key string) (Key, error) {
	for k := range Kinds {
		rest, ok := strings.CutPrefix(key, kinds[k].prefix)
		if !ok {
			continue
		}
		switch k {
		case KindBlock:
			return blockKey(k, key, rest)
		case KindAffinity:
			if _, rest, ok = strings.Cut(rest, "/"); ok {
				return blockKey(k, key, rest)
			}
			return Key{}, wrongKey(key)
		}
		if !named(k, rest) {
			return Key{}, wrongKey(key)
		}
		return Key{k, rest}, nil
	}
	return Key{}, wrongKey(key)
}

// named reports whether a text is the name of a resource, behind its namespace if it has one.
func named(k Kind, text string) bool {
	most, name := maxName, text
	if k.Namespaced() {
		namespace, rest, _ := strings.Cut(text, "/")
		if namespace == "" || strings.ContainsAny(namespace, `"'`) { // which selectors have in quotes
			return false
		}
		most, name = maxNamespaced, rest
	}
	return name != "" && len(text) <= most && !strings.ContainsAny(name, "/") && !strings.ContainsAny(text, "\x00\n")
}

func wrongKey(key string) error {
	if len(key) > 300 {
		key = key[:300] + "..."
	}
	return fmt.Errorf("key %q: is none of a resource that is read", key)
}

// blockKey reads what is behind the prefix: ipv4/block/10.65.1.0-26.
func blockKey(k Kind, key, rest string) (Key, error) {
	family, rest, _ := strings.Cut(rest, "/block/")
	i := strings.LastIndexByte(rest, '-')
	if i < 0 || len(rest) > 64 {
		return Key{}, wrongKey(key)
	}
	p, err := netip.ParsePrefix(rest[:i] + "/" + rest[i+1:])
	if err != nil || p != p.Masked() || p.Addr().Is4In6() || family != "ipv4" && family != "ipv6" || p.Addr().Is4() != (family == "ipv4") {
		return Key{}, wrongKey(key)
	}
	return Key{k, p.String()}, nil
}
