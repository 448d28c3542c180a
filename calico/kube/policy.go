package kube

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/vxswitch/vxswitch/calico/internal/resource"
)

type policySpec struct {
	Order    float64  `json:"order"`
	Tier     string   `json:"tier"`
	Selector string   `json:"selector"`
	Types    []string `json:"types"`
	Ingress  []rule   `json:"ingress,omitempty"`
	Egress   []rule   `json:"egress,omitempty"`
}

type rule struct {
	Action      string  `json:"action"`
	Protocol    string  `json:"protocol,omitempty"`
	Source      *entity `json:"source,omitempty"`
	Destination *entity `json:"destination,omitempty"`
}

type entity struct {
	Selector          string   `json:"selector,omitempty"`
	NamespaceSelector string   `json:"namespaceSelector,omitempty"`
	Nets              []string `json:"nets,omitempty"`
	NotNets           []string `json:"notNets,omitempty"`
	Ports             []any    `json:"ports,omitempty"`
}

// policyOrder is that of all NetworkPolicies of Kubernetes.
const policyOrder = 1000

// networkPolicy is a NetworkPolicy of Calico in the default tier, whose name begins with "knp.default.". One with a selector that is none is
// wrong; a rule with a network or a port that is none is left out, as all rules that are wrong and allow.
func networkPolicy(_ *Config, x runtime.Object) []said {
	n := x.(*networkingv1.NetworkPolicy)
	m := metadata{kind: resource.KubernetesPolicy, Name: resource.KubernetesPrefix + n.Name, Namespace: n.Namespace}
	s := policySpec{Order: policyOrder, Tier: "default"}
	wrong := func(format string, args ...any) []said {
		return []said{orWrong(says(resource.KindPolicy, m, nil), fmt.Errorf(format, args...))}
	}
	var err error
	if s.Selector, err = podSelector(&n.Spec.PodSelector); err != nil {
		return wrong("spec.podSelector: %w", err)
	}
	if len(n.Spec.PolicyTypes) == 0 { // of a cluster that knows no types
		s.Types = []string{"Ingress"}
	}
	for _, t := range n.Spec.PolicyTypes {
		s.Types = append(s.Types, string(t))
	}
	for i, r := range n.Spec.Ingress {
		list, err := policyRules(r.From, r.Ports, true)
		if err != nil {
			return wrong("spec.ingress[%d]: %w", i, err)
		}
		s.Ingress = append(s.Ingress, list...)
	}
	for i, r := range n.Spec.Egress {
		list, err := policyRules(r.To, r.Ports, false)
		if err != nil {
			return wrong("spec.egress[%d]: %w", i, err)
		}
		s.Egress = append(s.Egress, list...)
	}
	return []said{says(resource.KindPolicy, m, s)}
}

// policyRules are one for each peer and protocol.
func policyRules(peers []networkingv1.NetworkPolicyPeer, ports []networkingv1.NetworkPolicyPort, ingress bool) (list []rule, err error) {
	ends := make([]entity, max(len(peers), 1))
	for i := range peers {
		if ends[i], err = end(&peers[i]); err != nil {
			return nil, err
		}
	}
	by := protocols(ports)
	for _, protocol := range slices.Sorted(maps.Keys(by)) {
		for _, e := range ends {
			r := rule{Action: "Allow", Protocol: protocol}
			if ingress {
				r.Source = &e
				r.Destination = &entity{Ports: by[protocol]}
			} else {
				e.Ports = by[protocol]
				r.Destination = &e
			}
			list = append(list, r)
		}
	}
	return list, nil
}

// protocols are the ports of each protocol, none for all of them. Without any it is any protocol.
func protocols(ports []networkingv1.NetworkPolicyPort) map[string][]any {
	by := map[string][]any{}
	all := map[string]bool{}
	for _, p := range ports {
		protocol := string(corev1.ProtocolTCP)
		if p.Protocol != nil {
			protocol = string(*p.Protocol)
		}
		if p.Port == nil {
			all[protocol], by[protocol] = true, nil
		}
		if !all[protocol] {
			by[protocol] = append(by[protocol], port(&p))
		}
	}
	if len(ports) == 0 {
		by[""] = nil
	}
	return by
}

// port is a number, a name, or a range with a colon.
func port(p *networkingv1.NetworkPolicyPort) any {
	switch {
	case p.EndPort != nil:
		return fmt.Sprintf("%s:%d", p.Port, *p.EndPort)
	case p.Port.Type == intstr.String:
		return p.Port.StrVal
	}
	return p.Port.IntVal
}

// end is the other end of the packets of a rule.
func end(p *networkingv1.NetworkPolicyPeer) (e entity, err error) {
	if b := p.IPBlock; b != nil {
		return entity{Nets: []string{b.CIDR}, NotNets: b.Except}, nil
	}
	if e.Selector, err = podSelector(p.PodSelector); err != nil {
		return e, fmt.Errorf("podSelector: %w", err)
	}
	if n := p.NamespaceSelector; n != nil {
		terms, err := terms(n)
		if err != nil {
			return e, fmt.Errorf("namespaceSelector: %w", err)
		}
		if e.NamespaceSelector = strings.Join(terms, " && "); len(terms) == 0 {
			e.NamespaceSelector = "all()"
		}
	}
	return e, nil
}

// podSelector chooses pods: endpoints of Kubernetes, and no network sets.
func podSelector(s *metav1.LabelSelector) (string, error) {
	list := []string{labelOrchestrator + " == '" + orchestrator + "'"}
	if s != nil {
		more, err := terms(s)
		if err != nil {
			return "", err
		}
		list = append(list, more...)
	}
	return strings.Join(list, " && "), nil
}

// terms are the conditions of a selector.
func terms(s *metav1.LabelSelector) (list []string, err error) {
	add := func(format, key string, values ...string) {
		k, kerr := labelKey(key)
		v, verr := quoted(values)
		if err = errors.Join(err, kerr, verr); err == nil {
			list = append(list, strings.NewReplacer("KEY", k, "VALUES", v).Replace(format))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		add("KEY == VALUES", k, s.MatchLabels[k])
	}
	for _, e := range s.MatchExpressions {
		switch e.Operator {
		case metav1.LabelSelectorOpIn:
			add("KEY in { VALUES }", e.Key, e.Values...)
		case metav1.LabelSelectorOpNotIn:
			add("KEY not in { VALUES }", e.Key, e.Values...)
		case metav1.LabelSelectorOpExists:
			add("has(KEY)", e.Key)
		case metav1.LabelSelectorOpDoesNotExist:
			add("! has(KEY)", e.Key)
		default:
			err = errors.Join(err, fmt.Errorf("operator %.100q: must be In, NotIn, Exists or DoesNotExist", e.Operator))
		}
	}
	return list, err
}

// labelKey is a key that is no more than one in a selector.
func labelKey(key string) (string, error) {
	if key == "" || strings.Trim(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./") != "" {
		return "", fmt.Errorf("key %.100q: must be that of a label", key)
	}
	return key, nil
}

// quoted are values in quotes. None may have any itself: selectors have no way to say them.
func quoted(values []string) (string, error) {
	list := make([]string, len(values))
	for i, v := range values {
		if strings.ContainsAny(v, `'"`) {
			return "", fmt.Errorf("value %.100q: must be that of a label", v)
		}
		list[i] = "'" + v + "'"
	}
	return strings.Join(list, ", "), nil
}
