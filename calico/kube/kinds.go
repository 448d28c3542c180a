package kube

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vxswitch/vxswitch/calico/internal/resource"
)

// Groups of kinds.
var (
	calico    = schema.GroupVersion{Group: "crd.projectcalico.org", Version: "v1"}
	admin     = schema.GroupVersion{Group: "policy.networking.k8s.io", Version: "v1alpha1"}
	adminNext = schema.GroupVersion{Group: "policy.networking.k8s.io", Version: "v1alpha2"}
)

// A kind is one of objects that say something.
type kind struct {
	group    schema.GroupVersion
	name     string // in paths, such as ippools
	kind     string // such as IPPool
	of       []resource.Kind
	needed   bool // without it the cluster is none of Calico, or none at all
	one      runtime.Object
	list     runtime.Object
	says     func(c *Config, x runtime.Object) []said
	stripped func(x runtime.Object) runtime.Object // nil for all of it
}

// String names it as messages of an API server do.
func (k *kind) String() string {
	if k.group.Group == "" {
		return k.name
	}
	return k.name + "." + k.group.Group
}

// crd is a kind of Calico's own.
func crd(name, word string, of resource.Kind, says func(*Config, runtime.Object) []said) kind {
	return kind{group: calico, name: name, kind: word, of: []resource.Kind{of}, one: new(object), list: new(objects), says: says}
}

// crdOf is a kind whose objects are resources, and are called as these are.
func crdOf(word string, of resource.Kind, says func(resource.Kind) func(*Config, runtime.Object) []said) kind {
	return crd(of.String(), word, of, says(of))
}

// denied is a kind of policy that is not carried: as long as there is one, it is a policy that cannot be read.
func denied(group schema.GroupVersion, name, word string) kind {
	says := func(_ *Config, x runtime.Object) []said {
		m := metadata{Name: "object:" + name + ":" + x.(*object).Name}
		return []said{orWrong(says(resource.KindGlobalPolicy, m, nil), fmt.Errorf("%s is not carried", word))}
	}
	k := crd(name, word, resource.KindGlobalPolicy, says)
	k.group = group
	return k
}

// kinds are all that are read.
var kinds = []kind{
	{group: corev1.SchemeGroupVersion, name: "nodes", kind: "Node", needed: true, of: []resource.Kind{resource.KindNode, resource.KindBlock, resource.KindAffinity}, one: new(corev1.Node), list: new(corev1.NodeList), says: nodeSays, stripped: stripNode},
	needed(crdOf("IPPool", resource.KindPool, plain)),
	crdOf("BGPConfiguration", resource.KindConfiguration, plain),
	crdOf("BGPPeer", resource.KindPeer, plain),
	crdOf("BGPFilter", resource.KindFilter, plain),
	crd("ipamblocks", "IPAMBlock", resource.KindBlock, block),
	crd("blockaffinities", "BlockAffinity", resource.KindAffinity, affinity),

	{group: corev1.SchemeGroupVersion, name: "pods", kind: "Pod", needed: true, of: []resource.Kind{resource.KindWorkload}, one: new(corev1.Pod), list: new(corev1.PodList), says: pod, stripped: stripPod},
	{group: corev1.SchemeGroupVersion, name: "namespaces", kind: "Namespace", needed: true, of: []resource.Kind{resource.KindProfile}, one: new(corev1.Namespace), list: new(corev1.NamespaceList), says: namespace},
	{group: corev1.SchemeGroupVersion, name: "serviceaccounts", kind: "ServiceAccount", needed: true, of: []resource.Kind{resource.KindProfile}, one: new(corev1.ServiceAccount), list: new(corev1.ServiceAccountList), says: account},
	{group: networkingv1.SchemeGroupVersion, name: "networkpolicies", kind: "NetworkPolicy", needed: true, of: []resource.Kind{resource.KindPolicy}, one: new(networkingv1.NetworkPolicy), list: new(networkingv1.NetworkPolicyList), says: networkPolicy},
	crdOf("Tier", resource.KindTier, plain),
	needed(crdOf("GlobalNetworkPolicy", resource.KindGlobalPolicy, policy)),
	needed(crdOf("NetworkPolicy", resource.KindPolicy, policy)),
	crdOf("GlobalNetworkSet", resource.KindGlobalSet, plain),
	crdOf("NetworkSet", resource.KindSet, plain),
	crdOf("HostEndpoint", resource.KindHost, plain),
	crdOf("StagedGlobalNetworkPolicy", resource.KindStagedGlobalPolicy, policy),
	crdOf("StagedNetworkPolicy", resource.KindStagedPolicy, policy),
	crdOf("StagedKubernetesNetworkPolicy", resource.KindStagedKubernetesPolicy, plain),
	denied(admin, "adminnetworkpolicies", "AdminNetworkPolicy"),
	denied(admin, "baselineadminnetworkpolicies", "BaselineAdminNetworkPolicy"),
	denied(adminNext, "clusternetworkpolicies", "ClusterNetworkPolicy"),
}

func needed(k kind) kind {
	k.needed = true
	return k
}

// chosen are the kinds that say something of keys with the prefixes.
func chosen(prefixes []string) (list []*kind) {
	for i := range kinds {
		k := &kinds[i]
		if slices.ContainsFunc(k.of, func(of resource.Kind) bool {
			return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(p, resource.Prefix(of)) })
		}) {
			list = append(list, k)
		}
	}
	return list
}

// most is how many objects of a kind are remembered: more than package model reads of all that they say.
func (k *kind) most() (n int) {
	for _, of := range k.of {
		n = max(n, 2*of.Most())
	}
	return n
}

// strip is what is read of an object.
func (k *kind) strip(x runtime.Object) runtime.Object {
	if k.stripped != nil {
		return k.stripped(x)
	}
	if m, ok := x.(metav1.Object); ok {
		m.SetManagedFields(nil)
	}
	return x
}

func stripNode(x runtime.Object) runtime.Object {
	n := x.(*corev1.Node)
	out := &corev1.Node{ObjectMeta: n.ObjectMeta, Status: corev1.NodeStatus{Addresses: n.Status.Addresses}}
	out.Spec.PodCIDR, out.Spec.PodCIDRs = n.Spec.PodCIDR, n.Spec.PodCIDRs
	out.ManagedFields = nil
	return out
}

// scheme has all kinds: a clientset would link those of all groups.
var scheme = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, networkingv1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	for _, k := range kinds {
		if _, own := k.one.(*object); own {
			s.AddKnownTypeWithName(k.group.WithKind(k.kind), new(object))
			s.AddKnownTypeWithName(k.group.WithKind(k.kind+"List"), new(objects))
			metav1.AddToGroupVersion(s, k.group)
		}
	}
	return s
})
