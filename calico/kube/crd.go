package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vxswitch/vxswitch/calico/internal/resource"
)

// An object is one of a CRD, of any kind.
type object struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              json.RawMessage `json:"spec,omitempty"`
}

// DeepCopyObject implements [runtime.Object].
func (o *object) DeepCopyObject() runtime.Object {
	c := &object{TypeMeta: o.TypeMeta, Spec: append(json.RawMessage(nil), o.Spec...)}
	o.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return c
}

// objects is a list of them.
type objects struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []object `json:"items"`
}

// DeepCopyObject implements [runtime.Object].
func (l *objects) DeepCopyObject() runtime.Object {
	c := &objects{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopyObject().(*object))
	}
	return c
}

// A said is what an object says: a key and its value, or why it has none.
type said struct {
	key   string
	value []byte
	err   error
}

// A value is a resource as calicoctl writes it in etcd.
type value struct {
	Kind     string          `json:"kind,omitempty"` // if it is another one than the key says
	Metadata metadata        `json:"metadata"`
	Spec     json.RawMessage `json:"spec,omitempty"`
}

type metadata struct {
	kind      string            // of the value
	Name      string            `json:"name,omitempty"`
	Namespace string            `json:"namespace,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
}

// says is a resource with a name, and a spec of any type that is JSON.
func says(k resource.Kind, m metadata, spec any) said {
	name := m.Name
	if k.Namespaced() {
		name = m.Namespace + "/" + m.Name
	}
	s := said{key: resource.Key{Kind: k, Name: name}.Path("")}
	text, err := json.Marshal(spec)
	if err == nil {
		s.value, err = json.Marshal(value{m.kind, m, text})
	}
	if err != nil {
		s.value, s.err = nil, err
	}
	return s
}

// annotationMetadata has the name and labels of a resource, which Calico does not leave to those of the object.
const annotationMetadata = "projectcalico.org/metadata"

// meta returns what a resource is called and its labels. The object and the annotation have labels each; the annotation counts.
func (o *object) meta() (metadata, error) {
	m := metadata{Name: o.Name, Namespace: o.Namespace, Labels: maps.Clone(o.Labels)}
	text := o.Annotations[annotationMetadata]
	if text == "" {
		return m, nil
	}
	var a metadata
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return m, fmt.Errorf("annotation %s: %w", annotationMetadata, err)
	}
	if m.Labels == nil {
		m.Labels = map[string]string{}
	}
	maps.Copy(m.Labels, a.Labels)
	if a.Name != "" {
		m.Name = a.Name
	}
	return m, nil
}

// plain is an object whose name and namespace are those of its resource.
func plain(k resource.Kind) func(*Config, runtime.Object) []said {
	return func(_ *Config, x runtime.Object) []said {
		o := x.(*object)
		m, err := o.meta()
		if err == nil && m.Name != o.Name {
			err = fmt.Errorf("annotation %s: name %.100q must be that of the object", annotationMetadata, m.Name)
		}
		m.Name = o.Name
		return []said{orWrong(says(k, m, o.Spec), err)}
	}
}

// orWrong is s, or that it has no value because of an error.
func orWrong(s said, err error) said {
	if err != nil {
		s.value, s.err = nil, err
	}
	return s
}

// policy is a policy. Its name is that in the annotation. Policies of older releases of Calico have none there, and the object has that of
// the default tier in front; others have that of their tier in both.
func policy(k resource.Kind) func(*Config, runtime.Object) []said {
	return func(_ *Config, x runtime.Object) []said {
		o := x.(*object)
		m, err := o.meta()
		if err != nil {
			return []said{o.wrong(k, err)}
		}
		const tier = "default."
		switch {
		case m.Name == o.Name && !named(o) && ofDefaultTier(o.Spec):
			m.Name = strings.TrimPrefix(m.Name, tier)
		case m.Name != o.Name && tier+m.Name != o.Name:
			return []said{o.wrong(k, fmt.Errorf("annotation %s: name %.100q must be that of the object", annotationMetadata, m.Name))}
		}
		if strings.HasPrefix(m.Name, resource.KubernetesPrefix) {
			return []said{o.wrong(k, errors.New("a name that begins with "+resource.KubernetesPrefix+" is that of a NetworkPolicy of Kubernetes"))}
		}
		return []said{says(k, m, o.Spec)}
	}
}

// wrong is that an object is no resource. Its key is that of no other.
func (o *object) wrong(k resource.Kind, err error) said {
	return orWrong(says(k, metadata{Name: "object:" + o.Name, Namespace: o.Namespace}, nil), err)
}

// named reports whether the annotation of an object has a name.
func named(o *object) bool {
	var a metadata
	return json.Unmarshal([]byte(o.Annotations[annotationMetadata]), &a) == nil && a.Name != ""
}

func ofDefaultTier(spec []byte) bool {
	var s struct {
		Tier string `json:"tier"`
	}
	return json.Unmarshal(spec, &s) == nil && (s.Tier == "" || s.Tier == "default")
}

// block is an IPAMBlock, whose spec is what etcd has.
func block(_ *Config, x runtime.Object) []said {
	o := x.(*object)
	var s struct {
		CIDR string `json:"cidr"`
	}
	p, err := cidrOf(o, &s, &s.CIDR)
	if err != nil {
		return []said{{key: wrongKey("ipamblocks", o), err: err}}
	}
	return []said{{key: resource.Key{Kind: resource.KindBlock, Name: p.String()}.Path(""), value: o.Spec}}
}

// affinity is a BlockAffinity of a node.
func affinity(_ *Config, x runtime.Object) []said {
	o := x.(*object)
	var s struct {
		CIDR    string `json:"cidr"`
		Node    string `json:"node"`
		State   string `json:"state"`
		Type    string `json:"type"`
		Deleted string `json:"deleted"`
	}
	p, err := cidrOf(o, &s, &s.CIDR)
	switch {
	case err != nil:
		return []said{{key: wrongKey("blockaffinities", o), err: err}}
	case s.Type != "" && s.Type != "host", s.Deleted == "true", strings.Contains(s.Node, "/"):
		return nil
	}
	text, err := json.Marshal(resource.Affinity{State: s.State})
	return []said{{resource.Key{Kind: resource.KindAffinity, Name: p.String()}.Path(s.Node), text, err}}
}

// cidrOf reads a spec with a prefix.
func cidrOf(o *object, spec any, cidr *string) (p netip.Prefix, err error) {
	if err := json.Unmarshal(o.Spec, spec); err != nil {
		return p, fmt.Errorf("spec: %w", err)
	}
	if p, err = netip.ParsePrefix(*cidr); err != nil {
		return p, fmt.Errorf("spec.cidr %.100q: must be a prefix", *cidr)
	}
	return p, nil
}

// wrongKey is one that names an object, and is that of no resource.
func wrongKey(kind string, o *object) string { return kind + "/" + o.Name }
