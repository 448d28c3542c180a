package resource

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/vxswitch/vxswitch/calico/internal/selector"
)

// Labels that Calico gives to endpoints, and prefixes of those that they have of their namespace and service account.
const (
	labelNamespace = "projectcalico.org/namespace"
	labelAccount   = "projectcalico.org/serviceaccount"

	prefixNamespace = "pcns."
	prefixAccount   = "pcsa."
)

// A Tier is a group of policies.
type Tier struct {
	Order float64 // infinite if it has none
	Pass  bool    // what none of its policies decides on goes to the next tier, and is not denied
}

type rawTier struct {
	Spec struct {
		Order         *float64 `json:"order"`
		DefaultAction string   `json:"defaultAction"`
	} `json:"spec"`
}

// read takes any other action than Pass for Deny, as Calico does.
func (r *rawTier) read() (*Tier, error) {
	return &Tier{Order: order(r.Spec.Order), Pass: r.Spec.DefaultAction == "Pass"}, nil
}

func order(o *float64) float64 {
	if o == nil {
		return math.Inf(1)
	}
	return *o
}

// A Policy is a GlobalNetworkPolicy or a NetworkPolicy.
type Policy struct {
	Tier            string
	Order           float64            // infinite if it has none
	Selector        *selector.Selector // of endpoints that it is about; that of a NetworkPolicy chooses only in its namespace
	Ingress, Egress *Rules             // nil if it is not about this direction
	Host            bool               // it is about host endpoints alone, with doNotTrack or preDNAT
	Forward         bool               // and about what is forwarded to host endpoints
	Kubernetes      bool               // it is one of Kubernetes, by the API of that
}

// Rules are those of one direction, in order.
type Rules []PolicyRule

// What a NetworkPolicy of Kubernetes is called in the datastore, and its kind if the API of Kubernetes is that.
const (
	KubernetesPrefix = "knp.default."
	KubernetesPolicy = "KubernetesNetworkPolicy"
)

type rawPolicy struct {
	Kind string `json:"kind"`
	Spec struct {
		Tier                   string            `json:"tier"`
		Order                  *float64          `json:"order"`
		Selector               string            `json:"selector"`
		NamespaceSelector      string            `json:"namespaceSelector"`
		ServiceAccountSelector string            `json:"serviceAccountSelector"`
		Types                  []string          `json:"types"`
		Ingress                []json.RawMessage `json:"ingress"`
		Egress                 []json.RawMessage `json:"egress"`
		DoNotTrack             bool              `json:"doNotTrack"`
		PreDNAT                bool              `json:"preDNAT"`
		ApplyOnForward         bool              `json:"applyOnForward"`
	} `json:"spec"`
}

// read reads a policy. A rule that is wrong says so itself. Without types it is about both directions, as Felix has it; calicoctl writes
// the types that the rules make.
func (r *rawPolicy) read(namespace string) (*Policy, error) {
	s := &r.Spec
	p := &Policy{Tier: s.Tier, Order: order(s.Order), Host: s.DoNotTrack || s.PreDNAT, Forward: s.ApplyOnForward, Kubernetes: r.Kind == KubernetesPolicy}
	if p.Tier == "" {
		p.Tier = "default"
	}
	var err error
	if p.Selector, err = r.selector(namespace); err != nil {
		return nil, err
	}
	for _, t := range s.Types {
		if !strings.EqualFold(t, "Ingress") && !strings.EqualFold(t, "Egress") {
			return nil, one("spec.types", t, "Ingress", "Egress")
		}
	}
	has := func(t string) bool {
		return len(s.Types) == 0 || slices.ContainsFunc(s.Types, func(x string) bool { return strings.EqualFold(x, t) })
	}
	if has("Ingress") {
		p.Ingress = readRules("spec.ingress", s.Ingress, namespace)
	}
	if has("Egress") {
		p.Egress = readRules("spec.egress", s.Egress, namespace)
	}
	return p, nil
}

// selector returns that of the endpoints that a policy is about. With a selector of namespaces or service accounts, all() is about what
// has one, as in Calico.
func (r *rawPolicy) selector(namespace string) (*selector.Selector, error) {
	s := &r.Spec
	is, err := choose("spec.selector", s.Selector)
	if err != nil {
		return nil, err
	}
	accounts, err := choose("spec.serviceAccountSelector", s.ServiceAccountSelector)
	if err != nil {
		return nil, err
	}
	if namespace != "" {
		is = selector.And(is, selector.In(labelNamespace, namespace))
		if accounts != nil {
			is = selector.And(is, accounts.Prefixed(prefixAccount))
		}
		return is, nil
	}
	namespaces, err := choose("spec.namespaceSelector", s.NamespaceSelector)
	if err != nil {
		return nil, err
	}
	if namespaces != nil {
		is = selector.And(is, namespaces.Prefixed(prefixNamespace)).Replace("all()", selector.Has(labelNamespace))
	}
	if accounts != nil {
		is = selector.And(is, accounts.Prefixed(prefixAccount)).Replace("all()", selector.Has(labelAccount))
	}
	return selector.And(is), nil
}

// A Profile is rules behind all tiers, and labels, for the endpoints that name it.
type Profile struct {
	Labels          selector.Labels
	Ingress, Egress *Rules
}

type rawProfile struct {
	Spec struct {
		LabelsToApply selector.Labels   `json:"labelsToApply"`
		Ingress       []json.RawMessage `json:"ingress"`
		Egress        []json.RawMessage `json:"egress"`
	} `json:"spec"`
}

func (r *rawProfile) read() (*Profile, error) {
	s := &r.Spec
	return &Profile{Labels: s.LabelsToApply, Ingress: readRules("spec.ingress", s.Ingress, ""), Egress: readRules("spec.egress", s.Egress, "")}, nil
}

// AllowProfile is the name of a profile that every cluster has, and that allows everything. The datastore does not say so.
const AllowProfile = "projectcalico-default-allow"

// A Staged policy does nothing yet.
type Staged struct{}
